//! What maint knows of kured: where its lock is, the lock's two formats, how maint holds it, what kured hears when it
//! asks, and what comes of its question.

pub mod alerts;
pub mod answer;
pub mod hold;
pub mod lock;
mod place;
pub mod question;
pub mod wish;

pub use place::{Place, Places, filters_alerts, is_gated, places};
