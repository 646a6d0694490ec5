//! Draining a node, the pure half: which pods go, in which order, what each budget allows, which evictions are sent
//! next, and what the API's answers mean.

mod answer;

pub use answer::{Answer, Answered, Eviction, Lane};
