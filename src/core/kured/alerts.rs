//! What a real Prometheus says, and what kured says of itself: two plain readings.

use serde_json::Value;

use crate::config::KuredSettings;

/// Names shown.
const SHOWN: usize = 5;

/// What the Prometheus behind us says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Alerts {
    /// None is configured.
    NotConfigured,
    /// These alerts are pending or firing and are not to be passed over; sorted, each once.
    Known(Vec<String>),
    /// It could not be asked, or its answer not be understood.
    Failed(String),
}

impl Alerts {
    /// Reads the answer to the query `ALERTS`. Pending alerts count like firing ones, as they do for kured without
    /// `--alert-firing-only`; those of maint itself (`maint...`, or label `app="maint"`) and the ones to ignore do not.
    #[must_use]
    pub fn read(status: u16, body: &[u8], settings: &KuredSettings) -> Self {
        let Ok(answer) = serde_json::from_slice::<Value>(body) else {
            return Self::Failed(format!("Prometheus answered {status} without JSON"));
        };
        if status != 200 || answer.get("status").and_then(Value::as_str) != Some("success") {
            let why = answer.get("error").and_then(Value::as_str).unwrap_or("no success");
            return Self::Failed(format!("Prometheus answered {status}: {why}"));
        }
        let vector = answer.pointer("/data/resultType").and_then(Value::as_str) == Some("vector");
        let samples = answer.pointer("/data/result").and_then(Value::as_array).filter(|_| vector);
        let Some(samples) = samples else {
            return Self::Failed("Prometheus answered ALERTS with something that is no vector".to_owned());
        };
        let mut names = Vec::new();
        for sample in samples {
            let label = |name: &str| sample.get("metric").and_then(|metric| metric.get(name)).and_then(Value::as_str);
            // An alert whose name cannot be read is nobody's to pass over.
            let name = label("alertname").filter(|name| !name.is_empty()).unwrap_or("an alert without a name");
            let ours = name.starts_with("maint") || label("app") == Some("maint");
            if !ours && !settings.ignore_alerts.iter().any(|ignored| ignored == name) {
                names.push(name.to_owned());
            }
        }
        names.sort();
        names.dedup();
        Self::Known(names)
    }

    /// Names for a sentence.
    #[must_use]
    pub fn names(names: &[String]) -> String {
        let more = names.len().saturating_sub(SHOWN);
        let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
        if more == 0 { shown } else { format!("{shown} and {more} more") }
    }
}

/// `kured_reboot_required` of a node in the text that kured's `/metrics` answers; none where it is not there or is
/// neither 0 nor 1.
#[must_use]
pub fn reboot_required(metrics: &str, node: &str) -> Option<bool> {
    let wanted = format!("kured_reboot_required{{node=\"{node}\"}}");
    let value = metrics.lines().find_map(|line| line.trim().strip_prefix(&wanted)?.split_whitespace().next())?;
    match value.parse::<f64>() {
        Ok(number) if number.to_bits() == 1.0_f64.to_bits() => Some(true),
        Ok(number) if number.to_bits() == 0.0_f64.to_bits() => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_block_by_name_and_what_is_no_answer_fails() {
        let settings = KuredSettings { ignore_alerts: vec!["Watchdog".into()], ..KuredSettings::default() };
        let vector =
            |samples: &str| format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[{samples}]}}}}"#);
        let alert = |name: &str, more: &str| {
            format!(r#"{{"metric":{{"alertname":"{name}","alertstate":"firing"{more}}},"value":[1,"1"]}}"#)
        };
        let known = |names: &[&str]| Alerts::Known(names.iter().map(|name| (*name).to_owned()).collect());
        let failed = |why: &str| Alerts::Failed(why.to_owned());
        let rows = [
            ("none", 200, vector(""), known(&[])),
            (
                "sorted, each once, pending too",
                200,
                vector(
                    &[alert("B", ""), r#"{"metric":{"alertname":"A","alertstate":"pending"}}"#.into(), alert("B", "")]
                        .join(","),
                ),
                known(&["A", "B"]),
            ),
            (
                "ours and ignored",
                200,
                vector(&[alert("maintHeld", ""), alert("X", r#","app":"maint""#), alert("Watchdog", "")].join(",")),
                known(&[]),
            ),
            ("without a name", 200, vector(r#"{"metric":{},"value":[1,"1"]}"#), known(&["an alert without a name"])),
            (
                "null",
                200,
                r#"{"status":"success","data":{"resultType":"vector","result":null}}"#.into(),
                failed("Prometheus answered ALERTS with something that is no vector"),
            ),
            (
                "matrix",
                200,
                r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#.into(),
                failed("Prometheus answered ALERTS with something that is no vector"),
            ),
            ("error", 422, r#"{"status":"error","error":"no"}"#.into(), failed("Prometheus answered 422: no")),
            ("success of a 500", 500, vector(""), failed("Prometheus answered 500: no success")),
            ("a page", 200, "<html>".into(), failed("Prometheus answered 200 without JSON")),
        ];
        for (row, status, body, wanted) in rows {
            assert_eq!(Alerts::read(status, body.as_bytes(), &settings), wanted, "{row}");
        }
        let many: Vec<String> = ["a", "b", "c", "d", "e", "f", "g"].map(str::to_owned).to_vec();
        assert_eq!(Alerts::names(&many), "a, b, c, d, e and 2 more");
        assert_eq!(Alerts::names(&many[..2]), "a, b");
    }

    #[test]
    fn the_metric_counts_for_its_node_and_for_plain_values_only() {
        let rows = [
            ("wanted", "# TYPE kured_reboot_required gauge\nkured_reboot_required{node=\"worker2\"} 1\n", Some(true)),
            ("not wanted", "kured_reboot_required{node=\"worker2\"} 0\n", Some(false)),
            ("with a time", "kured_reboot_required{node=\"worker2\"} 1 1796000400000\n", Some(true)),
            ("another node", "kured_reboot_required{node=\"worker3\"} 1\n", None),
            ("odd", "kured_reboot_required{node=\"worker2\"} NaN\n", None),
            ("commented", "# kured_reboot_required{node=\"worker2\"} 1\n", None),
            ("nothing", "", None),
        ];
        for (row, metrics, wanted) in rows {
            assert_eq!(reboot_required(metrics, "worker2"), wanted, "{row}");
        }
    }
}
