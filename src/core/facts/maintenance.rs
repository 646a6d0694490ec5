//! maint's own records and reports, as far as the gates read them.

use jiff::Timestamp;

use super::source::{Namespaces, Source, SourceSpec};
use super::{Fields, Malformed, Metadata};
use crate::api::{SourceId, names};

/// A record of maintaining one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Maintenance {
    /// Name and uid.
    pub metadata: Metadata,
    /// `spec.nodeName`
    pub node_name: String,
    /// `status.phase`; no status means Pending, since creating a record drops it.
    pub phase: String,
    /// `status.window.opening`: the opening of a window that an unattended run began in.
    pub opening: Option<String>,
    /// `metadata.creationTimestamp`, the age of the wish; none in a dump that was made without it.
    pub created: Option<Timestamp>,
    /// `spec.trigger`: `manual` or `unattended`.
    pub trigger: String,
    /// `spec.scope`: why.
    pub scope: String,
    /// `spec.action`: who makes the node go down.
    pub action: String,
    /// `spec.strategy`: a stronger one than the scope's, if a person chose one.
    pub strategy: Option<String>,
    /// Whether gates stop it (`status.blockedSince` is set): it is not its turn that it waits for.
    pub blocked: bool,
    /// `status.outcome`: why it ended or waits; empty where it does not say.
    pub outcome: String,
    /// `status.stepStartedAt`: since when it is in its phase.
    pub step_started: Option<Timestamp>,
    /// `status.heldAt`: when it was last held.
    pub held_at: Option<Timestamp>,
}

impl Maintenance {
    /// Whether its node counts as unavailable: from Cordoning to Settling, or Held. Pending is not in flight, and
    /// a phase that this version does not know is taken for one that is.
    #[must_use]
    pub fn in_flight(&self) -> bool {
        !matches!(self.phase.as_str(), "Pending" | "Succeeded" | "Failed" | "Cancelled")
    }
}

impl Source for Maintenance {
    const SPEC: SourceSpec = SourceSpec {
        id: SourceId::Maintenances,
        group: names::GROUP,
        version: "v1alpha1",
        kind: "Maintenance",
        resource: "maintenances",
        namespaces: Namespaces::All,
        label_selector: None,
        max_age_seconds: 30,
        built_in: false,
    };

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let status = root.optional_object("status")?;
        let phase = status.as_ref().map_or(Ok(None), |status| status.optional_str("phase"))?;
        let window = status.as_ref().map_or(Ok(None), |status| status.optional_object("window"))?;
        let opening = window.as_ref().map_or(Ok(None), |window| window.optional_str("opening"))?;
        let spec = root.object("spec")?;
        let text = |key: &str| status.as_ref().map_or(Ok(None), |status| status.optional_str(key));
        let time = |key: &str| status.as_ref().map_or(Ok(None), |status| status.optional_time(key));
        Ok(Self {
            metadata: Metadata::of(root)?,
            node_name: spec.str("nodeName")?.to_owned(),
            created: root.object("metadata")?.optional_time("creationTimestamp")?,
            trigger: spec.optional_str("trigger")?.unwrap_or_default().to_owned(),
            scope: spec.optional_str("scope")?.unwrap_or_default().to_owned(),
            action: spec.optional_str("action")?.unwrap_or_default().to_owned(),
            strategy: spec.optional_str("strategy")?.map(str::to_owned),
            blocked: time("blockedSince")?.is_some(),
            outcome: text("outcome")?.unwrap_or_default().to_owned(),
            step_started: time("stepStartedAt")?,
            held_at: time("heldAt")?,
            phase: phase.unwrap_or("Pending").to_owned(),
            opening: opening.map(str::to_owned),
        })
    }
}

/// A report of a window or a post-check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaintenanceReport {
    /// Name.
    pub metadata: Metadata,
    /// `metadata.creationTimestamp`, which every stored object has: the latest post-check is the one that counts.
    pub created: Timestamp,
    /// `spec.kind`: `window` or `post-check`.
    pub kind: String,
    /// `status.verdict`; none while it is being written.
    pub verdict: Option<String>,
}

impl Source for MaintenanceReport {
    const SPEC: SourceSpec = SourceSpec {
        id: SourceId::MaintenanceReports,
        group: names::GROUP,
        version: "v1alpha1",
        kind: "MaintenanceReport",
        resource: "maintenancereports",
        namespaces: Namespaces::All,
        label_selector: None,
        max_age_seconds: 60,
        built_in: false,
    };

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let status = root.optional_object("status")?;
        let verdict = status.map_or(Ok(None), |status| status.optional_str("verdict"))?;
        let metadata = root.object("metadata")?;
        let created = metadata.optional_time("creationTimestamp")?;
        Ok(Self {
            metadata: Metadata::of(root)?,
            created: created.ok_or_else(|| metadata.malformed("creationTimestamp", "is missing"))?,
            kind: root.object("spec")?.str("kind")?.to_owned(),
            verdict: verdict.map(str::to_owned),
        })
    }
}
