//! What people and programs are told.

pub(crate) mod conditions;
pub mod matrix;
