//! S18, S20 and L4: what is written down and told. No secret, nothing taken back, and every message arrives.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use serde_json::Value;

use super::views::{self, changes, phase};
use super::{History, Objects, Rules, Violation};
use crate::store::object;
use crate::store::object::At as _;

/// Entries of a timeline from which on the oldest ones but the first may be left out.
const TIMELINE: usize = 60;
/// Entries of an outbox from which on the oldest ones may be left out.
const OUTBOX: usize = 40;
/// What was queued so long before the end may still be on its way.
const LAST_MOMENT: SignedDuration = SignedDuration::from_secs(60);
/// How often one receiver may get one message: once, and once more for each process that could not write it down.
const TIMES: usize = 8;

/// S18: no request of the service, and no message, has a secret in it.
pub fn no_secret_is_written(rules: &Rules, history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    if rules.secrets.is_empty() {
        return found;
    }
    for step in history.steps.iter().filter(|step| rules.is_ours(step)) {
        if step.body.as_ref().is_some_and(|body| tells(body, &rules.secrets)) {
            let what = format!("a secret was written: {} {}", step.verb, step.path);
            found.push(Violation { invariant: "S18", step: step.number, what });
        }
    }
    for (id, text) in &history.mail {
        if rules.secrets.iter().any(|secret| text.contains(secret.as_str())) {
            found.push(history.at_end("S18", format!("a secret was told: {id}")));
        }
    }
    found
}

fn tells(value: &Value, secrets: &[String]) -> bool {
    let is_told = |text: &str| secrets.iter().any(|secret| text.contains(secret.as_str()));
    match value {
        Value::String(text) => is_told(text),
        Value::Array(values) => values.iter().any(|value| tells(value, secrets)),
        Value::Object(members) => members.iter().any(|(key, value)| is_told(key) || tells(value, secrets)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// S20: a timeline only grows, messages keep what they say and their ids are their own, and what is over stays as it
/// ended.
pub fn history_stays(rules: &Rules, history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    for step in history.steps.iter().filter(|step| rules.is_ours(step)) {
        for change in changes(step, "maint.dev", "maintenances").chain(changes(step, "maint.dev", "maintenancereports"))
        {
            let (Some(before), Some(after)) = (&change.before, &change.after) else { continue };
            if let Some(why) = rewritten(before, after) {
                let what = format!("{}: {why}", change.key.name);
                found.push(Violation { invariant: "S20", step: step.number, what });
            }
        }
    }
    found
}

fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.at(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn rewritten(before: &Value, after: &Value) -> Option<String> {
    let (old, new) = (list(before, "/status/timeline"), list(after, "/status/timeline"));
    let kept = if new.len() < TIMELINE {
        new.starts_with(old)
    } else {
        // The first entry stays, and of the others the last ones.
        old.is_empty() || old.first() == new.first() && old.last().is_none_or(|last| new.contains(last))
    };
    if !kept {
        return Some("its timeline was rewritten".to_owned());
    }
    let is_over = matches!(phase(before), "Succeeded" | "Failed" | "Cancelled");
    let end = |object: &Value| (phase(object).to_owned(), object::text(object, "/status/outcome").to_owned());
    if is_over && end(before) != end(after) {
        return Some(format!("it was over ({:?}), and is {:?} now", end(before), end(after)));
    }
    let verdict = object::text(before, "/status/verdict");
    if !verdict.is_empty() && verdict != object::text(after, "/status/verdict") {
        return Some(format!("its verdict was {verdict}, and is another one now"));
    }
    let (old, new) = (list(before, "/status/outbox"), list(after, "/status/outbox"));
    let mut ids = BTreeSet::new();
    if let Some(twice) = new.iter().map(|entry| object::text(entry, "/id")).find(|id| !ids.insert(*id)) {
        return Some(format!("two messages are called {twice}"));
    }
    old.iter().find_map(|entry| {
        let id = object::text(entry, "/id");
        match new.iter().find(|other| object::text(other, "/id") == id) {
            None => (new.len() < OUTBOX).then(|| format!("message {id} is gone")),
            Some(other) => {
                let same = ["/kind", "/text", "/severity", "/createdAt"]
                    .iter()
                    .all(|pointer| object::text(entry, pointer) == object::text(other, pointer));
                let marks = list(entry, "/deliveredTo").iter().all(|mark| list(other, "/deliveredTo").contains(mark));
                (!same || !marks).then(|| format!("message {id} was rewritten"))
            }
        }
    })
}

/// The messages of all records and reports, each with whose it is.
fn messages(objects: &Objects) -> impl Iterator<Item = (&str, &Value)> {
    let reports = views::all(objects, "maint.dev", "maintenancereports").map(|(_, report)| report);
    let all = views::records(objects).chain(reports);
    all.flat_map(|object| list(object, "/status/outbox").iter().map(move |entry| (object::name(object), entry)))
}

/// L4, of a night at rest: each message that is not of the last moment was taken by its receiver, or given up and that was
/// written down; what is written down as taken was, and nobody gets the same message again and again.
pub fn every_message_was_delivered(_: &Rules, history: &History) -> Vec<Violation> {
    let objects = history.last();
    let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
    for (id, _) in &history.mail {
        *taken.entry(id).or_default() += 1;
    }
    let mut found = Vec::new();
    let moment = history.steps.last().map(|step| step.at - LAST_MOMENT);
    for (whose, entry) in messages(&objects) {
        let id = object::text(entry, "/id");
        if object::time(entry, "/createdAt").is_some_and(|at| Some(at) > moment) {
            continue;
        }
        let marked = !list(entry, "/deliveredTo").is_empty();
        let given_up =
            list(entry, "/pending").iter().any(|one| one.at("/givenUp").and_then(Value::as_bool) == Some(true));
        let what = match (marked, taken.contains_key(id)) {
            (true, true) => continue,
            (true, false) => "is marked as delivered, and nobody got it",
            (false, _) if given_up && !object::text(entry, "/lastError").is_empty() => continue,
            (false, true) => "was delivered, and that is not written down",
            (false, false) => "was not delivered",
        };
        found.push(history.at_end("L4", format!("message {id} of {whose} {what}")));
    }
    let often = taken.into_iter().filter(|(_, times)| *times > TIMES);
    found.extend(often.map(|(id, times)| history.at_end("L4", format!("message {id} was delivered {times} times"))));
    found
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::{Night, Row, SECRET};
    use serde_json::{Value, json};

    pub(crate) const S18: &[Row] = &[
        ("nothing", false, |night| night.put_body(&json!({"status": {"message": "a plain word"}}))),
        ("somebody else's", false, |night| {
            night.client = "person".to_owned();
            night.put_body(&json!({"data": {"token": SECRET}}));
        }),
        ("in a text", true, |night| night.put_body(&json!({"a": [{"b": format!("POST https://x/{SECRET} failed")}]}))),
        ("in a key", true, |night| night.put_body(&json!({"annotations": {SECRET: "x"}}))),
        ("in a message", true, |night| night.mail.push(("a".to_owned(), format!("see {SECRET}")))),
    ];

    fn timeline(count: usize) -> Value {
        (0..count).map(|index| json!({"at": "x", "phase": "Draining", "message": index.to_string()})).collect()
    }

    fn message(id: &str, text: &str, delivered: &[&str]) -> Value {
        json!({"id": id, "kind": "held", "text": text, "deliveredTo": delivered})
    }

    /// A status, and what becomes of it.
    fn turns(night: &mut Night, before: Value, after: Value) {
        night.record("n1", |status| *status = before);
        night.record("n1", |status| *status = after);
    }

    pub(crate) const S20: &[Row] = &[
        ("it grows", false, |night| turns(night, json!({"timeline": timeline(3)}), json!({"timeline": timeline(5)}))),
        ("a long one loses its middle", false, |night| {
            let mut cut = timeline(62);
            cut.as_array_mut().expect("a list").drain(1..=2);
            turns(night, json!({"timeline": timeline(60)}), json!({"timeline": cut}));
        }),
        ("a message is delivered", false, |night| {
            let before = json!({"outbox": [message("a", "x", &[])]});
            turns(night, before, json!({"outbox": [message("a", "x", &["mail"]), message("b", "y", &[])]}));
        }),
        ("it is over, and says what is left", false, |night| {
            let before = json!({"phase": "Failed", "outcome": "Cancelled"});
            turns(night, before, json!({"phase": "Failed", "outcome": "Cancelled", "message": "a lock"}));
        }),
        ("an entry is gone", true, |night| {
            turns(night, json!({"timeline": timeline(3)}), json!({"timeline": timeline(2)}));
        }),
        ("an entry is another one", true, |night| {
            let mut other = timeline(3);
            other[1]["message"] = json!("never mind");
            turns(night, json!({"timeline": timeline(3)}), json!({"timeline": other}));
        }),
        ("what was over is at work", true, |night| {
            turns(night, json!({"phase": "Failed", "outcome": "x"}), json!({"phase": "Acting", "outcome": ""}));
        }),
        ("a message says something else", true, |night| {
            turns(night, json!({"outbox": [message("a", "x", &[])]}), json!({"outbox": [message("a", "y", &[])]}));
        }),
        ("a message is gone", true, |night| {
            turns(night, json!({"outbox": [message("a", "x", &[])]}), json!({"outbox": []}));
        }),
        ("two messages of one id", true, |night| {
            let after = json!({"outbox": [message("a", "x", &[]), message("a", "y", &[])]});
            turns(night, json!({"outbox": [message("a", "x", &[])]}), after);
        }),
        ("a receipt is lost", true, |night| {
            let after = json!({"outbox": [message("a", "x", &[])]});
            turns(night, json!({"outbox": [message("a", "x", &["mail"])]}), after);
        }),
    ];

    fn got(night: &mut Night, id: &str, times: usize) {
        night.mail.extend(std::iter::repeat_n((id.to_owned(), "text".to_owned()), times));
    }

    pub(crate) const L4: &[Row] = &[
        ("delivered", false, |night| {
            night.record("n1", |status| *status = json!({"outbox": [message("a", "x", &["mail"])]}));
            got(night, "a", 2);
        }),
        ("given up, and that is said", false, |night| {
            night.record("n1", |status| {
                *status = json!({"outbox": [{"id": "a", "pending": [{"receiver": "mail", "givenUp": true}],
                    "lastError": "mail: given up after 24 h"}]});
            });
        }),
        ("not delivered", true, |night| {
            night.record("n1", |status| *status = json!({"outbox": [message("a", "x", &[])]}));
        }),
        ("queued a moment ago", false, |night| {
            night.record("n1", |status| {
                *status = json!({"outbox": [{"id": "a", "createdAt": "2026-11-30T02:00:00Z", "deliveredTo": []}]});
            });
        }),
        ("delivered, and not marked", true, |night| {
            night.record("n1", |status| *status = json!({"outbox": [message("a", "x", &[])]}));
            got(night, "a", 1);
        }),
        ("marked, and nobody got it", true, |night| {
            night.record("n1", |status| *status = json!({"outbox": [message("a", "x", &["mail"])]}));
        }),
        ("given up in silence", true, |night| {
            night.record("n1", |status| {
                *status = json!({"outbox": [{"id": "a", "pending": [{"receiver": "mail", "givenUp": true}]}]});
            });
        }),
        ("again and again", true, |night| {
            night.record("n1", |status| *status = json!({"outbox": [message("a", "x", &["mail"])]}));
            got(night, "a", 20);
        }),
        ("a report's", true, |night| {
            night.seed(
                "maint-1",
                vec![json!({"apiVersion": "maint.dev/v1alpha1", "kind": "MaintenanceReport",
                    "metadata": {"name": "window-x"}, "spec": {}, "status": {"outbox": [message("a", "x", &[])]}})],
            );
        }),
    ];
}
