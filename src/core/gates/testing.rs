//! Builders for the tables of the gates: a healthy cluster of three nodes that each row bends in one place.

pub(crate) mod longhorn;
mod spoil;
mod storage;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

pub(crate) use self::spoil::{mutations, survivors};
pub(crate) use self::storage::{
    LonghornDocuments, longhorn_engine, longhorn_healthy, longhorn_replica, longhorn_setting, longhorn_volume,
    volume_attachment,
};
pub(crate) use super::draft::sentence;
use super::{GateInput, GateSpec, RunContext};
use crate::api::{Finding, Moment, SourceId, Status, Strategy, Trigger};
use crate::config::{Length, Mode, Scope, Settings, Weekday, Window, Zone};
use crate::facts::{Alert, Facts, Fill, Item, Listed, Observation, Source, SourceSpec};
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

/// The alerts of an Alertmanager's list that was read just now.
pub(crate) fn alerts(documents: &[Value]) -> Listed<Alert> {
    Observation::Known { value: documents.iter().map(Alert::item).collect(), at: now() }
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

/// A whole healthy cluster as the documents of every source, and what can happen to them. A built-in kind without documents is an empty list, any other is absent.
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
        if let Some(documents) = self.0.get(&SourceId::Alerts) {
            case.facts.alerts = alerts(documents);
        }
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
