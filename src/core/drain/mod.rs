//! Draining a node, the pure half: which pods go, in which order, what each budget allows, which evictions are sent
//! next, and what the API's answers mean.
//!
//! [`View`] is one look at a node: every pod with what becomes of it. From it come the preview ([`DrainPlan`]) and the
//! next step ([`next`]), so that what is shown is what is done. Nothing is remembered here but [`Answers`], what the
//! API said to the evictions of this process; whoever takes over begins without it and asks the budgets anew.
//!
//! Budgets are asked before an eviction is sent, in the server's own order (`leave`): what would be refused is not
//! sent. Whatever could not be read, or is not understood, may not go.

mod answer;
mod answers;
mod awaits;
mod budgets;
mod classify;
mod next;
mod operator;
mod plan;
mod rules;
mod view;
mod wait;
mod warnings;
mod waves;

#[cfg(test)]
mod items;
#[cfg(test)]
mod model;
#[cfg(test)]
mod testing;

pub use answer::{Answer, Answered, Eviction, Lane, Origin};
pub use answers::Answers;
pub use awaits::Awaits;
pub use budgets::{BudgetLook, Leave, Refusal, Verdict};
pub use classify::{Class, Never, Stay};
pub use next::{MOST_IN_A_STEP, Next, next};
pub use operator::Operator;
pub use plan::{DrainPlan, NeverPod, PlannedPod, PlannedWave, StayingPod};
pub(crate) use plan::{count, length};
pub use rules::{SaidBy, Treatment};
pub use view::{Entry, Question, View};
pub use wait::{HeldBy, Wait, Waiting};
pub use warnings::{Warning, WarningKind};
pub use waves::{Wave, WaveKind};
