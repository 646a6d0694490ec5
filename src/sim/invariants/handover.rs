//! S3, S11 and S12: what must be so when a node is handed over, judged by the objects and not by what the service says
//! of them.
//!
//! What has been against it for longer than the oldest facts may be that a decision rests on, and as much again for the
//! way of the write, must have been seen. What came up since nobody can know.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::views::{self, acted_on, begins, changes, is_cordoned, offers};
use super::{History, Objects, Rules, Violation};
use crate::store::object::At as _;
use crate::store::{Change, object};
use crate::world::ACTION_NAMESPACE;

/// The longest time between a fact and what is done on it: a source's greatest age, a look, and a write that hangs.
const SEEN: SignedDuration = SignedDuration::from_secs(45);

/// A moment of a run: its node, its record then, and the step.
struct Moment<'a> {
    node: String,
    record: &'a Value,
    at: Timestamp,
    step: u64,
}

/// What is against a moment: the gate that asks it, and why.
pub(super) type Against = fn(&Rules, &Objects, &Value, &str) -> Vec<(&'static str, String)>;

/// Whether runs are looked at when they begin too, or when they are handed over only.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Looked {
    AtHandover,
    AtStartToo,
}

/// The moments at which runs begin, offer their act, or act.
fn moments<'a>(rules: &Rules, history: &'a History, looked: Looked) -> Vec<Moment<'a>> {
    let mut records: BTreeMap<&str, &Value> = BTreeMap::new();
    let mut found = Vec::new();
    for step in &history.steps {
        for change in changes(step, "maint.dev", "maintenances") {
            let Some(record) = change.after.as_deref() else { continue };
            let node = object::text(record, "/spec/nodeName");
            // Where it matters when a run begins, it does not at each renewal of its grant.
            let renews =
                looked == Looked::AtStartToo && change.before.as_ref().is_some_and(|one| views::is_offered(one));
            let meant = (offers(change) && !renews) || (looked == Looked::AtStartToo && begins(change));
            if meant && rules.is_ours(step) {
                found.push(Moment { node: node.to_owned(), record, at: step.at, step: step.number });
            }
            if views::in_flight(record) {
                records.insert(node, record);
            }
        }
        for node in changes(step, "", "pods").filter_map(acted_on).filter(|_| rules.is_ours(step)) {
            if let Some(record) = records.get(node) {
                found.push(Moment { node: node.to_owned(), record, at: step.at, step: step.number });
            }
        }
    }
    found
}

/// What was against a moment for so long that it must have been seen; what a person waived is not, unless it is meant.
pub(super) fn overlooked(
    rules: &Rules,
    history: &History,
    looked: Looked,
    (invariant, waivable): (&'static str, bool),
    against: Against,
) -> Vec<Violation> {
    let seen = rules.notice.max(SEEN);
    let all = moments(rules, history, looked);
    // For each moment what has been against it at every look since its time began; none before the first look.
    let mut standing: Vec<Option<BTreeMap<&'static str, String>>> = all.iter().map(|_| None).collect();
    if all.is_empty() {
        return Vec::new();
    }
    // Whether something that counts changed since the last step that was looked at.
    let mut news = true;
    history.replay(|objects, step| {
        let looked = std::mem::replace(&mut news, step.changes.iter().any(|change| counts(change)));
        for (moment, standing) in all.iter().zip(&mut standing) {
            let begins = moment.at - seen;
            if step.number > moment.step || step.at < begins || (standing.is_some() && !looked) {
                continue;
            }
            if standing.as_ref().is_some_and(BTreeMap::is_empty) {
                continue;
            }
            let now: BTreeMap<_, _> = against(rules, objects, moment.record, &moment.node).into_iter().collect();
            *standing = Some(match standing.take() {
                None => now,
                Some(before) => now.into_iter().filter(|(gate, _)| before.contains_key(gate)).collect(),
            });
        }
    });
    let mut found = Vec::new();
    for (moment, standing) in all.iter().zip(standing) {
        for (gate, why) in standing.unwrap_or_default() {
            if !(waivable && views::waives(moment.record, gate)) {
                let what = format!("node {}: gate {gate} cannot have agreed, since {why}", moment.node);
                found.push(Violation { invariant, step: moment.step, what });
            }
        }
    }
    found
}

/// Whether a change can change what is against a moment: Leases and Events, which are most of all changes, cannot.
fn counts(change: &Change) -> bool {
    const COUNT: [&str; 8] =
        ["nodes", "pods", "configmaps", "endpointslices", "daemonsets", "maintenances", "engines", "replicas"];
    COUNT.contains(&change.key.resource.resource.as_str())
}

fn others<'a>(rules: &'a Rules, objects: &'a Objects, node: &'a str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let all = views::all(objects, "", "nodes").map(|(key, node)| (key.name.as_str(), node));
    all.filter(move |(name, _)| *name != node && !rules.ignored_nodes.iter().any(|ignored| ignored == name))
}

/// S3: a node is handed over only while what each of its gates asks is so.
pub fn only_on_fresh_facts(rules: &Rules, history: &History) -> Vec<Violation> {
    overlooked(rules, history, Looked::AtHandover, ("S3", true), |rules, objects, record, node| {
        let mut found = control(rules, objects, record, node);
        found.extend(target(objects, record, node).map(|why| ("target", why)));
        found.extend(exclusive(rules, objects, record, node));
        found.extend(dns(objects, node).map(|why| ("coredns-replicas", why)));
        found.extend(left(objects, record, node).map(|why| ("disruption-budgets", why)));
        found
    })
}

/// S11: a member of etcd begins, and goes, only while the other voters are a quorum.
pub fn quorum_stays(rules: &Rules, history: &History) -> Vec<Violation> {
    overlooked(rules, history, Looked::AtStartToo, ("S11", false), quorum)
}

/// S12: no node begins or goes that has the only healthy copy of a volume.
pub fn a_copy_stays(rules: &Rules, history: &History) -> Vec<Violation> {
    overlooked(rules, history, Looked::AtStartToo, ("S12", true), copies)
}

/// Nobody said halt or hold.
pub(super) fn control(_: &Rules, objects: &Objects, _: &Value, node: &str) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    if views::is_halted(objects) {
        found.push(("control", "everything is halted".to_owned()));
    } else if views::node(objects, node).is_some_and(|node| object::annotation(node, views::HOLD).is_some()) {
        found.push(("control", "somebody holds the node".to_owned()));
    }
    found
}

/// The node is cordoned, and bears the mark of its run.
fn target(objects: &Objects, record: &Value, name: &str) -> Option<String> {
    let Some(node) = views::node(objects, name) else { return Some("there is no such node".to_owned()) };
    if !is_cordoned(node) {
        return Some("the node is not cordoned".to_owned());
    }
    let ours = views::owner(node).is_some_and(|(uid, _)| uid == object::uid(record));
    (!ours).then(|| "the node does not bear the mark of its run".to_owned())
}

/// Fewer others away than may be, and no foreign lock of kured.
pub(super) fn exclusive(rules: &Rules, objects: &Objects, record: &Value, node: &str) -> Vec<(&'static str, String)> {
    let mut away: BTreeSet<&str> = others(rules, objects, node)
        .filter(|(_, other)| is_cordoned(other) || !object::is_true(other, "Ready"))
        .map(|(name, _)| name)
        .collect();
    let flying = views::records(objects).filter(|one| views::in_flight(one) && object::uid(one) != object::uid(record));
    away.extend(flying.map(|one| object::text(one, "/spec/nodeName")).filter(|name| *name != node));
    let mut found = Vec::new();
    if away.len() >= rules.max_unavailable {
        found.push(("exclusive", format!("{away:?} are away")));
    }
    let locks = views::all(objects, "apps", "daemonsets").flat_map(|(_, set)| views::locks(set));
    let foreign = locks
        .map(|lock| object::text(&lock, "/nodeID").to_owned())
        .find(|holder| holder != node && views::node(objects, holder).is_some() && !flies(objects, holder));
    found.extend(foreign.map(|holder| ("exclusive", format!("{holder} holds kured's lock"))));
    found
}

fn flies(objects: &Objects, node: &str) -> bool {
    views::record_of(objects, node).is_some()
}

/// Somebody answers DNS when the node is away.
fn dns(objects: &Objects, node: &str) -> Option<String> {
    let of_dns = |slice: &&Value| views::label(slice, "kubernetes.io/service-name") == Some("kube-dns");
    let slices: Vec<&Value> =
        views::all(objects, "discovery.k8s.io", "endpointslices").map(|(_, slice)| slice).filter(of_dns).collect();
    let endpoints = slices.iter().filter_map(|slice| slice.at("/endpoints")?.as_array()).flatten();
    let answers = |endpoint: &&Value| {
        let is = |pointer: &str| endpoint.at(pointer).and_then(Value::as_bool);
        is("/conditions/ready") != Some(false)
            && is("/conditions/terminating") != Some(true)
            && object::text(endpoint, "/nodeName") != node
    };
    let none = !slices.is_empty() && endpoints.filter(answers).count() == 0;
    none.then(|| "nobody on another node answers DNS".to_owned())
}

/// Nothing that has to move is left on the node.
fn left(objects: &Objects, record: &Value, node: &str) -> Option<String> {
    if object::text(record, "/status/strategy") != "drain" {
        return None;
    }
    let stays = |pod: &Value| {
        let owners = pod.at("/metadata/ownerReferences").and_then(Value::as_array);
        owners.into_iter().flatten().any(|owner| object::text(owner, "/kind") == "DaemonSet")
            || object::annotation(pod, "kubernetes.io/config.mirror").is_some()
            || matches!(object::text(pod, "/status/phase"), "Succeeded" | "Failed")
    };
    let mut pods = views::all(objects, "", "pods").filter(|(key, pod)| {
        object::text(pod, "/spec/nodeName") == node && key.namespace != ACTION_NAMESPACE && !stays(pod)
    });
    pods.next().map(|(key, _)| format!("pod {}/{} is still on it", key.namespace, key.name))
}

/// The other voters are a quorum.
pub(super) fn quorum(_: &Rules, objects: &Objects, _: &Value, node: &str) -> Vec<(&'static str, String)> {
    const MEMBER: &str = "node-role.kubernetes.io/etcd";
    let members: Vec<(&str, &Value)> = views::all(objects, "", "nodes")
        .filter(|(_, node)| views::label(node, MEMBER).is_some())
        .map(|(key, node)| (key.name.as_str(), node))
        .collect();
    let votes = |node: &Value| {
        object::is_true(node, "Ready")
            && object::condition(node, "EtcdIsVoter").is_none_or(|_| object::is_true(node, "EtcdIsVoter"))
    };
    let is_member = members.iter().any(|(name, _)| *name == node);
    let healthy = members.iter().filter(|(name, member)| *name != node && votes(member)).count();
    let quorum = members.len() / 2 + 1;
    let lost = is_member && members.len() > 1 && healthy < quorum;
    lost.then(|| ("control-plane", format!("{healthy} other voters are healthy, and {quorum} are a quorum")))
        .into_iter()
        .collect()
}

/// Each attached volume keeps a healthy copy on another node.
fn copies(_: &Rules, objects: &Objects, _: &Value, node: &str) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let replicas: BTreeMap<&str, &str> = views::all(objects, "longhorn.io", "replicas")
        .map(|(key, replica)| (key.name.as_str(), object::text(replica, "/spec/nodeID")))
        .collect();
    for (_, engine) in views::all(objects, "longhorn.io", "engines") {
        let modes = engine.at("/status/replicaModeMap").and_then(Value::as_object);
        let whole = modes.into_iter().flatten().filter(|(_, mode)| mode.as_str() == Some("RW"));
        let on: BTreeSet<&str> = whole.filter_map(|(name, _)| replicas.get(name.as_str()).copied()).collect();
        if on.len() == 1 && on.contains(node) {
            let volume = object::text(engine, "/spec/volumeName");
            found.push(("longhorn-volumes", format!("it has the only healthy copy of volume {volume}")));
        }
    }
    found
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::{Night, Row};
    use crate::store::{ObjectKey, object};
    use crate::world::fixture;
    use serde_json::json;

    /// A run of n1 that is handed over after a while, on a node without pods; `trouble` comes up while it drains.
    fn run(night: &mut Night, trouble: fn(&mut Night), wait: i64) {
        night.start("n1");
        night.change_pod("maint-1", "web-n1", |pod| pod["status"]["phase"] = json!("Succeeded"));
        trouble(night);
        night.wait(wait);
        night.intend("n1");
        night.act("n1", "boot-n1");
    }

    fn dns(night: &mut Night, node: &str, ready: bool) {
        night.seed(
            "world",
            vec![
                json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "kube-dns-x",
                "namespace": "kube-system", "labels": {"kubernetes.io/service-name": "kube-dns"}},
                "endpoints": [{"nodeName": node, "conditions": {"ready": ready, "terminating": !ready}}]}),
            ],
        );
    }

    pub(crate) const S3: &[Row] = &[
        ("all agree", false, |night| run(night, |_| {}, 60)),
        ("offered and all agree", false, |night| {
            night.start("n1");
            night.delete("web-n1");
            night.wait(60);
            night.grant("n1");
        }),
        ("another node went a moment ago", false, |night| run(night, |night| night.not_ready("n2"), 5)),
        ("another node is NotReady", true, |night| run(night, |night| night.not_ready("n2"), 60)),
        ("another node is cordoned", true, |night| {
            run(night, |night| night.edit("person", "n2", |node| node["spec"]["unschedulable"] = json!(true)), 60);
        }),
        ("another node was cordoned for a moment", false, |night| {
            run(
                night,
                |night| {
                    night.edit("person", "n2", |node| node["spec"]["unschedulable"] = json!(true));
                    night.wait(5);
                    night.edit("person", "n2", |node| node["spec"]["unschedulable"] = json!(false));
                },
                60,
            );
        }),
        ("another node holds kured's lock", true, |night| {
            run(night, |night| night.lock("kured-n3", Some(&Night::lock_of("n3"))), 60);
        }),
        ("halted", true, |night| run(night, Night::halt, 60)),
        ("on hold", true, |night| {
            run(night, |night| night.edit("person", "n1", |node| object::annotate(node, "maint.dev/hold", "{}")), 60);
        }),
        ("somebody uncordoned it", true, |night| run(night, |night| night.uncordon_by("person", "n1"), 60)),
        ("nobody answers DNS elsewhere", true, |night| run(night, |night| dns(night, "n1", true), 60)),
        ("somebody answers DNS elsewhere", false, |night| run(night, |night| dns(night, "n2", true), 60)),
        ("who answers DNS is terminating", true, |night| run(night, |night| dns(night, "n2", false), 60)),
        ("a pod is left", true, |night| {
            night.start("n1");
            night.wait(60);
            night.intend("n1");
            night.act("n1", "boot-n1");
        }),
        ("a pod is left, and pods stay", false, |night| {
            night.start("n1");
            night.record("n1", |status| status["strategy"] = json!("cordon-only"));
            night.wait(60);
            night.intend("n1");
            night.act("n1", "boot-n1");
        }),
        ("offered while another is NotReady", true, |night| {
            night.start("n1");
            night.delete("web-n1");
            night.not_ready("n2");
            night.wait(60);
            night.grant("n1");
        }),
        ("waived", false, |night| {
            night.spec("n1", |spec| spec["overrides"] = json!([{"gate": "coredns-replicas"}]));
            run(night, |night| dns(night, "n1", true), 60);
        }),
    ];

    fn learner(night: &mut Night, node: &str) {
        night.edit("world", node, |node| {
            object::set_condition(
                node,
                "EtcdIsVoter",
                "False",
                "MemberIsLearner",
                "",
                "2026-11-30T02:00:00Z".parse().expect("a time"),
            );
        });
    }

    pub(crate) const S11: &[Row] = &[
        ("all vote", false, |night| run(night, |_| {}, 60)),
        ("the target does not vote", false, |night| run(night, |night| learner(night, "n1"), 60)),
        ("another one does not vote since a moment", false, |night| run(night, |night| learner(night, "n2"), 5)),
        ("another one does not vote", true, |night| run(night, |night| learner(night, "n2"), 60)),
        ("another one is NotReady", true, |night| run(night, |night| night.not_ready("n2"), 60)),
        ("begun while another one does not vote", true, |night| {
            learner(night, "n2");
            night.wait(60);
            night.start("n1");
        }),
        ("a worker goes", false, |night| {
            night.edit("world", "n1", |node| node["metadata"]["labels"] = json!({}));
            learner(night, "n2");
            night.wait(60);
            night.start("n1");
        }),
    ];

    fn volume(night: &mut Night, nodes: &[&str]) {
        let now = "2026-11-30T02:00:00Z".parse().expect("a time");
        night.seed("world", fixture::volume("data", nodes, now));
    }

    pub(crate) const S12: &[Row] = &[
        ("two copies", false, |night| run(night, |night| volume(night, &["n1", "n2"]), 60)),
        ("the only copy is elsewhere", false, |night| run(night, |night| volume(night, &["n2"]), 60)),
        ("the only copy", true, |night| run(night, |night| volume(night, &["n1"]), 60)),
        ("the other copy is broken", true, |night| {
            run(
                night,
                |night| {
                    volume(night, &["n1", "n2"]);
                    let key = ObjectKey::new("longhorn.io", "engines", fixture::LONGHORN_NAMESPACE, "data-e-0");
                    night
                        .change("world", &key, |engine| engine["status"]["replicaModeMap"]["data-r-n2"] = json!("ERR"));
                },
                60,
            );
        }),
        ("waived", false, |night| {
            night.spec("n1", |spec| spec["overrides"] = json!([{"gate": "longhorn-volumes"}]));
            run(night, |night| volume(night, &["n1"]), 60);
        }),
    ];
}
