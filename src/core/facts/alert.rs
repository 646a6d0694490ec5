//! What alerts fire, by the word of an Alertmanager or a Prometheus.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::{FailureKind, Fields, Item, Listed, Malformed, Observation};

/// An alert that fires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// Its labels, `alertname` among them.
    pub labels: BTreeMap<String, String>,
    /// `startsAt`; a Prometheus does not say in its series `ALERTS`.
    pub since: Option<Timestamp>,
}

impl Alert {
    /// Label `alertname`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.labels.get("alertname").map_or("", String::as_str)
    }

    /// One of maint itself: its name begins with `maint`, or label `app` is `maint`.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.name().starts_with("maint") || self.labels.get("app").is_some_and(|app| app == "maint")
    }

    fn of_labels(labels: BTreeMap<String, String>, fields: &Fields<'_>) -> Result<BTreeMap<String, String>, Malformed> {
        // One without a name cannot be passed over by anybody.
        match labels.get("alertname") {
            Some(name) if !name.is_empty() => Ok(labels),
            _ => Err(fields.malformed("alertname", "is missing")),
        }
    }

    fn of_alertmanager(root: &Fields<'_>) -> Result<Self, Malformed> {
        let labels = Self::of_labels(root.string_map("labels")?, &root.object("labels")?)?;
        Ok(Self { labels, since: root.optional_time("startsAt")? })
    }

    fn of_prometheus(root: &Fields<'_>) -> Result<Self, Malformed> {
        let labels = Self::of_labels(root.string_map("metric")?, &root.object("metric")?)?;
        Ok(Self { labels, since: None })
    }

    /// One item of an Alertmanager's list, or one sample of a Prometheus' vector.
    #[must_use]
    pub fn item(value: &Value) -> Item<Self> {
        let of_prometheus = value.get("metric").is_some();
        let labels = if of_prometheus { value.get("metric") } else { value.get("labels") };
        let name = labels.and_then(|labels| labels.get("alertname")).and_then(Value::as_str);
        let object = format!("Alert {}", name.unwrap_or("without a name"));
        let read = |root: Fields<'_>| {
            if of_prometheus { Self::of_prometheus(&root) } else { Self::of_alertmanager(&root) }
        };
        match Fields::root(&object, value).and_then(read) {
            Ok(alert) => Item::Good(alert),
            Err(malformed) => Item::Malformed(malformed),
        }
    }

    /// Reads the answer of an Alertmanager (`/api/v2/alerts`: a list) or a Prometheus (`/api/v1/query`: a vector).
    #[must_use]
    pub fn answer(who: &str, status: u16, body: &[u8], at: Timestamp) -> Listed<Self> {
        let failed = |detail: String| Observation::Failed { kind: FailureKind::Server, detail, at };
        let Ok(answer) = serde_json::from_slice::<Value>(body) else {
            return failed(format!("{who} answered {status} without JSON"));
        };
        let success = answer.get("status").and_then(Value::as_str) == Some("success");
        let vector = answer.pointer("/data/resultType").and_then(Value::as_str) == Some("vector");
        let items = match &answer {
            Value::Array(items) => Some(items),
            _ if success && vector => answer.pointer("/data/result").and_then(Value::as_array),
            _ => None,
        };
        match items {
            Some(items) if status == 200 => Observation::Known { value: items.iter().map(Self::item).collect(), at },
            _ => {
                let why = answer.get("error").or(answer.get("message")).and_then(Value::as_str);
                failed(format!("{who} answered {status}: {}", why.unwrap_or("no list of alerts")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_list_of_alerts_or_none() {
        let at = "2026-11-30T01:00:00Z".parse().expect("a time");
        let vector =
            |samples: &str| format!(r#"{{"status":"success","data":{{"resultType":"vector","result":{samples}}}}}"#);
        let rows: [(&str, u16, String, Result<(usize, usize), &str>); 11] = [
            ("Alertmanager, none", 200, "[]".into(), Ok((0, 0))),
            (
                "Alertmanager, one",
                200,
                r#"[{"labels":{"alertname":"A"},"startsAt":"2026-11-30T00:00:00.5Z","status":{"state":"active"}}]"#
                    .into(),
                Ok((1, 0)),
            ),
            ("without a name", 200, r#"[{"labels":{}}, {"labels":{"alertname":""}}, 7, {}]"#.into(), Ok((0, 4))),
            ("odd time", 200, r#"[{"labels":{"alertname":"A"},"startsAt":"soon"}]"#.into(), Ok((0, 1))),
            ("Prometheus, none", 200, vector("[]"), Ok((0, 0))),
            ("Prometheus, one", 200, vector(r#"[{"metric":{"alertname":"A"},"value":[1,"1"]}]"#), Ok((1, 0))),
            ("Prometheus, null", 200, vector("null"), Err("P answered 200: no list of alerts")),
            (
                "a matrix",
                200,
                r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#.into(),
                Err("P answered 200: no list of alerts"),
            ),
            ("an error", 422, r#"{"status":"error","error":"no"}"#.into(), Err("P answered 422: no")),
            ("a list with 500", 500, "[]".into(), Err("P answered 500: no list of alerts")),
            ("a page", 200, "<html>".into(), Err("P answered 200 without JSON")),
        ];
        for (row, status, body, wanted) in rows {
            let got = match Alert::answer("P", status, body.as_bytes(), at) {
                Observation::Known { value, .. } => {
                    let bad = value.iter().filter(|item| matches!(item, Item::Malformed(_))).count();
                    Ok((value.len() - bad, bad))
                }
                Observation::Failed { detail, .. } => Err(detail),
                other => panic!("{row}: {other:?}"),
            };
            assert_eq!(got.as_ref().map_err(String::as_str), wanted.as_ref().map_err(|why| *why), "{row}");
        }
    }
}
