//! What maint knows of kured: the format of its lock.

pub mod lock;
