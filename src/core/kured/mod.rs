//! What maint knows of kured: its version and flags as it reads them itself, its window, where its lock is, the lock's
//! two formats, and how maint holds it.

mod duration;
mod flag;
mod flags;
pub mod hold;
pub mod lock;
mod place;
mod version;
mod window;
mod words;

pub use flag::{Flag, Kind as FlagKind, Spec as FlagSpec};
pub use flags::{FlagProblem, Flags, Origin as FlagOrigin};
pub use place::{Place, Places, places};
pub use version::{UnknownVersion, Version};
pub use window::Window;
