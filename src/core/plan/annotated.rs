//! Wishes by the node annotation `maint.dev/reboot-requested`.
//!
//! The annotation stays until the cordon of a run is taken off, in that same write.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::api::record::Maintenance;
use crate::api::{Action, SourceId, names};
use crate::config::Settings;
use crate::facts::{Facts, Node};
use crate::kured::{Places, is_gated, places, wish};

/// Who asks, in records.
pub const REQUESTED_BY: &str = "annotation";

/// What [`annotated`] needs to know beside the records.
pub const ANNOTATED_SOURCES: &[SourceId] = &[SourceId::Nodes, SourceId::DaemonSets];

/// What comes of an annotated node.
#[derive(Debug, Clone, PartialEq)]
pub enum Annotated {
    /// A record to be created; it may exist already.
    Wish(Box<Maintenance>),
    /// Nobody could make the node go down.
    Nobody {
        /// The node.
        node: String,
        /// Why, and what helps.
        why: String,
    },
}

/// The nodes that somebody wants rebooted, by name.
#[must_use]
pub fn annotated_nodes(facts: &Facts) -> BTreeSet<&str> {
    let wanted = facts.nodes.good().filter(|node| reason_of(node).is_some());
    wanted.map(|node| node.metadata.name.as_str()).collect()
}

/// What is to be done for each annotated node; `records` are all that there are, ended ones too. A node with an active
/// record, or with a try of its present boot that ended a moment ago, is left out.
#[must_use]
pub fn annotated(facts: &Facts, records: &[Maintenance], settings: &Settings, now: Timestamp) -> Vec<Annotated> {
    let action = unattended_action(facts, settings);
    let mut found = Vec::new();
    for node in facts.nodes.good() {
        let Some(reason) = reason_of(node) else { continue };
        let name = &node.metadata.name;
        let of_node: Vec<Maintenance> =
            records.iter().filter(|record| record.spec.node_name == *name).cloned().collect();
        match &action {
            Ok(action) => {
                let record = wish::record(node, &of_node, *action, (REQUESTED_BY, reason), now);
                found.extend(record.map(|record| Annotated::Wish(Box::new(record))));
            }
            Err(why) => found.push(Annotated::Nobody { node: name.clone(), why: why.clone() }),
        }
    }
    found
}

fn reason_of(node: &Node) -> Option<&str> {
    node.metadata.annotations.get(names::ANNOTATION_REBOOT_REQUESTED).map(String::as_str)
}

/// Who makes a node go down that somebody wants rebooted: kured where it asks us, else the pod where that is enabled.
///
/// # Errors
/// In words, where nobody could, or whether kured is there is not known.
pub(crate) fn unattended_action(facts: &Facts, settings: &Settings) -> Result<Action, String> {
    if is_gated(facts, settings) {
        return Ok(Action::Kured);
    }
    // Where nobody knows whether kured is there, a pod would go past its lock.
    match places(facts) {
        Places::Unreadable(why) => Err(why),
        _ if settings.action.pod.enabled => Ok(Action::Pod),
        Places::NotInstalled => {
            Err("there is no kured, and action `pod` is not enabled: set [action.pod] enabled = true \
                                     and an image, or use maint run"
                .to_owned())
        }
        Places::Found(_) => {
            Err("kured does not ask maint (its --prometheus-url), and action `pod` is not enabled".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::facts::{DaemonSet, FailureKind, Listed, Observation};
    use crate::gates::testing::{good, node, now};

    fn daemon_set(url: &str) -> Value {
        json!({
            "metadata": {"name": "kured", "namespace": "kube-system"},
            "spec": {"template": {"spec": {"containers": [
                {
                    "name": "kured", "image": "kured:1.23.0", "args": [format!("--prometheus-url={url}")],
                    "env": [{"name": "KURED_NODE_ID", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
                }]}}},
            "status": {"desiredNumberScheduled": 3, "numberReady": 3},
        })
    }

    fn facts(daemon_sets: Listed<DaemonSet>) -> Facts {
        let mut wanted = node("worker2");
        wanted["metadata"]["annotations"] = json!({"maint.dev/reboot-requested": "new kernel"});
        Facts { nodes: good(&[node("worker1"), wanted]), daemon_sets, ..Facts::default() }
    }

    #[test]
    fn an_annotated_node_gets_a_wish_with_the_action_that_can_be_had() {
        let ours = "http://maint.maint/kured/$(KURED_NODE_ID)";
        let other = "http://prometheus:9090";
        let unreadable = Observation::Failed { kind: FailureKind::Server, detail: "500".into(), at: now() };
        let rows = [
            ("gated", good(&[daemon_set(ours)]), false, Ok("kured")),
            ("gated, pod too", good(&[daemon_set(ours)]), true, Ok("kured")),
            ("not gated", good(&[daemon_set(other)]), true, Ok("pod")),
            ("no kured", good(&[]), true, Ok("pod")),
            ("nobody", good(&[]), false, Err("there is no kured")),
            ("asks somebody else", good(&[daemon_set(other)]), false, Err("kured does not ask maint")),
            ("unreadable", unreadable, true, Err("the DaemonSets could not be read")),
        ];
        for (row, daemon_sets, pod, wanted) in rows {
            let facts = facts(daemon_sets);
            let mut settings = Settings::default();
            settings.action.pod.enabled = pod;
            assert_eq!(annotated_nodes(&facts).into_iter().collect::<Vec<_>>(), ["worker2"], "{row}");
            let found = annotated(&facts, &[], &settings, now());
            match (found.as_slice(), wanted) {
                ([Annotated::Wish(record)], Ok(action)) => {
                    assert_eq!(record.metadata.name.as_deref(), Some("worker2-bootwork-1"), "{row}");
                    let spec = &record.spec;
                    assert_eq!((spec.action.as_str(), spec.trigger.as_str()), (action, "unattended"), "{row}");
                    assert_eq!(
                        (spec.requested_by.as_str(), spec.reason.as_str()),
                        ("annotation", "new kernel"),
                        "{row}"
                    );
                }
                ([Annotated::Nobody { node, why }], Err(wanted)) => {
                    assert!(node == "worker2" && why.starts_with(wanted), "{row}: {why}");
                }
                (found, wanted) => panic!("{row}: {found:?} instead of {wanted:?}"),
            }
        }
    }

    #[test]
    fn a_node_with_an_active_record_waits_for_its_end() {
        let facts = facts(good(&[]));
        let mut settings = Settings::default();
        settings.action.pod.enabled = true;
        let mut record = Maintenance::new(
            "worker2-x",
            crate::api::record::MaintenanceSpec { node_name: "worker2".into(), ..Default::default() },
        );
        assert_eq!(annotated(&facts, std::slice::from_ref(&record), &settings, now()), []);
        record.spec.node_name = "worker1".into();
        assert_eq!(annotated(&facts, &[record], &settings, now()).len(), 1);
    }
}
