//! What kured makes of an answer to its question (measured on 1.23.0 with client_golang 1.23.2; its `api/prometheus/v1`
//! and kured's `pkg/blockers`).
//!
//! What a decoder says about a body that it cannot read is noise: only the text before it is kured's.

use std::collections::BTreeSet;

use serde_json::Value;

use super::settings::AlertFilter;

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A whole HTTP answer, after redirects.
    Http {
        /// HTTP code.
        status: u16,
        /// Body.
        body: String,
    },
    /// Nobody listens.
    Refused,
    /// The connection was closed before or within the answer.
    Closed,
    /// The connection was reset.
    Reset,
    /// The name was not resolved.
    Unresolved,
    /// The address does not answer: known after 30 s.
    Dropped,
    /// Accepted, and no answer or no rest of it ever comes. The client has no time limit.
    Hang,
}

impl Answer {
    /// An HTTP answer.
    #[must_use]
    pub fn http(status: u16, body: &str) -> Self {
        Self::Http { status, body: body.to_owned() }
    }

    /// The answer that lets a node go.
    #[must_use]
    pub fn go() -> Self {
        Self::http(200, r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#)
    }

    /// The answer that blocks a node with a reason.
    #[must_use]
    pub fn no(reason: &str) -> Self {
        let sample = serde_json::json!({"metric": {"__name__": "ALERTS", "alertname": reason, "alertstate": "firing"},
            "value": [0, "1"]});
        let body = serde_json::json!({"status": "success", "data": {"resultType": "vector", "result": [sample]}});
        Self::http(200, &body.to_string())
    }
}

/// What follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing blocks.
    Go,
    /// Blocked until the next tick; the text is logged.
    Blocked(String),
    /// Nothing happens any more, not even a log line, until the connection breaks.
    Stuck,
}

/// What a client does with an answer before it judges it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It judges it.
    Judge,
    /// It asks again by GET with the form as query (client_golang's fallback).
    AskByGet,
    /// It follows `Location` with the same method and body (Go's `net/http`).
    Follow,
    /// It follows `Location` by GET without a body.
    FollowByGet,
}

/// What follows from the code of an answer to a request by POST or GET. 403 is final here; newer clients fall back on it.
#[must_use]
pub const fn next(status: u16, by_post: bool) -> Next {
    match status {
        405 | 501 if by_post => Next::AskByGet,
        307 | 308 => Next::Follow,
        301..=303 => Next::FollowByGet,
        _ => Next::Judge,
    }
}

/// Judges an answer to a question that was sent to `url` (without the path that the client appends).
#[must_use]
pub fn judge(answer: &Answer, url: &str, filter: &AlertFilter) -> Verdict {
    let failed = |why: &str| {
        let text = format!("Post \"{}/api/v1/query\": {why}", url.trim_end_matches('/'));
        Verdict::Blocked(format!("Reboot blocked: prometheus query error: {text}"))
    };
    let address = authority(url);
    match answer {
        Answer::Hang => Verdict::Stuck,
        Answer::Refused => failed(&format!("dial tcp {address}: connect: connection refused")),
        Answer::Closed => failed("EOF"),
        Answer::Reset => failed("read: connection reset by peer"),
        Answer::Unresolved => {
            let host = address.split(':').next().unwrap_or_default();
            failed(&format!("dial tcp: lookup {host}: i/o timeout"))
        }
        Answer::Dropped => failed(&format!("dial tcp {address}: i/o timeout")),
        Answer::Http { status, body } => match active_alerts(*status, body, filter) {
            Err(error) => Verdict::Blocked(format!("Reboot blocked: prometheus query error: {error}")),
            Ok(names) if names.is_empty() => Verdict::Go,
            Ok(names) => {
                let mut shown: Vec<&str> = names.iter().take(10).map(String::as_str).collect();
                if names.len() > shown.len() {
                    shown.push("...");
                }
                Verdict::Blocked(format!("Reboot blocked: {} active alerts: [{}]", names.len(), shown.join(" ")))
            }
        },
    }
}

/// Host and port of a URL.
fn authority(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or_default();
    if host.contains(':') { host.to_owned() } else { format!("{host}:80") }
}

/// Names of the alerts that block, sorted, each once.
fn active_alerts(status: u16, body: &str, filter: &AlertFilter) -> Result<BTreeSet<String>, String> {
    let is_api_error = matches!(status, 400 | 422);
    match status {
        200..=299 => {}
        _ if is_api_error => {}
        400..=499 => return Err(format!("client_error: client error: {status}")),
        500..=599 => return Err(format!("server_error: server error: {status}")),
        _ => return Err(format!("bad_response: bad response code {status}")),
    }
    // The body of a 204 is not read at all.
    let envelope = if status == 204 {
        Value::Null
    } else {
        serde_json::from_str(body).map_err(|error| format!("bad_response: {error}"))?
    };
    let text = |name: &str| match envelope.get(name) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(_) => Err(format!("bad_response: {name}: expects a string")),
    };
    if !envelope.is_object() && !envelope.is_null() {
        return Err("bad_response: expects an object".to_owned());
    }
    let said = text("status")?;
    if said == "error" {
        return Err(format!("{}: {}", text("errorType")?, text("error")?));
    }
    if is_api_error && said == "success" {
        return Err("bad_response: inconsistent body for response code".to_owned());
    }
    vector(envelope.get("data"), filter)
}

fn vector(data: Option<&Value>, filter: &AlertFilter) -> Result<BTreeSet<String>, String> {
    let data = data.ok_or("unexpected end of JSON input")?;
    let kind = data.get("resultType").and_then(Value::as_str).unwrap_or_default();
    let result = data.get("result").unwrap_or(&Value::Null);
    match kind {
        "vector" => {}
        "matrix" | "scalar" | "string" => return Err(format!("unexpected value type {result}")),
        other => return Err(format!("unexpected value type {other:?}")),
    }
    // Measured: null is an error for the decoder, and so is a missing result.
    let samples = result.as_array().ok_or("decode vector: expects [")?;
    let mut names = BTreeSet::new();
    for sample in samples {
        let (metric, value) = read_sample(sample)?;
        let state = metric.iter().find(|(name, _)| *name == "alertstate").map_or("", |(_, state)| state);
        let Some((_, name)) = metric.iter().find(|(label, _)| *label == "alertname") else { continue };
        let wanted = filter.regexp.as_ref().is_none_or(|regexp| regexp.is_match(name) == filter.match_only);
        if value != 0.0 && wanted && (!filter.firing_only || state == "firing") {
            names.insert((*name).to_owned());
        }
    }
    Ok(names)
}

/// Labels and value of a sample. What is not there is the zero value, and zero does not block.
fn read_sample(sample: &Value) -> Result<(Vec<(&str, &str)>, f64), String> {
    let sample = sample.as_object().ok_or("decode sample: expects {")?;
    let mut labels = Vec::new();
    match sample.get("metric") {
        None | Some(Value::Null) => {}
        Some(Value::Object(metric)) => {
            for (name, value) in metric {
                labels.push((name.as_str(), value.as_str().ok_or("decode metric: expects \"")?));
            }
        }
        Some(_) => return Err("decode metric: expects {".to_owned()),
    }
    let value = match sample.get("value") {
        None | Some(Value::Null) => 0.0,
        Some(Value::Array(pair)) => match pair.as_slice() {
            [Value::Number(_), Value::String(text)] => number(text)?,
            _ => return Err("sample value must be a quoted string".to_owned()),
        },
        Some(_) => return Err("decode sample pair: expects [".to_owned()),
    };
    Ok((labels, value))
}

/// Go's `strconv.ParseFloat`, as far as Prometheus writes numbers.
fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("strconv.ParseFloat: parsing {text:?}: invalid syntax"))
}
