//! What maint knows of kured: its version and flags as it reads them itself, its window, where its lock is, the lock's
//! two formats, how maint holds it, what kured hears when it asks, and what comes of its question.

pub mod alerts;
pub mod answer;
mod duration;
pub mod filter;
mod flag;
mod flags;
pub mod hold;
mod installation;
mod judge;
pub mod lock;
mod look;
mod place;
pub mod question;
pub mod release;
mod selectors;
mod version;
mod window;
pub mod wish;
mod words;

pub use flag::{Flag, Kind as FlagKind, Spec as FlagSpec};
pub use flags::{FlagProblem, Flags, Origin as FlagOrigin};
pub use installation::{Installation, installations, pods_of};
pub use judge::{Advice, filters_alerts, gated_by_us, is_gated, judge, strips_the_lock};
pub use look::{Holder, Seen, look};
pub use place::{Place, Places, container_of, kured_container, lock_annotations, places, places_of};
pub use selectors::pod_selectors;
pub use version::{UnknownVersion, Version};
pub use window::Window;
