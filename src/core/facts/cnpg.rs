//! CloudNativePG's kinds (`postgresql.cnpg.io/v1`).
//!
//! Where its types have `omitempty`, a missing number is zero and a missing name is none: that is written at the
//! field, and each such default is the one that stops rather than the one that lets go.

use super::source::{Namespaces, Source, SourceSpec};
use super::{Condition, Fields, Malformed, Metadata, TriState};
use crate::api::SourceId;

/// A PostgreSQL cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of its own in the API, and any of them may be set")]
pub struct Cluster {
    /// Name, namespace, deletion.
    pub metadata: Metadata,
    /// `spec.instances`, at least 1.
    pub instances: i64,
    /// Whether budgets keep its primary: `spec.enablePDB` (1.23; unset means true), and for a single instance no
    /// `spec.nodeMaintenanceWindow.inProgress` either.
    pub budget: bool,
    /// It follows another cluster: `spec.replica.enabled`, or in the distributed form `spec.replica.primary` names
    /// another cluster than this one (`spec.replica.self`, by default its own name).
    pub replica_cluster: bool,
    /// Annotation `cnpg.io/fencedInstances` names an instance, or `*`.
    pub fenced: bool,
    /// Annotation `cnpg.io/hibernation` is `on`.
    pub hibernated: bool,
    /// `status.readyInstances`; the API leaves zero out.
    pub ready_instances: i64,
    /// `status.phase`: English text, for sentences only.
    pub phase: String,
    /// `status.currentPrimary`; empty where there is none.
    pub current_primary: String,
    /// `status.targetPrimary`; empty where there is none.
    pub target_primary: String,
    /// `status.conditions`
    pub conditions: Vec<Condition>,
}

impl Cluster {
    /// What condition Ready says; none where it is not there.
    #[must_use]
    pub fn ready(&self) -> Option<TriState> {
        self.conditions.iter().find(|one| one.kind == "Ready").map(|one| one.status)
    }
}

impl Source for Cluster {
    const SPEC: SourceSpec = SourceSpec {
        id: SourceId::CnpgClusters,
        group: "postgresql.cnpg.io",
        version: "v1",
        kind: "Cluster",
        resource: "clusters",
        namespaces: Namespaces::All,
        label_selector: None,
        max_age_seconds: 30,
        built_in: false,
    };

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let (spec, status) = (root.object("spec")?, root.object("status")?);
        let metadata = Metadata::of(root)?;
        if metadata.namespace.is_empty() {
            return Err(root.malformed("metadata.namespace", "is missing"));
        }
        let annotations = root.object("metadata")?.string_map("annotations")?;
        let instances = spec.i64("instances")?;
        if instances < 1 {
            return Err(spec.malformed("instances", format!("is {instances}, wanted at least 1")));
        }
        let window = spec.optional_object("nodeMaintenanceWindow")?;
        let window = window.map_or(Ok(None), |window| window.optional_bool("inProgress"))?.unwrap_or(false);
        let text = |key: &str| Ok(status.optional_str(key)?.unwrap_or_default().to_owned());
        Ok(Self {
            instances,
            budget: spec.optional_bool("enablePDB")?.unwrap_or(true) && !(window && instances == 1),
            replica_cluster: replica_cluster(&spec, &metadata.name)?,
            fenced: annotations
                .get("cnpg.io/fencedInstances")
                .is_some_and(|list| !matches!(list.trim(), "" | "[]" | "null")),
            hibernated: annotations.get("cnpg.io/hibernation").is_some_and(|value| value == "on"),
            ready_instances: status.optional_i64("readyInstances")?.unwrap_or(0),
            phase: text("phase")?,
            current_primary: text("currentPrimary")?,
            target_primary: text("targetPrimary")?,
            conditions: Condition::list(&status)?,
            metadata,
        })
    }
}

fn replica_cluster(spec: &Fields<'_>, name: &str) -> Result<bool, Malformed> {
    let Some(replica) = spec.optional_object("replica")? else { return Ok(false) };
    let enabled = replica.optional_bool("enabled")?;
    let primary = replica.optional_str("primary")?.unwrap_or_default();
    let own = replica.optional_str("self")?.unwrap_or(name);
    Ok(enabled.unwrap_or(!primary.is_empty() && primary != own))
}
