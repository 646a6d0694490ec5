//! What people and programs are told: one value per answer, rendered as text or serialised as JSON.
//!
//! A report is made from findings that were really given; nothing here judges again.

mod check;
pub(crate) mod conditions;
pub mod delivery;
mod doctor;
mod draining;
pub mod events;
mod follow;
mod history;
mod kured;
mod lock;
pub mod matrix;
mod paint;
mod plan;
mod post_check;
mod status;
mod story;
mod table;
#[cfg(test)]
mod testing;
mod text;
mod window;
mod windows;

pub use check::{CheckReport, Clock, FindingReport, NodeReport, NotAsked, Origin, Question};
pub use doctor::{DoctorReport, doctor};
pub use follow::Follow;
pub use history::{History, HistoryEntry, history};
pub use lock::{LockEntryReport, LockReport, lock};
pub use paint::{Glyphs, Paint, tame};
pub use plan::{DrainInShort, GatesReport, PlanHead, PlanOrderEntry, PlanOrderReport, PlanReport, order, plan};
pub use post_check::{LineReport, PostCheckReport, Waited, post_check, post_check_markdown};
pub use status::{StatusInput, StatusReport, StatusVerdict, status};
pub use story::{RunDocument, story, verdict};
pub use table::length;
pub use text::{check, since};
pub use window::{ReportDocument, WindowInput, WindowVerdict, is_ripe, name_of, report_text, window_report};
pub use windows::{OpenReport, OpeningReport, WindowsReport, windows};
