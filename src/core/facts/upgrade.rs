//! system-upgrade-controller's kind (`upgrade.cattle.io/v1`).

use super::source::{Namespaces, Source, SourceSpec};
use super::{Condition, Fields, Malformed, Metadata, TriState};
use crate::api::SourceId;

/// A plan: which nodes are upgraded to what, how many at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Name, namespace, deletion.
    pub metadata: Metadata,
    /// `spec.concurrency`: nodes at a time; the API leaves zero out, with which nothing is ever begun.
    pub concurrency: i64,
    /// `status.applying`: names of the nodes that it is at work on; the API leaves the empty list out.
    pub applying: Vec<String>,
    /// `status.conditions`
    pub conditions: Vec<Condition>,
}

impl Plan {
    /// Condition `Complete`: all selected nodes have the latest version. None from releases before they had it, and of a
    /// plan whose specification is refused.
    #[must_use]
    pub fn complete(&self) -> Option<&Condition> {
        self.conditions.iter().find(|one| one.kind == "Complete")
    }

    /// It is not complete, and may begin with a node without anybody's doing: when its window opens, or when it is tried
    /// again.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.concurrency > 0 && self.complete().is_some_and(|complete| complete.status != TriState::True)
    }
}

impl Source for Plan {
    const SPEC: SourceSpec = SourceSpec {
        id: SourceId::UpgradePlans,
        group: "upgrade.cattle.io",
        version: "v1",
        kind: "Plan",
        resource: "plans",
        namespaces: Namespaces::All,
        label_selector: None,
        max_age_seconds: 30,
        built_in: false,
    };

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        // Without a status its controller has not looked at it yet, and may begin this very second: not understood.
        let (spec, status) = (root.object("spec")?, root.object("status")?);
        Ok(Self {
            metadata: Metadata::of(root)?,
            concurrency: spec.optional_i64("concurrency")?.unwrap_or(0),
            applying: status.strings("applying")?,
            conditions: Condition::list(&status)?,
        })
    }
}
