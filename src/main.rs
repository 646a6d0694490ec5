//! maint.
fn main() {}
