//! The documents under the keys of `maint-state`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The last known good API servers: a JSON object from name to `host:port`.
///
/// # Errors
/// If it is anything else.
pub fn parse_api_servers(text: &str) -> Result<BTreeMap<String, String>, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// A full sweep of the matrix in which every cell was green.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GreenMatrix {
    /// When it was swept.
    pub at: Timestamp,
    /// API servers.
    pub servers: usize,
    /// Nodes.
    pub nodes: usize,
    /// `9/9`
    pub line: String,
}

impl GreenMatrix {
    /// Reads it.
    ///
    /// # Errors
    /// If the text is something else.
    pub fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// The same but for the time.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        (self.servers, self.nodes, &self.line) == (other.servers, other.nodes, &other.line)
    }
}

/// Since when a finding about the cluster is so. Gate and reason are words of the version that wrote it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SinceEntry {
    /// Gate id.
    pub gate: String,
    /// Reason.
    pub reason: String,
    /// `Kind namespace/name` of the evidence.
    pub object: String,
    /// When it was seen first.
    pub since: Timestamp,
}

impl SinceEntry {
    /// Reads a list.
    ///
    /// # Errors
    /// If the text is something else.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }
}

/// The text of a document. What is kept here are maps of strings and flat structs, which always have one.
pub(super) fn text(document: &impl Serialize) -> String {
    serde_json::to_string(document).unwrap_or_default()
}
