//! The pure part of maint.
