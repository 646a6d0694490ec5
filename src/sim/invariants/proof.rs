//! S19: no TTL and no time-out lets a run go on as if it were proven, and the next node begin.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::views::{self, boot_id, changes, phase};
use super::{History, Objects, Rules, Violation};
use crate::store::object;
use crate::store::object::At as _;

/// From then on a node that came back is as good as others.
const A_WHILE: SignedDuration = SignedDuration::from_secs(60);

/// S19: a committed run leaves Returning only with another boot where its scope reboots, is uncordoned and succeeds only
/// with a matrix without broken pairs and, where it ends, with the proof on its node; else it is held. A person may
/// accept what is not proven.
pub fn only_what_is_proven_goes_on(rules: &Rules, history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    history.replay(|objects, step| {
        if !rules.is_ours(step) {
            return;
        }
        for change in changes(step, "maint.dev", "maintenances") {
            let (Some(before), Some(after)) = (&change.before, &change.after) else { continue };
            if let Some(why) = unproven(objects, before, after, step.at) {
                let node = object::text(after, "/spec/nodeName");
                let what = format!("node {node} went on from {} to {} although {why}", phase(before), phase(after));
                found.push(Violation { invariant: "S19", step: step.number, what });
            }
        }
    });
    found
}

fn is_set(record: &Value, pointer: &str) -> bool {
    !object::text(record, pointer).is_empty()
}

/// Whether both ends of a broken pair, as in `n1 -> n2: broken`, are Ready, the other one than the node itself for a
/// while: a pair with a node that is away keeps no other node cordoned.
fn both_are_there(objects: &Objects, pair: &str, name: &str, now: Timestamp) -> bool {
    let ends = pair.split(':').next().unwrap_or_default().split(" -> ");
    ends.map(str::trim).filter(|end| *end != name).all(|end| {
        let since = views::node(objects, end).filter(|node| object::is_true(node, "Ready"));
        let since = since.and_then(|node| object::time(object::condition(node, "Ready")?, "/lastTransitionTime"));
        since.is_some_and(|since| now.duration_since(since) > A_WHILE)
    })
}

fn unproven(objects: &Objects, before: &Value, after: &Value, now: Timestamp) -> Option<String> {
    let (from, to) = (phase(before), phase(after));
    if from == to || !views::in_flight(before) || !is_set(before, "/status/committedAt") {
        return None;
    }
    let outcome = object::text(after, "/status/outcome");
    let accepted = is_set(after, "/status/acceptedBy") || outcome == "AcceptedUnproven";
    // With another Node object there is nothing to be proven; a commit can be void.
    if accepted || outcome == "NodeReplaced" || !is_set(after, "/status/committedAt") {
        return None;
    }
    let name = object::text(after, "/spec/nodeName");
    let boot = views::node(objects, name).map_or("", boot_id);
    let replaced = object::text(after, "/status/node/bootIdBefore");
    let reboots = after.at("/status/reboots").and_then(Value::as_bool) == Some(true);
    if from == "Returning" && to == "Verifying" && reboots && boot == replaced {
        return Some(format!("its boot is still {boot}"));
    }
    let pairs = after.at("/status/matrix/broken").and_then(Value::as_array).into_iter().flatten();
    let broken = pairs.filter_map(Value::as_str).find(|pair| both_are_there(objects, pair, name, now));
    if matches!(to, "Uncordoning" | "Succeeded")
        && let Some(pair) = broken
    {
        return Some(format!("a pair is broken: {pair}"));
    }
    let proven = || {
        let text = views::node(objects, name).and_then(|node| object::annotation(node, "maint.dev/proven"));
        let proof: Option<Value> = text.and_then(|text| serde_json::from_str(text).ok());
        proof.is_some_and(|proof| object::text(&proof, "/bootID") == boot || !reboots)
    };
    match to {
        "Failed" | "Cancelled" if from != "BackingOut" => Some(format!("it ends as {outcome}, and nothing is proven")),
        "Succeeded" if !proven() => Some("its boot is not marked as proven".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::{Night, Row};
    use crate::store::object;
    use serde_json::{Value, json};

    /// A run that is committed and in a phase.
    fn committed(night: &mut Night, phase: &'static str) {
        night.start("n1");
        night.record("n1", |status| {
            status["phase"] = json!(phase);
            status["committedAt"] = json!("2026-11-30T02:00:00Z");
            status["reboots"] = json!(true);
            status["node"] = json!({"bootIdBefore": "boot-n1"});
        });
    }

    fn boots(night: &mut Night) {
        night.edit("world", "n1", |node| node["status"]["nodeInfo"]["bootID"] = json!("second"));
    }

    fn proves(night: &mut Night) {
        night.edit("maint-1", "n1", |node| object::annotate(node, "maint.dev/proven", r#"{"bootID": "second"}"#));
    }

    fn becomes(night: &mut Night, change: fn(&mut Value)) {
        night.record("n1", change);
    }

    pub(crate) const S19: &[Row] = &[
        ("proven", false, |night| {
            committed(night, "Returning");
            boots(night);
            becomes(night, |status| status["phase"] = json!("Verifying"));
            becomes(night, |status| status["phase"] = json!("Uncordoning"));
            becomes(night, |status| status["phase"] = json!("Settling"));
            proves(night);
            becomes(night, |status| status["phase"] = json!("Succeeded"));
        }),
        ("held", false, |night| {
            committed(night, "Returning");
            becomes(night, |status| status["phase"] = json!("Held"));
        }),
        ("accepted", false, |night| {
            committed(night, "Held");
            becomes(night, |status| {
                status["phase"] = json!("Uncordoning");
                status["acceptedBy"] = json!("person");
                status["matrix"] = json!({"broken": ["n2 -> n1"]});
            });
        }),
        ("put back before commit", false, |night| {
            night.start("n1");
            becomes(night, |status| status["phase"] = json!("Failed"));
        }),
        ("back with the boot that it had", true, |night| {
            committed(night, "Returning");
            becomes(night, |status| status["phase"] = json!("Verifying"));
        }),
        ("uncordoned with a broken pair of a node that is away", false, |night| {
            committed(night, "Verifying");
            boots(night);
            night.not_ready("n2");
            night.wait(120);
            becomes(night, |status| {
                status["phase"] = json!("Uncordoning");
                status["matrix"] = json!({"broken": ["n2 -> n1: broken"]});
            });
        }),
        ("uncordoned with a broken pair", true, |night| {
            committed(night, "Verifying");
            boots(night);
            night.wait(120);
            becomes(night, |status| {
                status["phase"] = json!("Uncordoning");
                status["matrix"] = json!({"broken": ["n2 -> n1"]});
            });
        }),
        ("ended by a time-out", true, |night| {
            committed(night, "Returning");
            becomes(night, |status| status["phase"] = json!("Failed"));
        }),
        ("a success without proof", true, |night| {
            committed(night, "Settling");
            boots(night);
            becomes(night, |status| status["phase"] = json!("Succeeded"));
        }),
    ];
}
