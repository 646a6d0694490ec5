//! What people and programs are told.

pub mod matrix;
