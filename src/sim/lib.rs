//! The simulated cluster of maint.
