//! Pods: those of the DNS namespace, those on the target, and the ones that act on a node.

mod place;

use super::source::{Namespaces, Source, SourceSpec};
use super::{Condition, Fields, Malformed, Metadata, OwnerReference, TriState};
use crate::api::{SourceId, names};

pub use place::{EmptyDir, Place};

/// `spec.terminationGracePeriodSeconds` of a pod that does not say.
const DEFAULT_GRACE_SECONDS: i64 = 30;

/// A Pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Name, namespace, labels, deletion.
    pub metadata: Metadata,
    /// `spec.nodeName`; none while it is not scheduled.
    pub node_name: Option<String>,
    /// `status.phase`
    pub phase: String,
    /// `status.conditions`
    pub conditions: Vec<Condition>,
    /// The controlling `ownerReference`; none for a bare pod.
    pub controller: Option<OwnerReference>,
    /// How often its containers restarted, in all (`status.containerStatuses[].restartCount`).
    pub restarts: i64,
    /// `status.podIPs`, or `status.podIP` where only that is there; the node's own addresses with host network.
    pub ips: Vec<String>,
    /// A static pod's mirror (annotation `kubernetes.io/config.mirror`): the API cannot end it.
    pub mirror: bool,
    /// `metadata.finalizers`: while there is one, an ended pod stays in the list.
    pub finalizers: Vec<String>,
    /// `spec.priority`; 0 where it is not set (no admission plugin set one).
    pub priority: i64,
    /// `spec.priorityClassName`
    pub priority_class: Option<String>,
    /// `spec.terminationGracePeriodSeconds`; 30 where it is not set (PodSpec, core/v1).
    pub grace_seconds: i64,
    /// `metadata.deletionGracePeriodSeconds`, once it is ending.
    pub deletion_grace_seconds: Option<i64>,
    /// What ties it to its node, and what is lost when it goes.
    pub place: Place,
}

impl Pod {
    /// The row of all pods on the target, read with `spec.nodeName=<target>`.
    pub const ON_TARGET: SourceSpec = SourceSpec {
        id: SourceId::TargetPods,
        namespaces: Namespaces::OnTarget,
        label_selector: None,
        ..<Self as Source>::SPEC
    };
    /// The row of the pods that act on nodes.
    pub const ACTIONS: SourceSpec = SourceSpec {
        id: SourceId::ActionPods,
        namespaces: Namespaces::Actions,
        label_selector: None,
        max_age_seconds: 10,
        ..<Self as Source>::SPEC
    };

    /// The row of the pods without a node, read with `spec.nodeName=` and `status.phase=Pending`.
    pub const UNSCHEDULED: SourceSpec = SourceSpec {
        id: SourceId::UnscheduledPods,
        namespaces: Namespaces::Unscheduled,
        label_selector: None,
        ..<Self as Source>::SPEC
    };

    /// The row of maint's own pods.
    pub const OWN: SourceSpec = SourceSpec {
        id: SourceId::OwnPods,
        namespaces: Namespaces::Own,
        label_selector: Some("app.kubernetes.io/name=maint"),
        max_age_seconds: 10,
        ..<Self as Source>::SPEC
    };

    /// The row of the pods that CloudNativePG made, wherever they run.
    pub const CNPG: SourceSpec = SourceSpec {
        id: SourceId::CnpgPods,
        namespaces: Namespaces::All,
        label_selector: Some("cnpg.io/cluster"),
        ..<Self as Source>::SPEC
    };

    /// The row of the pods that network agents run in, wherever they are.
    pub const NETWORK_AGENTS: SourceSpec = SourceSpec {
        id: SourceId::NetworkAgentPods,
        namespaces: Namespaces::OfNetworkAgents,
        label_selector: None,
        ..<Self as Source>::SPEC
    };

    /// Condition Ready is True, and it is not being deleted.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.says_ready() && !self.is_ending() && !self.is_finished()
    }

    /// Condition Ready is True, whatever else: what the eviction API asks.
    #[must_use]
    pub fn says_ready(&self) -> bool {
        self.conditions.iter().any(|one| one.kind == "Ready" && one.status == TriState::True)
    }

    /// Why the scheduler finds no node for it (condition `PodScheduled` False with reason `Unschedulable`); none where it
    /// has one, or was not tried yet.
    #[must_use]
    pub fn unschedulable(&self) -> Option<&str> {
        let says = |one: &&Condition| {
            one.kind == "PodScheduled" && one.status == TriState::False && one.reason == "Unschedulable"
        };
        let waits = self.node_name.is_none() && !self.is_ending() && !self.is_finished();
        self.conditions.iter().find(says).filter(|_| waits).map(|one| one.message.as_str())
    }

    /// It is being deleted.
    #[must_use]
    pub const fn is_ending(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Its controller is of this kind.
    #[must_use]
    pub fn is_of(&self, kind: &str) -> bool {
        self.controller.as_ref().is_some_and(|controller| controller.kind == kind)
    }

    /// A pod of maint itself: in its namespace and with its label.
    #[must_use]
    pub fn is_own(&self, namespace: &str) -> bool {
        let (label, value) = names::LABEL_OWN_PODS;
        self.metadata.namespace == namespace && self.metadata.labels.get(label).is_some_and(|found| found == value)
    }

    /// Succeeded or Failed: it runs no more.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        matches!(self.phase.as_str(), "Succeeded" | "Failed")
    }
}

impl Source for Pod {
    const SPEC: SourceSpec = SourceSpec {
        id: SourceId::DnsPods,
        group: "",
        version: "v1",
        kind: "Pod",
        resource: "pods",
        namespaces: Namespaces::Dns,
        label_selector: Some("k8s-app=kube-dns"),
        max_age_seconds: 30,
        built_in: true,
    };

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let (metadata, spec, status) = (root.object("metadata")?, root.object("spec")?, root.object("status")?);
        Ok(Self {
            metadata: Metadata::of(root)?,
            node_name: spec.optional_str("nodeName")?.map(str::to_owned),
            phase: status.optional_str("phase")?.unwrap_or_default().to_owned(),
            conditions: Condition::list(&status)?,
            controller: OwnerReference::list(&metadata)?.into_iter().find(|owner| owner.controller),
            restarts: restarts(&status)?,
            ips: ips(&status)?,
            mirror: metadata.string_map("annotations")?.contains_key("kubernetes.io/config.mirror"),
            finalizers: metadata.strings("finalizers")?,
            priority: spec.optional_i64("priority")?.unwrap_or_default(),
            priority_class: spec.optional_str("priorityClassName")?.map(str::to_owned),
            grace_seconds: spec.optional_i64("terminationGracePeriodSeconds")?.unwrap_or(DEFAULT_GRACE_SECONDS),
            deletion_grace_seconds: metadata.optional_i64("deletionGracePeriodSeconds")?,
            place: Place::of(&spec)?,
        })
    }
}

fn restarts(status: &Fields<'_>) -> Result<i64, Malformed> {
    let statuses = status.objects("containerStatuses")?;
    statuses.iter().try_fold(0_i64, |sum, one| Ok(sum.saturating_add(one.i64("restartCount")?)))
}

fn ips(status: &Fields<'_>) -> Result<Vec<String>, Malformed> {
    let mut found = Vec::new();
    for entry in status.objects("podIPs")? {
        found.push(entry.str("ip")?.to_owned());
    }
    if found.is_empty() {
        found.extend(status.optional_str("podIP")?.map(str::to_owned));
    }
    Ok(found)
}
