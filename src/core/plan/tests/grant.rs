//! kured's grant.
