//! The target's pods as its drain sees them. Shared by the gates about them.

use super::listing::built_in;
use super::{Draft, GateInput};
use crate::api::{Evidence, Reason, SourceId};
use crate::config::Settings;
use crate::drain::{Question, View};
use crate::facts::Pod;

/// What [`view`] needs to be read. Without the workloads behind the pods: all ReplicaSets of a large cluster, read at
/// every look of a waiting run, would be a high price for a warning; `maint plan` reads them.
pub(super) const READS: &[SourceId] =
    &[SourceId::Nodes, SourceId::TargetPods, SourceId::PodDisruptionBudgets, SourceId::DaemonSets];

/// Looks at the target's pods. None, with the unknown in the draft, where they could not be read. maint's own pods
/// that act on nodes are none of the drain's business.
pub(super) fn view<'a>(draft: &mut Draft<'a>, input: &'a GateInput<'a>) -> Option<View<'a>> {
    built_in(draft, SourceId::TargetPods, &input.facts.target_pods)?;
    let question = Question {
        node: input.target,
        settings: input.settings,
        action: input.run.and_then(|run| run.action),
        now: input.now,
    };
    match View::of(input.facts, &question, |pod| acts_on_nodes(input.settings, pod)) {
        Ok(view) => Some(view),
        Err(why) => {
            if !draft.stops() {
                let evidence = Evidence::new(SourceId::TargetPods.as_str(), "read", "not understood", "a list");
                draft.unknown(Reason::ObservationMalformed, why, evidence);
            }
            None
        }
    }
}

/// Whether a pod is one of those by which maint acts on nodes: none of a drain's business.
pub(crate) fn acts_on_nodes(settings: &Settings, pod: &Pod) -> bool {
    [&settings.action.pod.namespace, &settings.kured.sentinel.namespace].contains(&&pod.metadata.namespace)
}

#[cfg(test)]
pub(super) mod testing {
    use serde_json::{Value, json};

    /// A Ready pod of a Deployment on `worker2`.
    pub(in crate::gates) fn pod(name: &str) -> Value {
        json!({
            "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"), "labels": {"app": "web"},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "uid-web-1", "controller": true}]},
            "spec": {"nodeName": "worker2", "terminationGracePeriodSeconds": 30},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        })
    }

    /// The same of DaemonSet `agent`, as `with_kured` has its DaemonSets: by name.
    pub(in crate::gates) fn daemon(name: &str, owner: &str) -> Value {
        let mut pod = pod(name);
        pod["metadata"]["ownerReferences"] = json!([
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": owner, "uid": format!("uid-{owner}"), "controller": true}
        ]);
        pod
    }

    /// A DaemonSet.
    pub(in crate::gates) fn daemon_set(name: &str) -> Value {
        json!({
            "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}")},
            "spec": {"template": {"spec": {"containers": [{"name": name, "image": "agent:1"}]}}},
            "status": {"desiredNumberScheduled": 3, "numberReady": 3},
        })
    }

    /// A budget over `app=web` that wants `desired` of `healthy` pods.
    pub(in crate::gates) fn budget(name: &str, desired: i64, healthy: i64, expected: i64) -> Value {
        json!({
            "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"), "generation": 1},
            "spec": {"minAvailable": desired, "selector": {"matchLabels": {"app": "web"}}},
            "status": {"observedGeneration": 1, "disruptionsAllowed": (healthy - desired).max(0), "currentHealthy": healthy,
                "desiredHealthy": desired, "expectedPods": expected},
        })
    }
}
