//! Posting Events of `events.k8s.io/v1`. The cluster's own recorders aggregate by reason and keep the first note only;
//! here the name says what is the same, and a series is counted by whoever tells it.

use http::Method;
use maint_core::api::names;
use maint_core::report::events::{EventNote, Subject};
use serde_json::{Value, json};

use super::Requests;
use crate::execute::{Calls, Form, WriteError};

/// Longest `reportingInstance` (ReportingInstanceLengthLimit of Kubernetes).
const MAX_INSTANCE: usize = 128;

impl<C: Calls> Requests<C> {
    /// Posts an Event, or counts it up where it is a series. One that is there already is fine: it tells the same.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn tell(&self, note: &EventNote, instance: &str) -> Result<(), WriteError> {
        let base = format!("/apis/events.k8s.io/v1/namespaces/{}/events", note.namespace());
        if let Some(series) = series(note, self.clock.now()) {
            let path = format!("{base}/{}?fieldManager=maint", note.name);
            match self.call(Method::PATCH, &path, Form::Merge, json!({"series": series})).await {
                // Events are kept for an hour or so: it is told anew.
                Err(WriteError::NotFound(_)) => {}
                other => return other.map(drop),
            }
        }
        let path = format!("{base}?fieldManager=maint");
        match self.call(Method::POST, &path, Form::Json, body(note, instance, self.clock.now())).await {
            Ok(_) | Err(WriteError::Conflict(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn micros(at: jiff::Timestamp) -> String {
    // MicroTime has exactly six digits.
    format!("{at:.6}")
}

/// What a series says; a single Event has none, the API wants a count of 2 at least.
fn series(note: &EventNote, now: jiff::Timestamp) -> Option<Value> {
    (note.count > 1).then(|| json!({"count": note.count, "lastObservedTime": micros(now)}))
}

fn reference(subject: &Subject) -> Value {
    let mut reference = json!({
        "apiVersion": subject.api_version, "kind": subject.kind, "name": subject.name, "uid": subject.uid,
    });
    if !subject.namespace.is_empty() {
        reference["namespace"] = json!(subject.namespace);
    }
    reference
}

fn body(note: &EventNote, instance: &str, now: jiff::Timestamp) -> Value {
    let mut body = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"name": note.name, "namespace": note.namespace()},
        "eventTime": micros(note.at),
        "type": if note.warning { "Warning" } else { "Normal" },
        "reason": note.reason, "action": note.action, "note": note.note,
        "regarding": reference(&note.regarding),
        "reportingController": names::REPORTING_CONTROLLER,
        "reportingInstance": instance.chars().take(MAX_INSTANCE).collect::<String>(),
    });
    if let Some(related) = &note.related {
        body["related"] = reference(related);
    }
    if let Some(series) = series(note, now) {
        body["series"] = series;
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(count: i64) -> EventNote {
        let regarding = Subject {
            api_version: "v1",
            kind: "Node",
            name: "worker2".into(),
            namespace: String::new(),
            uid: "n-2".into(),
        };
        EventNote {
            name: "worker2.0".into(),
            regarding,
            related: None,
            reason: "NodeDraining".into(),
            action: "Draining",
            warning: false,
            note: "worker2: cordoned".into(),
            at: "2026-11-30T02:00:00Z".parse().expect("a time"),
            count,
        }
    }

    #[test]
    fn an_event_has_all_that_the_api_demands() {
        let now: jiff::Timestamp = "2026-11-30T02:10:00.5Z".parse().expect("a time");
        let wanted = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event",
            "metadata": {"name": "worker2.0", "namespace": "default"},
            "eventTime": "2026-11-30T02:00:00.000000Z", "type": "Normal",
            "reason": "NodeDraining", "action": "Draining", "note": "worker2: cordoned",
            "regarding": {"apiVersion": "v1", "kind": "Node", "name": "worker2", "uid": "n-2"},
            "reportingController": "maint.dev/maint", "reportingInstance": "maint-0",
        });
        assert_eq!(body(&note(1), "maint-0", now), wanted);
        let series = json!({"count": 2, "lastObservedTime": "2026-11-30T02:10:00.500000Z"});
        assert_eq!(body(&note(2), "maint-0", now)["series"], series);
        assert_eq!(body(&note(1), &"x".repeat(300), now)["reportingInstance"].as_str().map(str::len), Some(128));
    }
}
