//! Spoils documents path by path: what stops must not become fine because a field is gone or odd.

use serde_json::{Value, json};

use super::{Case, World, alerts, known, longhorn};
use crate::api::{SourceId, Status};
use crate::facts::Facts;
use crate::gates::GateSpec;

/// Every way to spoil one path of a document: each member and list entry deleted, set to null, and given another
/// type. The text names the path and the deed: `spec.replicas nulled`.
pub(crate) fn mutations(document: &Value) -> Vec<(String, Value)> {
    let mut pointers = Vec::new();
    collect(document, "", &mut pointers);
    let mut all = Vec::new();
    for pointer in pointers {
        let told = pointer.trim_start_matches('/').replace('/', ".").replace("~1", "/");
        for (deed, change) in [("deleted", delete as fn(&mut Value, &str)), ("nulled", null), ("retyped", retype)] {
            let mut spoilt = document.clone();
            change(&mut spoilt, &pointer);
            if spoilt != *document {
                all.push((format!("{told} {deed}"), spoilt));
            }
        }
    }
    all
}

fn collect(value: &Value, at: &str, into: &mut Vec<String>) {
    let members: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, value)| (key.replace('/', "~1"), value)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect(),
        _ => vec![],
    };
    for (key, member) in members {
        let pointer = format!("{at}/{key}");
        collect(member, &pointer, into);
        into.push(pointer);
    }
}

fn delete(document: &mut Value, pointer: &str) {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    match document.pointer_mut(parent).expect("a parent") {
        Value::Object(map) => drop(map.remove(&key.replace("~1", "/"))),
        Value::Array(list) => drop(list.remove(key.parse().expect("an index"))),
        _ => {}
    }
}

fn null(document: &mut Value, pointer: &str) {
    *document.pointer_mut(pointer).expect("a value") = Value::Null;
}

fn retype(document: &mut Value, pointer: &str) {
    let value = document.pointer_mut(pointer).expect("a value");
    *value = if value.is_string() { json!(7) } else { json!("odd") };
}

/// Spoils every path of every document that a gate reads, one at a time, in a world where the gate blocks; `shape`
/// makes the rest of the case. Returns what no longer stops: each must be allowed for a reason of its own, such as a
/// default that Kubernetes itself defines.
pub(crate) fn survivors(gate: &GateSpec, world: &World, shape: impl FnOnce(&mut Case)) -> Vec<String> {
    let mut case = world.clone().case();
    shape(&mut case);
    let stands = case.ask(gate);
    assert_eq!(stands.status, Status::Block, "the fixture blocks: {}", stands.message);
    let whole = case.facts.clone();
    let mut left = Vec::new();
    for source in gate.reads {
        let documents = world.0.get(source).map(Vec::as_slice).unwrap_or_default();
        for (index, document) in documents.iter().enumerate() {
            let name = document["metadata"]["name"].as_str().unwrap_or("?");
            let mut list = documents.to_vec();
            for (told, spoilt) in mutations(document) {
                list[index] = spoilt;
                case.facts = whole.clone();
                list_anew(&mut case.facts, *source, &list);
                if !case.ask(gate).stops() {
                    left.push(format!("{source} {name}: {told}"));
                }
            }
        }
    }
    left
}

/// Puts documents in the place of one list.
fn list_anew(facts: &mut Facts, source: SourceId, documents: &[Value]) {
    match source {
        SourceId::Nodes => facts.nodes = known(documents),
        SourceId::Leases => facts.leases = known(documents),
        SourceId::DaemonSets => facts.daemon_sets = known(documents),
        SourceId::Services => facts.services = known(documents),
        SourceId::EndpointSlices => facts.endpoint_slices = known(documents),
        SourceId::DnsPods => facts.dns_pods = known(documents),
        SourceId::TargetPods => facts.target_pods = known(documents),
        SourceId::ActionPods => facts.action_pods = known(documents),
        SourceId::UnscheduledPods => facts.unscheduled_pods = known(documents),
        SourceId::OwnPods => facts.own_pods = known(documents),
        SourceId::KuredPods => facts.kured_pods = known(documents),
        SourceId::Deployments => facts.deployments = known(documents),
        SourceId::StatefulSets => facts.stateful_sets = known(documents),
        SourceId::ReplicaSets => facts.replica_sets = known(documents),
        SourceId::HorizontalPodAutoscalers => facts.horizontal_pod_autoscalers = known(documents),
        SourceId::PodDisruptionBudgets => facts.pod_disruption_budgets = known(documents),
        SourceId::LonghornVolumes => facts.longhorn_volumes = known(documents),
        SourceId::LonghornReplicas => facts.longhorn_replicas = known(documents),
        SourceId::LonghornEngines => facts.longhorn_engines = known(documents),
        SourceId::LonghornSettings => facts.longhorn_settings = known(documents),
        SourceId::CnpgClusters => facts.cnpg_clusters = known(documents),
        SourceId::CnpgPods => facts.cnpg_pods = known(documents),
        SourceId::NetworkAgentPods => facts.network_agent_pods = known(documents),
        SourceId::CiliumNodes => facts.cilium_nodes = known(documents),
        SourceId::UpgradePlans => facts.upgrade_plans = known(documents),
        SourceId::Jobs => facts.jobs = known(documents),
        SourceId::FluxKustomizations => facts.flux_kustomizations = known(documents),
        SourceId::FluxHelmReleases => facts.flux_helm_releases = known(documents),
        SourceId::Alerts => facts.alerts = alerts(documents),
        SourceId::VolumeAttachments => facts.volume_attachments = known(documents),
        SourceId::ConfigMaps => facts.config_maps = known(documents),
        SourceId::Maintenances => facts.maintenances = known(documents),
        SourceId::MaintenanceReports => facts.maintenance_reports = known(documents),
        other => longhorn::list_anew(facts, other, documents),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_deleted_nulled_and_retyped() {
        let told: Vec<String> =
            mutations(&json!({"a": [{"b/c": true}], "d": null})).into_iter().map(|(t, _)| t).collect();
        let wanted = [
            "a.0.b/c deleted",
            "a.0.b/c nulled",
            "a.0.b/c retyped",
            "a.0 deleted",
            "a.0 nulled",
            "a.0 retyped",
            "a deleted",
            "a nulled",
            "a retyped",
            "d deleted",
            "d retyped",
        ];
        assert_eq!(told, wanted);
    }
}
