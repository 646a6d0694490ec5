//! The matrix: which API server reaches which kubelet. Types here, verdicts from probe answers in this folder.

pub mod classify;
pub mod diagnosis;
pub mod history;
pub mod pattern;
#[cfg(test)]
pub(crate) mod testing;

use jiff::Timestamp;
use serde::Serialize;

/// One expected API server and what it said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiServer {
    /// Name: the node it runs on where that is known, else its address.
    pub name: String,
    /// The node it runs on, if known.
    pub node: Option<String>,
    /// `host:port` that it is asked at.
    pub address: String,
    /// Its answer to `/readyz`.
    pub readiness: Readiness,
}

/// An API server's answer to `/readyz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "state")]
pub enum Readiness {
    /// 200.
    Ready,
    /// It answered that it is not ready; `failing` are the named checks, where told.
    NotReady {
        /// Names of failing checks, such as `etcd`.
        failing: Vec<String>,
    },
    /// It does not answer: refused, timed out, TLS.
    Unreachable {
        /// The error's text.
        detail: String,
    },
    /// It answered, and the answer proves nothing: 401, 403, 429 ...
    Unknown {
        /// What it answered.
        detail: String,
    },
}

/// One sweep over all pairs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Matrix {
    /// Rows: API servers by name.
    pub servers: Vec<String>,
    /// Columns: nodes by name.
    pub nodes: Vec<String>,
    /// The cells that were asked, rows first.
    pub cells: Vec<Cell>,
    /// Only the pairs with an end on this node were asked, since the matrix is larger than what is asked in full; none
    /// where every pair was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub around: Option<String>,
    /// When the sweep began.
    pub swept_at: Timestamp,
}

/// One pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cell {
    /// The API server.
    pub server: String,
    /// The node.
    pub node: String,
    /// The API server runs on this very node: k3s reaches its own kubelet without a tunnel.
    pub diagonal: bool,
    /// The verdict.
    pub verdict: CellVerdict,
    /// What was answered, for people.
    pub detail: String,
    /// Time of the fresh dial, in milliseconds.
    pub milliseconds: u64,
}

crate::api::names! {
    /// What a cell says.
    CellVerdict, "cell verdict", {
        /// The fresh dial is whole and the kubelet says it is healthy.
        Green = "green",
        /// The fresh dial failed: no tunnel, no route, or the kubelet is down.
        Broken = "broken",
        /// The path is whole and the kubelet says it is not healthy, or refuses this API server.
        Unhealthy = "unhealthy",
        /// The API server itself does not answer.
        ServerDown = "server-down",
        /// The answer proves nothing: forbidden, throttled, the upgrade header lost.
        Unknown = "unknown",
    }
}

impl Matrix {
    /// The cell of a pair, if it was asked.
    #[must_use]
    pub fn cell(&self, server: &str, node: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.server == server && cell.node == node)
    }
}
