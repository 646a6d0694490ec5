//! The I/O of maint.
