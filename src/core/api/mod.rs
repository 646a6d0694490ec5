//! Every name that is a contract: gate ids, reasons, sources, annotations, JSON kinds.
//!
//! Renaming anything here is a breaking change for configuration files, dashboards and scripts.

mod crds;
mod finding;
mod gate;
pub mod names;
mod owner;
mod phase;
mod reason;
pub mod record;
pub mod rights;
mod source;

pub use crds::crds;
pub use finding::{Evidence, Finding, Status};
pub(crate) use gate::names;
pub use gate::{GateId, Moment, Policy, Strategy, Trigger, UnknownName};
pub use owner::{Asked, Document, Halt, Hold, Owner, Proven, QuestionSource, UnreadableDocument, is_over};
pub use phase::{Action, MessageKind, Outcome, Phase};
pub use reason::Reason;
pub use source::SourceId;
