//! Documents in annotations and ConfigMaps: JSON, camelCase, unknown fields allowed.

use serde::{Deserialize, Serialize};

/// `maint.dev/owner` on a Node: whose cordon it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// uid of the Maintenance.
    pub maintenance: String,
    /// The leader's term.
    pub term: i64,
}
