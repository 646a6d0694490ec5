//! S2 and L8: the windows of unattended runs, and their reports.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::views::{self, acted_on, begins, changes, is_eviction, is_manual, offers, waives};
use super::{History, Opening, Rules, Violation};
use crate::store::{ObjectKey, object};

/// How long after the end of an opening its report must be there.
const REPORTED: SignedDuration = SignedDuration::from_mins(10);

/// S2: an unattended run begins inside a window with room left, and evicts, offers and acts only until its hard stop.
pub fn only_inside_a_window(rules: &Rules, history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    // The hard stop of each run, by its record's uid.
    let mut stops: BTreeMap<String, Timestamp> = BTreeMap::new();
    history.replay(|objects, step| {
        if !rules.is_ours(step) {
            return;
        }
        let mut bad = |node: &str, what: &str| {
            let what = format!("node {node}: {what}");
            found.push(Violation { invariant: "S2", step: step.number, what });
        };
        let late = |stop: &Timestamp| step.at >= *stop + rules.notice;
        for change in changes(step, "maint.dev", "maintenances") {
            let Some(record) = change.after.as_ref().filter(|one| !is_manual(one) && !waives(one, "window")) else {
                continue;
            };
            let node = object::text(record, "/spec/nodeName");
            if begins(change) {
                let open = rules.openings.iter().filter(|one| one.starts <= step.at && step.at < one.ends);
                match open.map(|one| one.ends).max() {
                    None => bad(node, "begun while no window is open"),
                    Some(ends) => {
                        if step.at + rules.expected > ends + rules.notice {
                            bad(node, "begun although the window closes before it can be over");
                        }
                        stops.insert(object::uid(record).to_owned(), ends);
                    }
                }
            }
            if offers(change) && stops.get(object::uid(record)).is_some_and(late) {
                bad(node, "its act was offered after the hard stop");
            }
        }
        let stopped =
            |node: &str| views::record_of(objects, node).and_then(|one| stops.get(object::uid(one))).is_some_and(late);
        for node in changes(step, "", "pods").filter_map(acted_on).filter(|node| stopped(node)) {
            bad(node, "acted on after the hard stop");
        }
        if is_eviction(step) && step.code != 0 {
            let pod = objects.get(&ObjectKey::pod(&step.namespace, &step.name));
            let node = pod.map_or("", |pod| object::text(pod, "/spec/nodeName"));
            if stopped(node) {
                bad(node, "a pod was evicted after the hard stop");
            }
        }
    });
    found
}

/// L8, of a night at rest: each opening that is over for a while has a report that says something.
pub fn every_window_is_reported(rules: &Rules, history: &History) -> Vec<Violation> {
    let objects = history.last();
    let Some(end) = history.steps.last() else { return Vec::new() };
    let began = history.steps.first().map_or(end.at, |step| step.at);
    let reported = |opening: &Opening| {
        let key = ObjectKey::new("maint.dev", "maintenancereports", "", &format!("window-{}", opening.id));
        objects.get(&key).is_some_and(|report| !object::text(report, "/status/verdict").is_empty())
    };
    // A report waits for runs that are still at work.
    let at_work = views::records(&objects).any(views::in_flight);
    let over = rules.openings.iter().filter(|one| one.ends >= began && one.ends + REPORTED <= end.at && !at_work);
    let missing = over.filter(|opening| !reported(opening));
    missing.map(|opening| history.at_end("L8", format!("the opening {} has no report", opening.id))).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::{OPENING, Row};
    use serde_json::{Value, json};

    pub(crate) const S2: &[Row] = &[
        ("inside", false, |night| {
            night.start("n1");
            night.evict("web-n1", Some("uid-web-n1"));
            night.grant("n1");
        }),
        ("a person's, outside", false, |night| {
            night.spec("n1", |spec| spec["trigger"] = json!("manual"));
            night.wait(3600);
            night.start("n1");
        }),
        ("the window was waived", false, |night| {
            night.spec("n1", |spec| spec["overrides"] = json!([{"gate": "window"}]));
            night.wait(3600);
            night.start("n1");
        }),
        ("after commit it goes on", false, |night| {
            night.start("n1");
            night.intend("n1");
            night.act("n1", "boot-n1");
            night.wait(3600);
            night.uncordon("n1");
        }),
        ("outside", true, |night| {
            night.wait(3600);
            night.start("n1");
        }),
        ("without room", true, |night| {
            night.wait(1000);
            night.start("n1");
        }),
        ("a pod after the hard stop", true, |night| {
            night.start("n1");
            night.wait(1300);
            night.evict("web-n1", Some("uid-web-n1"));
        }),
        ("an offer after the hard stop", true, |night| {
            night.start("n1");
            night.wait(1300);
            night.grant("n1");
        }),
        ("an act after the hard stop", true, |night| {
            night.start("n1");
            night.intend("n1");
            night.wait(1300);
            night.act("n1", "boot-n1");
        }),
    ];

    fn report(id: &str, verdict: &str) -> Vec<Value> {
        vec![
            json!({"apiVersion": "maint.dev/v1alpha1", "kind": "MaintenanceReport", "metadata": {"name": format!("window-{id}")},
                "spec": {"kind": "window"}, "status": {"verdict": verdict}}),
        ]
    }

    pub(crate) const L8: &[Row] = &[
        ("reported", false, |night| {
            night.wait(1300);
            night.seed("maint-1", report(OPENING, "done"));
            night.wait(1000);
            night.not_ready("n3");
        }),
        ("not over yet", false, |night| night.not_ready("n3")),
        ("over just now", false, |night| {
            night.wait(1300);
            night.not_ready("n3");
        }),
        ("a run is still at work", false, |night| {
            night.start("n1");
            night.wait(3600);
            night.not_ready("n3");
        }),
        ("none", true, |night| {
            night.wait(3600);
            night.not_ready("n3");
        }),
        ("of another night", true, |night| {
            night.seed("maint-1", report("night-2026-11-29", "done"));
            night.wait(3600);
            night.not_ready("n3");
        }),
        ("begun and never made", true, |night| {
            night.seed("maint-1", report(OPENING, ""));
            night.wait(3600);
            night.not_ready("n3");
        }),
    ];
}
