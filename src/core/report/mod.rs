//! What people and programs are told: one value per answer, rendered as text or serialised as JSON.
//!
//! A report is made from findings that were really given; nothing here judges again.

mod check;
pub(crate) mod conditions;
pub mod delivery;
pub mod matrix;
mod paint;
mod text;

pub use check::{CheckReport, Clock, FindingReport, NodeReport, NotAsked, Origin, Question};
pub use paint::{Glyphs, Paint};
pub use text::{check, since};
