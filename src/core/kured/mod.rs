//! What maint knows of kured: where its lock is, the lock's two formats, and how maint holds it.

pub mod hold;
pub mod lock;
mod place;

pub use place::{Place, Places, places};
