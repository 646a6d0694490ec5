//! Pods: those of the DNS namespace, those on the target, and the ones that act on a node.

use super::source::{Namespaces, Source, SourceSpec};
use super::{Condition, Fields, Malformed, Metadata, TriState};
use crate::api::{SourceId, names};

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
    /// Kind and name of the controlling `ownerReference`; none for a bare pod.
    pub controller: Option<(String, String)>,
    /// How often its containers restarted, in all (`status.containerStatuses[].restartCount`).
    pub restarts: i64,
    /// `status.podIPs`, or `status.podIP` where only that is there; the node's own addresses with host network.
    pub ips: Vec<String>,
    /// A static pod's mirror (annotation `kubernetes.io/config.mirror`): the API cannot end it.
    pub mirror: bool,
}

impl Pod {
    /// The row of all pods on the target, read with `spec.nodeName=<target>`.
    pub const ON_TARGET: SourceSpec = SourceSpec {
        id: SourceId::TargetPods,
        namespaces: Namespaces::OnTarget,
        label_selector: None,
        max_age_seconds: 10,
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

    /// The row of maint's own pods.
    pub const OWN: SourceSpec = SourceSpec {
        id: SourceId::OwnPods,
        namespaces: Namespaces::Own,
        label_selector: Some("app.kubernetes.io/name=maint"),
        max_age_seconds: 10,
        ..<Self as Source>::SPEC
    };

    /// Condition Ready is True, and it is not being deleted.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let ready = self.conditions.iter().any(|one| one.kind == "Ready" && one.status == TriState::True);
        ready && self.metadata.deletion_timestamp.is_none() && !self.is_finished()
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

    /// Whether a drain moves it: not finished, no mirror, not of a DaemonSet.
    #[must_use]
    pub fn must_go(&self) -> bool {
        let daemon = self.controller.as_ref().is_some_and(|(kind, _)| kind == "DaemonSet");
        !(self.is_finished() || self.mirror || daemon)
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
        let status = root.object("status")?;
        Ok(Self {
            metadata: Metadata::of(root)?,
            node_name: root.object("spec")?.optional_str("nodeName")?.map(str::to_owned),
            phase: status.optional_str("phase")?.unwrap_or_default().to_owned(),
            conditions: Condition::list(&status)?,
            controller: controller(&root.object("metadata")?)?,
            restarts: restarts(&status)?,
            ips: ips(&status)?,
            mirror: root.object("metadata")?.string_map("annotations")?.contains_key("kubernetes.io/config.mirror"),
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

fn controller(metadata: &Fields<'_>) -> Result<Option<(String, String)>, Malformed> {
    for owner in metadata.objects("ownerReferences")? {
        if owner.optional_bool("controller")?.unwrap_or(false) {
            return Ok(Some((owner.str("kind")?.to_owned(), owner.str("name")?.to_owned())));
        }
    }
    Ok(None)
}
