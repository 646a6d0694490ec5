//! The typed shell: the engine's ports on the store itself, without HTTP and without text, for the mass of nights.
//!
//! What lies above the ports is the service as it runs on a real cluster: observer, prober, writer, drivers, elector.
//! What lies below is the same store behind the same [`Passage`], so that servers are cut, faults befall and writes
//! leave steps in the trace as in the shell with the real client. Three things differ: an object is decoded once a
//! change instead of once a look ([`Decoded`]), a list is one page however long, and a read leaves no step in the
//! trace, only its mark in the hash.

mod calls;
mod decoded;
mod lease;
mod reader;
mod records;
mod servers;
#[cfg(test)]
mod tests;
mod watches;

use std::sync::Arc;

use jiff::Timestamp;
use maint_engine::client::Rotation;
use maint_engine::runtime::Clock;

pub use calls::TypedCalls;
pub use decoded::Decoded;
pub use lease::TypedLease;
pub use reader::TypedReader;
pub use records::TypedRecords;
pub use servers::{TypedServer, TypedServers};
pub use watches::TypedWatches;

use crate::store::http::{Cluster, Inner};
use crate::store::passage::{Passage, Served};

/// A client's ways to the API: the one that answered last is taken, as with the real client.
#[derive(Clone)]
pub struct Ways {
    cluster: Arc<Cluster>,
    client: &'static str,
    order: Vec<usize>,
    rotation: Rotation,
    clock: Clock,
}

impl Ways {
    /// Ways through these API servers, the first one first, for a client that trace and faults know by this name.
    #[must_use]
    pub fn new(cluster: Arc<Cluster>, client: &'static str, order: Vec<usize>, clock: Clock) -> Self {
        Self { cluster, client, order, rotation: Rotation::default(), clock }
    }

    /// Asks by the way whose turn it is.
    async fn pass<S: Served>(&self, asked: &S) -> Result<S::Answer, String> {
        self.pass_with(asked, |_, answer| answer).await
    }

    /// The same; `keep` also gets the API server that answered.
    async fn pass_with<S: Served, T>(&self, asked: &S, keep: impl FnOnce(usize, S::Answer) -> T) -> Result<T, String> {
        let turn = self.rotation.turn(self.order.len());
        let server = turn.way().and_then(|way| self.order.get(way)).copied();
        let server = server.ok_or("no way to the API is known")?;
        let answer = pass(&self.cluster, server, self.client, asked).await?;
        turn.answered();
        Ok(keep(server, answer))
    }
}

/// Asks one API server. Others have their turn while the question is on its way, so that whoever reads and then writes
/// can be overtaken in between, as with a real connection; no time passes.
async fn pass<S: Served>(cluster: &Cluster, server: usize, client: &str, asked: &S) -> Result<S::Answer, String> {
    tokio::task::yield_now().await;
    let answer = Passage { cluster, server, client, user: client }.pass(asked).await;
    answer.map_err(|kind| std::io::Error::from(kind).to_string())
}

/// A read in the trace: no step, but the hash shows who read what, when, in which state, and with which code.
fn note(inner: &mut Inner, way: &Passage<'_>, what: &str, code: u16, at: Timestamp) {
    let state = inner.store.revision().to_be_bytes();
    let time = at.as_nanosecond().to_be_bytes();
    inner.trace.note(&[way.client.as_bytes(), what.as_bytes(), &state, &code.to_be_bytes(), &time]);
}
