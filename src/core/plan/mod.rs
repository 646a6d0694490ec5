//! What is done next: one pure function from a record and facts to a decision.
//!
//! This is the only place that knows the order of a run; the service, the command line and the simulated cluster call
//! the same [`step`]. It never remembers: every call looks at the record and at fresh facts, so a process that was
//! killed after any request is continued by the next one.
//!
//! The order of effects is fixed by [`Step`]: first the record is written, then the acts are done. Before commit
//! every deadline, block, cancel or loss ends in BackingOut; after it nothing is undone, the run proves the node or
//! holds.
//!
//! Where several ways are open the careful one is taken (`runbooks/decisions/0005-rules-of-a-run.md`):
//! - *Clocks.* A word of a person counts until it was dealt with (`heardResume`, `heardCancel`), whatever its time
//!   says. A `resume` while nothing is held or verified is heard and forgotten, so that it does not come true hours
//!   later; `cancel --accept` counts while held only.
//! - *Halt.* A halt that cannot be read stops every act, also of BackingOut, and no deadline waits for it. After commit
//!   a halt also keeps owner annotations and `proven` unwritten.
//! - *Hold.* It keeps the cordon whatever the run backs out for, and under `cancel --accept`. One that cannot be read
//!   does too.
//! - *Deletion* of a record after commit is like a cancel: said once in a warning; the finalizer keeps the record.
//! - *Too early.* A claim or `done` before the first intent ends the run as `ActionNotStarted`: it can be said only
//!   once. A pod of our name before the first intent is not ours and ends it too.
//! - *Late.* Once an intent was written the act may come late: BackingOut commits when it sees the pod or the claim,
//!   and with action `pod` keeps the node cordoned for as long as an API server may work on a request (60 s).
//! - *Deadlines.* Cordoning and Acting have the handover timeout: a cordon that cannot be written and a command that
//!   nobody claims end in BackingOut.
//! - *Proof.* An empty boot ID proves nothing. Uncordoning asks the gates of Verifying again; a further boot there, or
//!   a gate that is red again, goes back to Verifying; a boot while settling starts its quiet time anew.
//! - *Accepted.* A boot accepted by `resume --accept` ends `AcceptedUnproven` and is not written down as proven. A run
//!   that is `NotSettled` has no cordon: accepting it ends it.
//! - *Windows* bind unattended runs until commit. The hard stop is frozen at the start; a halt does not move it.
//! - *Progress* of Settling is being more whole than ever before in that phase; what comes and goes is none.
//!
//! With kured in the cluster (`runbooks/decisions/0008-kured-grant.md`):
//! - *Grant.* Action `kured` gives nobody an order: it offers the intent, for one boot and at most 30 s ahead, and whoever
//!   answers kured says `go` from it. It is offered after a question that was asked, and refused, since the cordon was
//!   seen, and renewed only by a step whose hand-over gates agree.
//! - *Commit.* kured's lock names the node, expired or not: nothing can be undone then, in every phase before commit and
//!   with every action. Without a grant of ours it is said that kured acts unasked. In Pending nothing begins then.
//! - *Void.* The lock went, the boot is the same and the node Ready: at least a second later the cordon tells. Schedulable:
//!   kured's drain failed and it is put back; cordoned: one more grant, and no third one.
//! - *Closing.* An offered grant is never just forgotten: kured may act on it minutes later. Its lock is taken before
//!   anything else is put back, also under a halt, and given back only when the old `go` is spent. A lock of others is
//!   never written over; then the node stays cordoned.
//! - *Other actions* hold kured's lock from before the cordon to the very end, so that no kured takes another node down
//!   meanwhile.
//! - *Order of the end.* A terminal record keeps its finalizer while an old `go` may still be acted on, then takes its
//!   sentinel away (until then it makes kured ask, which is the proof), then gives the lock back.

mod act;
mod annotated;
mod back_out;
mod before_commit;
mod closing;
mod decide;
mod drain;
mod grant;
mod held;
mod kept;
mod lock;
mod owned;
mod pending;
pub mod reports;
mod returning;
mod run;
mod seat;
mod sentinel;
mod settle;
mod taken;
mod time;
mod turn;
mod verify;
mod wanted;
mod words;

use jiff::Timestamp;

use crate::api::record::{Maintenance, MaintenanceStatus};
use crate::api::{Finding, Moment, Outcome, Phase};
use crate::config::Settings;
use crate::drain::{Answers, Awaits};
use crate::facts::Facts;

pub use act::{Act, LockChange, SetLock};
pub(crate) use annotated::unattended_action;
pub use annotated::{ANNOTATED_SOURCES, Annotated, annotated, annotated_nodes};
pub use owned::owner_of;
pub use run::phase_of;
pub use seat::{OwnSeat, abstains};
pub use time::{parse_time, stamp};
pub(crate) use turn::{Place, place_of};
pub use wanted::{Wanted, wanted, wanted_again};

use run::{Run, Target};

/// Finalizer of a record in flight: deleting it means BackingOut before commit, Held handling after.
pub const FINALIZER: &str = "maint.dev/in-flight";

/// What a step is decided on.
#[derive(Debug, Clone, Copy)]
pub struct StepInput<'a> {
    /// The record as the API has it now.
    pub record: &'a Maintenance,
    /// Fresh facts: at least what [`wanted`] asks for.
    pub facts: &'a Facts,
    /// The settings.
    pub settings: &'a Settings,
    /// The leader's term.
    pub term: i64,
    /// What the API answered to evictions of this run, and which of them have no answer yet.
    pub answers: &'a Answers,
    /// Where our own pod runs; none where that is not known.
    pub seat: Option<&'a OwnSeat>,
    /// A watch on the node's pods tells when they are gone: they need not be looked for every other second.
    pub watched: bool,
    /// Now.
    pub now: Timestamp,
}

/// What is done next.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The record's status after this step; equal to the present one where nothing is to be written.
    pub status: MaintenanceStatus,
    /// What is done after that write, in this order.
    pub acts: Vec<Act>,
    /// When to look again at the latest.
    pub wake_at: Timestamp,
    /// What a drain waits for, where the gates agree to it: from then on, for a while, who goes next may be chosen anew
    /// on what [`wanted_again`] says. None: only a whole look helps.
    pub awaits: Option<Awaits>,
    /// The run is over and nothing of ours is left.
    pub done: bool,
    /// It may start, but not under this leader, whose pod runs on the target: another replica is to lead.
    pub hand_over: bool,
    /// The moment whose gates were asked last in this step, and what they answered.
    pub asked: Option<(Moment, Vec<Finding>)>,
}

/// Decides the next step of a run.
#[must_use]
pub fn step(input: &StepInput<'_>) -> Step {
    let mut run = Run::new(input);
    let phase = phase_of(input.record);
    if run.status.term > input.term {
        // A later leader has it: ours is over.
        return run.finish();
    }
    if phase.is_in_flight() && run.status.term < input.term {
        // A new leader writes its term into the record before anything else: the old one's next write then conflicts.
        run.status.term = input.term;
        run.note(format!("a new leader (term {}) goes on", input.term));
        return run.finish();
    }
    run.status.term = input.term;
    run.status.observed_generation = input.record.metadata.generation.unwrap_or_default();
    run.watch_dns();
    run.hear_what_is_idle(phase);
    if phase.is_committed() && phase != Phase::Held && run.boot_id_before().is_empty() {
        run.hold(Outcome::NotVerified.as_str(), "critical", "the record has lost what it knew of the node");
        return run.finish();
    }
    match phase {
        Phase::Pending => pending::step(&mut run),
        Phase::Cordoning => before_commit::cordoning(&mut run),
        Phase::Draining => before_commit::draining(&mut run),
        Phase::Acting => before_commit::acting(&mut run),
        Phase::Returning => returning::step(&mut run),
        Phase::Verifying => verify::step(&mut run),
        Phase::Uncordoning => settle::uncordoning(&mut run),
        Phase::Settling => settle::settling(&mut run),
        Phase::Held => held::step(&mut run),
        Phase::BackingOut => back_out::step(&mut run),
        Phase::Succeeded | Phase::Failed | Phase::Cancelled => run.release_record(),
    }
    if let Target::Here(node) = run.target() {
        run.keep_lock(node);
    }
    run.finish()
}

#[cfg(test)]
mod tests;
