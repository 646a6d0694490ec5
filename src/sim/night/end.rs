//! The end of a night, as far as two nights must agree about it whatever happened in between.

use std::collections::BTreeSet;

use maint_core::api::record::Maintenance;
use serde_json::Value;

use super::{RECORD, TARGET, evicted};
use crate::invariants::History;
use crate::store::http::Inner;
use crate::store::object::At as _;
use crate::store::{ObjectKey, object};

/// The end of a night.
#[expect(clippy::struct_excessive_bools, reason = "independent properties that are only ever compared")]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct End {
    /// Phase of the record.
    pub phase: String,
    /// Its outcome.
    pub outcome: String,
    /// Gates and reasons of the findings that it kept.
    pub findings: BTreeSet<String>,
    /// Whether our finalizer is still on it.
    pub finalizer: bool,
    /// Whether the target is cordoned.
    pub unschedulable: bool,
    /// Keys of our annotations on the target.
    pub annotations: BTreeSet<String>,
    /// Whether the target's present boot is marked as proven.
    pub proven: bool,
    /// Whether every other node is as it was.
    pub others_untouched: bool,
    /// uids of the pods that were evicted.
    pub evicted: BTreeSet<String>,
    /// How often the target booted.
    pub boots: usize,
    /// Action pods that are left.
    pub action_pods: usize,
    /// Kinds of messages in the record's outbox, in order.
    pub outbox: Vec<String>,
    /// Kinds of messages that were delivered; each id once.
    pub delivered: BTreeSet<String>,
}

fn boot_id(node: &Value) -> &str {
    object::text(node, "/status/nodeInfo/bootID")
}

fn annotations(node: &Value) -> BTreeSet<String> {
    let all = node.at("/metadata/annotations").and_then(Value::as_object);
    all.into_iter().flatten().map(|(key, _)| key.clone()).filter(|key| key.starts_with("maint.dev/")).collect()
}

fn unschedulable(node: &Value) -> bool {
    node.at("/spec/unschedulable").and_then(Value::as_bool) == Some(true)
}

impl End {
    /// What the cluster shows at the end.
    pub(super) fn of(inner: &Inner, history: &History, delivered: Vec<String>) -> Self {
        let record = inner.store.object(&ObjectKey::new("maint.dev", "maintenances", "", RECORD));
        let record: Option<Maintenance> = record.and_then(|found| serde_json::from_value(Value::clone(found)).ok());
        let status = record.as_ref().and_then(|record| record.status.clone()).unwrap_or_default();
        let node = inner.store.object(&ObjectKey::node(TARGET)).map(|node| Value::clone(node)).unwrap_or_default();
        let proven: Option<Value> =
            object::annotation(&node, "maint.dev/proven").and_then(|text| serde_json::from_str(text).ok());
        let others = inner.store.all("", "nodes").filter(|node| object::name(node) != TARGET);
        let boots = history.steps.iter().flat_map(|step| &step.changes).filter(|change| {
            change.key == ObjectKey::node(TARGET)
                && matches!((&change.before, &change.after), (Some(before), Some(after)) if boot_id(before) != boot_id(after))
        });
        Self {
            phase: status.phase.clone(),
            outcome: status.outcome.clone(),
            findings: status
                .findings
                .iter()
                .map(|finding| format!("{} {} {}", finding.gate, finding.status, finding.reason))
                .collect(),
            finalizer: record
                .as_ref()
                .and_then(|record| record.metadata.finalizers.as_ref())
                .is_some_and(|all| !all.is_empty()),
            unschedulable: unschedulable(&node),
            annotations: annotations(&node),
            proven: proven.is_some_and(|proven| object::text(&proven, "/bootID") == boot_id(&node)),
            others_untouched: others
                .map(|node| (unschedulable(node), annotations(node)))
                .all(|(cordoned, keys)| !cordoned && keys.is_empty()),
            evicted: evicted(history),
            boots: boots.count(),
            action_pods: inner
                .store
                .all("", "pods")
                .filter(|pod| object::namespace(pod) == crate::world::ACTION_NAMESPACE)
                .count(),
            outbox: status.outbox.iter().map(|entry| entry.kind.clone()).collect(),
            delivered: delivered.into_iter().collect(),
        }
    }
}
