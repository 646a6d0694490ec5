//! Builders for the tables of the gates: a healthy cluster of three nodes that each row bends in one place.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{GateInput, GateSpec, RunContext};
use crate::api::{Finding, Moment, Status, Strategy, Trigger};
use crate::config::{Scope, Settings};
use crate::facts::{Facts, Item, Listed, Observation, Source};

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

/// The names of the three nodes.
pub(crate) const NODES: [&str; 3] = ["worker1", "worker2", "worker3"];

impl Default for Case {
    fn default() -> Self {
        let facts = Facts {
            nodes: good(&NODES.map(node)),
            leases: good(&NODES.map(|name| node_lease(name, 5))),
            ..Facts::default()
        };
        let settings = Settings::default();
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
