//! kured's lock annotation: both formats, unknown fields kept, garbage told.
