//! maint's drain against `kubectl drain`: the same node, pods and API servers, one after the other in one run.
//!
//! A *cell* (`cell.rs`) says how many pods there are, how long each needs to end, and which budgets hold them. Its pods
//! are put on the node by their ReplicaSets (`workload.rs`), drained by each side in turn (`sides.rs`), and watched by the
//! bench itself (`watch.rs`). What is compared are times of that watch and of the API servers' audit log, and the best
//! time that there could be (`limit.rs`).

pub mod cell;
mod cpu;
mod crowd;
pub mod limit;
pub mod measure;
pub mod memory;
mod profile;
mod sides;
mod watch;
mod workload;
