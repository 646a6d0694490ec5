//! The pods that run kured, on all nodes: what a running process was started with counts, not what the template says.
//!
//! Which pods these are is known from the DaemonSets alone: kured's manifest labels them `name=kured`, its chart
//! `app.kubernetes.io/name=kured` (or what `nameOverride` says), older charts `app=kured`, and one selector cannot join
//! two keys. So the DaemonSets that run kured are read first, and the pods are listed in their namespaces with their own
//! selectors: exact for every installation, and no list of all pods of the cluster.

use super::source::{Namespaces, Source, SourceSpec};
use super::{Condition, Container, Fields, Malformed, Metadata, TriState};
use crate::api::SourceId;

/// A pod of kured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KuredPod {
    /// Name, namespace, uid, labels, deletion.
    pub metadata: Metadata,
    /// `spec.nodeName`; none while it is not scheduled.
    pub node_name: Option<String>,
    /// `spec.containers`, with command, arguments and environment.
    pub containers: Vec<Container>,
    /// `status.phase`
    pub phase: String,
    /// `status.conditions`
    pub conditions: Vec<Condition>,
    /// `status.podIP`; none while it has none.
    pub ip: Option<String>,
    /// Restart counts of `status.containerStatuses` by container name.
    pub restarts: Vec<(String, i64)>,
    /// Label `controller-revision-hash`, which the DaemonSet controller gives each pod: the revision of its template.
    pub revision: Option<String>,
    /// Name of the DaemonSet that controls it; none for a pod of anything else.
    pub daemon_set: Option<String>,
}

impl KuredPod {
    /// Condition Ready is True, it runs, and it is not being deleted.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.phase == "Running"
            && self.metadata.deletion_timestamp.is_none()
            && self.conditions.iter().any(|one| one.kind == "Ready" && one.status == TriState::True)
    }

    /// Succeeded or Failed: it runs no more.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        matches!(self.phase.as_str(), "Succeeded" | "Failed")
    }
}

impl Source for KuredPod {
    const SPEC: SourceSpec = SourceSpec {
        id: SourceId::KuredPods,
        group: "",
        version: "v1",
        kind: "Pod",
        resource: "pods",
        namespaces: Namespaces::OfKured,
        label_selector: None,
        max_age_seconds: 30,
        built_in: true,
    };

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let metadata = Metadata::of(root)?;
        let (spec, status) = (root.object("spec")?, root.object("status")?);
        let mut restarts = Vec::new();
        for container in status.objects("containerStatuses")? {
            restarts.push((container.str("name")?.to_owned(), container.i64("restartCount")?));
        }
        let mut daemon_set = None;
        for owner in root.object("metadata")?.objects("ownerReferences")? {
            if owner.optional_bool("controller")?.unwrap_or(false) && owner.str("kind")? == "DaemonSet" {
                daemon_set = Some(owner.str("name")?.to_owned());
            }
        }
        Ok(Self {
            revision: metadata.labels.get("controller-revision-hash").cloned(),
            metadata,
            node_name: spec.optional_str("nodeName")?.map(str::to_owned),
            containers: Container::list(&spec)?,
            phase: status.optional_str("phase")?.unwrap_or_default().to_owned(),
            conditions: Condition::list(&status)?,
            ip: status.optional_str("podIP")?.map(str::to_owned),
            restarts,
            daemon_set,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::facts::Item;

    fn document() -> Value {
        json!({
            "metadata": {
                "name": "kured-x7k2m", "namespace": "kube-system", "uid": "u-1",
                "labels": {"name": "kured", "controller-revision-hash": "6f5d"},
                "ownerReferences": [{"kind": "DaemonSet", "name": "kured", "controller": true}],
            },
            "spec": {"nodeName": "worker2", "containers": [
                {"name": "kured", "image": "ghcr.io/kubereboot/kured:1.23.0", "command": ["/usr/bin/kured", "--period=1m"]},
            ]},
            "status": {
                "phase": "Running", "podIP": "10.42.1.9", "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [{"name": "kured", "restartCount": 3}],
            },
        })
    }

    #[test]
    fn a_running_pod_tells_what_it_was_started_with() {
        let Item::Good(pod) = KuredPod::item(&document()) else { panic!("it can be understood") };
        assert_eq!((pod.node_name.as_deref(), pod.ip.as_deref()), (Some("worker2"), Some("10.42.1.9")));
        assert_eq!((pod.revision.as_deref(), pod.daemon_set.as_deref()), (Some("6f5d"), Some("kured")));
        assert_eq!(pod.restarts, [("kured".to_owned(), 3)]);
        assert_eq!(pod.containers[0].command[1], "--period=1m");
        assert!(pod.is_ready());
    }

    #[test]
    fn ready_is_only_what_runs_and_is_not_on_its_way_out() {
        let rows: [(&str, &str, Value); 4] = [
            ("pending", "/status/phase", json!("Pending")),
            ("finished", "/status/phase", json!("Succeeded")),
            ("not ready", "/status/conditions/0/status", json!("False")),
            ("odd", "/status/conditions/0/type", json!("Initialized")),
        ];
        for (row, path, value) in rows {
            let mut bent = document();
            *bent.pointer_mut(path).expect(row) = value;
            let Item::Good(pod) = KuredPod::item(&bent) else { panic!("{row}") };
            assert!(!pod.is_ready(), "{row}");
        }
        let mut leaving = document();
        leaving["metadata"]["deletionTimestamp"] = json!("2026-11-30T01:00:00Z");
        let Item::Good(pod) = KuredPod::item(&leaving) else { panic!("leaving") };
        assert!(!pod.is_ready());
    }

    #[test]
    fn what_is_missing_or_odd_is_malformed() {
        let rows = [("/spec", "spec"), ("/status", "status"), ("/status/containerStatuses/0/restartCount", "restart")];
        for (path, row) in rows {
            let mut bent = document();
            *bent.pointer_mut(path).expect(row) = json!("odd");
            assert!(matches!(KuredPod::item(&bent), Item::Malformed(_)), "{row}");
        }
    }
}
