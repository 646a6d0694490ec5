//! Where doubles live in the simulated cluster.

pub mod kured;
#[cfg(test)]
mod tests;
