//! Builders for the tables of the gates: a healthy cluster of three nodes that each row bends in one place.

pub(crate) mod storage;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

pub(crate) use super::draft::sentence;
use super::{GateInput, GateSpec, RunContext};
use crate::api::{Finding, Moment, SourceId, Status, Strategy, Trigger};
use crate::config::{Length, Mode, Scope, Settings, Weekday, Window, Zone};
use crate::facts::{Facts, Fill, Item, Listed, Observation, Source, SourceSpec};
use crate::matrix::{ApiServer, Cell, CellVerdict, Matrix, Readiness};

/// Everything that a gate is given, owned, so that a row can change any of it.
pub(crate) struct Case {
    /// What is known.
    pub facts: Facts,
    /// The settings.
    pub settings: Settings,
    /// The node to be maintained: `worker2` of `worker1` to `worker3`.
    pub target: String,
    /// Why.
    pub scope: Scope,
    /// What follows for pods.
    pub strategy: Strategy,
    /// When in the run.
    pub moment: Moment,
    /// Who asks.
    pub trigger: Trigger,
    /// The run, if any.
    pub run: Option<RunContext>,
    /// Now.
    pub now: Timestamp,
}

/// 2026-11-30T01:00:00Z: now in every table.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_second(1_796_000_400).expect("a time")
}

/// RFC 3339 text of some seconds before now.
pub(crate) fn ago(seconds: i64) -> String {
    (now() - SignedDuration::from_secs(seconds)).to_string()
}

/// A list that was read just now.
pub(crate) fn known<S: Source>(documents: &[Value]) -> Listed<S> {
    Observation::Known { value: documents.iter().map(S::item).collect(), at: now() }
}

/// A list whose objects must decode: a typo in a table is no malformed item.
pub(crate) fn good<S: Source>(documents: &[Value]) -> Listed<S> {
    let listed = known::<S>(documents);
    if let Observation::Known { value, .. } = &listed {
        for item in value {
            if let Item::Malformed(malformed) = item {
                panic!("{malformed}");
            }
        }
    }
    listed
}

/// A Ready control-plane and etcd node.
pub(crate) fn node(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name, "uid": format!("uid-{name}"),
            "labels": {
                "kubernetes.io/hostname": name,
                "node-role.kubernetes.io/control-plane": "true",
                "node-role.kubernetes.io/etcd": "true",
            },
        },
        "spec": {},
        "status": {
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": ago(86_400)},
                {"type": "MemoryPressure", "status": "False", "reason": "KubeletHasSufficientMemory"},
                {"type": "DiskPressure", "status": "False", "reason": "KubeletHasNoDiskPressure"},
                {"type": "PIDPressure", "status": "False", "reason": "KubeletHasSufficientPID"},
                {"type": "EtcdIsVoter", "status": "True", "reason": "MemberNotLearner", "lastHeartbeatTime": ago(60)},
            ],
            "nodeInfo": {"bootID": format!("boot-{name}"), "kernelVersion": "6.1.0"},
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        },
    })
}

/// A kubelet's Lease, renewed this many seconds ago.
pub(crate) fn node_lease(name: &str, seconds: i64) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": ago(seconds)},
    })
}

/// The same settings with mode auto and a window that is always open.
pub(crate) fn unattended(settings: Settings) -> Settings {
    let always = Window {
        name: "always".to_owned(),
        days: Weekday::ALL.to_vec(),
        start: "00:00".parse().expect("a time"),
        duration: Some(Length::from_minutes(24 * 60)),
        end: None,
        zone: Zone::UTC,
    };
    Settings { mode: Mode::Auto, windows: vec![always], ..settings }
}

/// The names of the three nodes.
pub(crate) const NODES: [&str; 3] = ["worker1", "worker2", "worker3"];

impl Default for Case {
    fn default() -> Self {
        let facts = Facts {
            nodes: good(&NODES.map(node)),
            leases: good(&NODES.map(|name| node_lease(name, 5))),
            ..Facts::default()
        };
        let settings = unattended(Settings::default());
        let scope = Scope::find(&settings, "reboot").expect("built in");
        Self {
            facts,
            scope,
            settings,
            target: "worker2".to_owned(),
            strategy: Strategy::Drain,
            moment: Moment::Start,
            trigger: Trigger::Unattended,
            run: None,
            now: now(),
        }
    }
}

impl Case {
    /// The input of a gate.
    pub fn input(&self) -> GateInput<'_> {
        GateInput {
            facts: &self.facts,
            settings: &self.settings,
            target: &self.target,
            scope: &self.scope,
            strategy: self.strategy,
            moment: self.moment,
            trigger: self.trigger,
            run: self.run.as_ref(),
            now: self.now,
        }
    }

    /// Asks one gate, and checks what holds for every answer: only declared reasons, never a stop without evidence.
    pub fn ask(&self, gate: &GateSpec) -> Finding {
        let finding = (gate.check)(&self.input());
        assert_eq!(finding.gate, gate.id);
        let declared = gate.reasons.contains(&finding.reason) || super::COMMON_REASONS.contains(&finding.reason);
        assert!(declared, "{} gives {}, which it does not declare", gate.id, finding.reason);
        if finding.status == Status::Block {
            assert!(!finding.evidence.is_empty(), "{} blocks without evidence: {}", gate.id, finding.message);
        }
        assert!(!finding.message.ends_with('.'), "no full stop: {}", finding.message);
        finding
    }
}

/// A whole healthy cluster as the documents of every source. A built-in kind without documents is an empty list, any other absent.
#[derive(Clone)]
pub(crate) struct World(pub BTreeMap<SourceId, Vec<Value>>);

impl Fill for World {
    fn list<S: Source>(&mut self, row: &SourceSpec) -> Listed<S> {
        match self.0.get(&row.id) {
            Some(documents) => known(documents),
            None if row.built_in => known(&[]),
            None => Observation::Absent { at: now() },
        }
    }
}

impl World {
    /// Three Ready servers, two CoreDNS pods on `worker1` and `worker3`, an autoscaler that scales, no Longhorn.
    pub(crate) fn healthy() -> Self {
        let mut leases: Vec<Value> = NODES.iter().map(|name| node_lease(name, 5)).collect();
        leases.push(controller_manager_lease(5));
        let nodes = NODES.iter().zip(1..).map(|(name, number)| {
            let mut node = node(name);
            node["status"]["addresses"][0]["address"] = json!(format!("10.0.0.{number}"));
            node
        });
        let pods = [("coredns-a", "worker1"), ("coredns-b", "worker3")];
        Self(BTreeMap::from([
            (SourceId::Nodes, nodes.collect()),
            (SourceId::Leases, leases),
            (SourceId::Services, vec![dns_service()]),
            (SourceId::EndpointSlices, vec![dns_slice(&pods.map(|(name, node)| dns_endpoint(name, node)))]),
            (SourceId::DnsPods, pods.iter().map(|(name, node)| dns_pod(name, node)).collect()),
            (SourceId::Deployments, vec![dns_deployment(2)]),
            (SourceId::HorizontalPodAutoscalers, vec![dns_autoscaler()]),
            (SourceId::Maintenances, vec![]),
            (SourceId::MaintenanceReports, vec![]),
        ]))
    }

    /// kured on every node, gated by us, nothing locked.
    pub(crate) fn with_kured(mut self) -> Self {
        *self.of(SourceId::DaemonSets) = vec![kured_daemon_set()];
        *self.of(SourceId::KuredPods) = NODES.iter().map(|name| kured_pod(name)).collect();
        self
    }

    /// The documents of a source, to be changed.
    pub(crate) fn of(&mut self, source: SourceId) -> &mut Vec<Value> {
        self.0.entry(source).or_default()
    }

    /// A document by its name, to be changed.
    pub(crate) fn named(&mut self, source: SourceId, name: &str) -> &mut Value {
        let found = self.of(source).iter_mut().find(|document| document["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("no {source} named {name}"))
    }

    /// A case over these documents, with three Ready API servers and a green matrix.
    pub(crate) fn case(&mut self) -> Case {
        let mut case = Case::default();
        case.facts.fill(self);
        case.facts.api_servers = api_servers(&[Readiness::Ready, Readiness::Ready, Readiness::Ready]);
        case.facts.matrix = Observation::Known { value: green_matrix(), at: now() };
        case
    }
}

impl Case {
    /// Every source of the cluster is read and healthy; Longhorn is not installed.
    pub(crate) fn healthy() -> Self {
        World::healthy().case()
    }

    /// The run that asks, where the moment has one; the node came back 90 s ago.
    pub(crate) fn with_run(mut self) -> Self {
        self.run = Some(RunContext {
            maintenance_uid: "uid-run".to_owned(),
            term: 1,
            boot_id_before: Some("boot-before".to_owned()),
            returned_at: Some(now() - SignedDuration::from_secs(90)),
            ..RunContext::default()
        });
        self
    }
}

/// The container of kured 1.23.0 as its manifest has it, asking us.
pub(crate) fn kured_container() -> Value {
    json!({
        "name": "kured", "image": "ghcr.io/kubereboot/kured:1.23.0",
        "env": [{"name": "KURED_NODE_ID", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "command": ["/usr/bin/kured", "--reboot-sentinel=/sentinel/reboot-required"],
        "args": [
            "--period=1m", "--drain-timeout=15m", "--annotate-nodes",
            "--prometheus-url=http://maint.maint/kured/$(KURED_NODE_ID)",
        ],
    })
}

/// kured's DaemonSet, rolled out, nothing locked.
pub(crate) fn kured_daemon_set() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "kured", "namespace": "kube-system", "generation": 2, "annotations": {}},
        "spec": {
            "selector": {"matchLabels": {"name": "kured"}},
            "template": {"metadata": {"labels": {"name": "kured"}}, "spec": {"containers": [kured_container()]}},
        },
        "status": {
            "desiredNumberScheduled": 3, "numberReady": 3, "updatedNumberScheduled": 3, "observedGeneration": 2,
        },
    })
}

/// The Ready kured of a node.
pub(crate) fn kured_pod(node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("kured-{node}"), "namespace": "kube-system", "uid": format!("uid-kured-{node}"),
            "labels": {"name": "kured", "controller-revision-hash": "6f5d"},
            "ownerReferences": [{"kind": "DaemonSet", "name": "kured", "controller": true}],
        },
        "spec": {"nodeName": node, "containers": [kured_container()]},
        "status": {
            "phase": "Running", "podIP": "10.42.0.9", "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "kured", "restartCount": 0}],
        },
    })
}

/// The Service `kube-dns`.
pub(crate) fn dns_service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "kube-dns", "namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}},
        "spec": {"selector": {"k8s-app": "kube-dns"}, "clusterIP": "10.96.0.10"},
    })
}

/// A ready endpoint of a pod.
pub(crate) fn dns_endpoint(name: &str, node: &str) -> Value {
    json!({
        "addresses": [format!("10.42.0.{}", name.bytes().last().unwrap_or_default())],
        "conditions": {"ready": true, "serving": true, "terminating": false},
        "nodeName": node,
        "targetRef": {"kind": "Pod", "name": name, "namespace": "kube-system", "uid": format!("uid-{name}")},
    })
}

/// The IPv4 slice of Service `kube-dns`.
pub(crate) fn dns_slice(endpoints: &[Value]) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": "kube-dns-x4k2p", "namespace": "kube-system",
            "labels": {"kubernetes.io/service-name": "kube-dns", "k8s-app": "kube-dns"},
        },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [{"name": "dns", "port": 53, "protocol": "UDP"}],
    })
}

/// A Ready CoreDNS pod.
pub(crate) fn dns_pod(name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "kube-system", "uid": format!("uid-{name}"),
            "labels": {"k8s-app": "kube-dns"},
        },
        "spec": {"nodeName": node},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

/// Deployment `coredns`, rolled out.
pub(crate) fn dns_deployment(replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "coredns", "namespace": "kube-system", "generation": 3},
        "spec": {
            "replicas": replicas,
            "template": {
                "metadata": {"labels": {"k8s-app": "kube-dns"}},
                "spec": {"containers": [{"name": "coredns", "image": "registry.k8s.io/coredns/coredns:v1.12.0"}]},
            },
        },
        "status": {"observedGeneration": 3, "updatedReplicas": replicas, "readyReplicas": replicas},
    })
}

/// A quiet autoscaler of Deployment `coredns`, at its minimum of two.
pub(crate) fn dns_autoscaler() -> Value {
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "coredns", "namespace": "kube-system"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "coredns"},
            "minReplicas": 2, "maxReplicas": 5,
        },
        "status": {
            "currentReplicas": 2, "desiredReplicas": 2,
            "conditions": [
                {"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale"},
                {"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound"},
                {"type": "ScalingLimited", "status": "True", "reason": "TooFewReplicas"},
            ],
        },
    })
}

/// The controller manager's Lease, renewed this many seconds ago.
pub(crate) fn controller_manager_lease(seconds: i64) -> Value {
    json!({
        "metadata": {"name": "kube-controller-manager", "namespace": "kube-system"},
        "spec": {"holderIdentity": "worker1_1f0c", "leaseDurationSeconds": 15, "renewTime": ago(seconds)},
    })
}

/// The API servers of `worker1`, `worker2` ... with these answers, asked just now.
pub(crate) fn api_servers(answers: &[Readiness]) -> Observation<Vec<ApiServer>> {
    let server = |(readiness, number): (&Readiness, usize)| ApiServer {
        name: format!("worker{number}"),
        node: Some(format!("worker{number}")),
        address: format!("10.0.0.{number}:6443"),
        readiness: readiness.clone(),
    };
    Observation::Known { value: answers.iter().zip(1..).map(server).collect(), at: now() }
}

/// Nine green cells.
pub(crate) fn green_matrix() -> Matrix {
    let pairs = NODES.iter().flat_map(|server| NODES.iter().map(move |node| (*server, *node)));
    let cells = pairs.map(|(server, node)| Cell {
        server: server.to_owned(),
        node: node.to_owned(),
        diagonal: server == node,
        verdict: CellVerdict::Green,
        detail: "404 without Audit-Id; healthz ok".to_owned(),
        milliseconds: 12,
    });
    let names: Vec<String> = NODES.iter().map(|name| (*name).to_owned()).collect();
    Matrix { servers: names.clone(), nodes: names, cells: cells.collect(), around: None, swept_at: now() }
}

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
        SourceId::VolumeAttachments => facts.volume_attachments = known(documents),
        SourceId::ConfigMaps => facts.config_maps = known(documents),
        SourceId::Maintenances => facts.maintenances = known(documents),
        SourceId::MaintenanceReports => facts.maintenance_reports = known(documents),
        other => storage::list_anew(facts, other, documents),
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

/// The documents of a Longhorn installation.
#[derive(Default)]
pub(crate) struct LonghornDocuments {
    /// Volumes.
    pub volumes: Vec<Value>,
    /// Replicas.
    pub replicas: Vec<Value>,
    /// Engines.
    pub engines: Vec<Value>,
    /// Settings.
    pub settings: Vec<Value>,
}

/// An attached, healthy volume of 2 GiB with its claim `media/<name>`.
pub(crate) fn longhorn_volume(name: &str, replicas: usize, attached_to: &str) -> Value {
    json!({
        "apiVersion": "longhorn.io/v1beta2", "kind": "Volume",
        "metadata": {"name": name, "namespace": "longhorn-system", "creationTimestamp": ago(864_000)},
        "spec": {
            "numberOfReplicas": replicas, "size": "2147483648", "dataEngine": "v1", "accessMode": "rwo",
            "Standby": false, "nodeID": attached_to, "migrationNodeID": "",
        },
        "status": {
            "state": "attached", "robustness": "healthy", "currentNodeID": attached_to, "lastDegradedAt": "",
            "restoreRequired": false, "expansionRequired": false,
            "kubernetesStatus": {"namespace": "media", "pvcName": name, "pvName": name},
            "conditions": [
                {"type": "Scheduled", "status": "True", "reason": "", "message": ""},
                {"type": "Restore", "status": "False", "reason": "", "message": ""},
            ],
        },
    })
}

/// A healthy replica; its name is `<volume>-r-<node>`.
pub(crate) fn longhorn_replica(volume: &str, node: &str) -> Value {
    json!({
        "apiVersion": "longhorn.io/v1beta2", "kind": "Replica",
        "metadata": {"name": format!("{volume}-r-{node}"), "namespace": "longhorn-system"},
        "spec": {
            "volumeName": volume, "nodeID": node, "diskID": format!("disk-{node}"), "healthyAt": ago(800_000),
            "failedAt": "", "evictionRequested": false,
        },
        "status": {"currentState": "running"},
    })
}

/// A running engine that reads and writes a replica on each of these nodes.
pub(crate) fn longhorn_engine(volume: &str, nodes: &[&str]) -> Value {
    let name = |node: &&str| format!("{volume}-r-{node}");
    let modes: serde_json::Map<_, _> = nodes.iter().map(|node| (name(node), json!("RW"))).collect();
    let addresses: serde_json::Map<_, _> =
        nodes.iter().map(|node| (name(node), json!(format!("{node}:10000")))).collect();
    json!({
        "apiVersion": "longhorn.io/v1beta2", "kind": "Engine",
        "metadata": {"name": format!("{volume}-e-0"), "namespace": "longhorn-system"},
        "spec": {"volumeName": volume},
        "status": {
            "currentState": "running", "currentSize": "2147483648", "isExpanding": false,
            "replicaModeMap": modes, "currentReplicaAddressMap": addresses,
            "rebuildStatus": {}, "restoreStatus": {},
        },
    })
}

/// A setting.
pub(crate) fn longhorn_setting(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "longhorn.io/v1beta2", "kind": "Setting",
        "metadata": {"name": name, "namespace": "longhorn-system"}, "value": value,
    })
}

impl LonghornDocuments {
    /// Two attached healthy volumes (`pvc-a` on worker1, `pvc-b` on worker2) and a detached one (`pvc-c`), each with
    /// a replica on every node, and the settings that gates read at their defaults.
    pub fn healthy() -> Self {
        let mut documents = Self {
            settings: vec![
                longhorn_setting("node-drain-policy", "block-if-contains-last-replica"),
                longhorn_setting("replica-replenishment-wait-interval", "600"),
                longhorn_setting("concurrent-replica-rebuild-per-node-limit", "5"),
            ],
            ..Self::default()
        };
        documents.attach("pvc-a", "worker1", &NODES);
        documents.attach("pvc-b", "worker2", &NODES);
        documents.detach("pvc-c", &NODES);
        documents
    }

    /// Adds an attached healthy volume.
    pub fn attach(&mut self, name: &str, attached_to: &str, nodes: &[&str]) {
        self.volumes.push(longhorn_volume(name, nodes.len(), attached_to));
        self.replicas.extend(nodes.iter().map(|node| longhorn_replica(name, node)));
        self.engines.push(longhorn_engine(name, nodes));
    }

    /// Adds a detached volume whose replicas are all whole.
    pub fn detach(&mut self, name: &str, nodes: &[&str]) {
        let mut volume = longhorn_volume(name, nodes.len(), "");
        volume["status"]["state"] = json!("detached");
        volume["status"]["robustness"] = json!("unknown");
        self.volumes.push(volume);
        let mut engine = longhorn_engine(name, &[]);
        engine["status"]["currentState"] = json!("stopped");
        engine["status"]["currentSize"] = json!("0");
        engine["status"]["replicaModeMap"] = Value::Null;
        engine["status"]["currentReplicaAddressMap"] = Value::Null;
        self.engines.push(engine);
        self.replicas.extend(nodes.iter().map(|node| {
            let mut replica = longhorn_replica(name, node);
            replica["status"]["currentState"] = json!("stopped");
            replica
        }));
    }

    /// Fills the four sources of a case.
    pub fn fill(&self, case: &mut Case) {
        case.facts.longhorn_volumes = known(&self.volumes);
        case.facts.longhorn_replicas = known(&self.replicas);
        case.facts.longhorn_engines = known(&self.engines);
        case.facts.longhorn_settings = known(&self.settings);
    }
}

/// Fills the four Longhorn sources of a healthy cluster.
pub(crate) fn longhorn_healthy(case: &mut Case) {
    let documents = LonghornDocuments::healthy();
    documents.fill(case);
    case.facts.longhorn_volumes = good(&documents.volumes);
    case.facts.longhorn_replicas = good(&documents.replicas);
    case.facts.longhorn_engines = good(&documents.engines);
    case.facts.longhorn_settings = good(&documents.settings);
}

/// An attachment of a volume to a node, by Longhorn's driver.
pub(crate) fn volume_attachment(persistent_volume: &str, node: &str) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment",
        "metadata": {"name": format!("csi-{persistent_volume}-{node}"), "creationTimestamp": ago(86_400)},
        "spec": {
            "attacher": "driver.longhorn.io", "nodeName": node,
            "source": {"persistentVolumeName": persistent_volume},
        },
        "status": {"attached": true},
    })
}
