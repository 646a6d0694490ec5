//! From what an API server answered to a verdict on one cell.
//!
//! Two reads make a cell. The *fresh dial* is an upgrade request for a kubelet path that does not exist: the API
//! server must open a new connection for it, and the kubelet's own raw 404 proves that connection. *Health* is a plain
//! GET of the kubelet's `/healthz`: it may run over an old connection while new ones fail, so alone it proves nothing.
//!
//! An answer of the API server itself always carries `Audit-Id`; what the kubelet answered to an upgrade is passed on
//! raw, without it. Both were measured with API server and kubelet 1.34.4.

use serde::Deserialize;

use super::{CellVerdict, Readiness};

/// How a request to an API server ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It answered.
    Response(Response),
    /// It did not answer within so many seconds.
    TimedOut {
        /// The limit that was reached, in seconds.
        seconds: u64,
    },
    /// No connection, or one that was cut before the answer.
    NoConnection {
        /// The error's text.
        detail: String,
    },
    /// A connection whose certificate could not be verified.
    Tls {
        /// The error's text.
        detail: String,
    },
    /// The request was never sent.
    NotSent {
        /// Why.
        detail: String,
    },
}

/// The parts of a response that the verdict needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// Whether it came over HTTP/1.1; HTTP/2 cannot carry an upgrade.
    pub http_1_1: bool,
    /// Whether it has an `Audit-Id` header.
    pub audit_id: bool,
    /// `Content-Type`, empty if there is none.
    pub content_type: String,
    /// The beginning of the body.
    pub body: String,
}

/// A verdict and what to tell people.
pub type Judged = (CellVerdict, String);

/// What a forbidden probe needs.
const RIGHT: &str = "the probe needs the right to `get` `nodes/proxy`";

/// The parts of a `Status` that are read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    kind: String,
    message: String,
    reason: String,
}

impl Response {
    /// The body as a `Status`, if it is one.
    fn status_object(&self) -> Option<Status> {
        serde_json::from_str::<Status>(&self.body).ok().filter(|status| status.kind == "Status")
    }

    /// What it says, in one line: the message of a `Status`, else the beginning of the body.
    fn text(&self) -> String {
        let text = self.status_object().map_or_else(|| self.body.clone(), |status| status.message);
        one_line(&text)
    }

    fn is_plain_text(&self) -> bool {
        let media_type = self.content_type.split(';').next().unwrap_or_default();
        media_type.trim().eq_ignore_ascii_case("text/plain")
    }

    /// `HTTP 503: text`, for people.
    fn shown(&self) -> String {
        let text = self.text();
        if text.is_empty() { format!("HTTP {}", self.status) } else { format!("HTTP {}: {text}", self.status) }
    }
}

/// Text of the cluster made fit for a line: no control characters, at most 300 characters.
#[must_use]
pub fn one_line(text: &str) -> String {
    const LIMIT: usize = 300;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut line: String = words.chars().filter(|letter| !letter.is_control()).take(LIMIT).collect();
    if words.chars().count() > LIMIT {
        line.push_str("...");
    }
    line
}

/// Judges the answer to the upgrade request for a path that the kubelet does not serve.
#[must_use]
pub fn fresh_dial(answer: &Answer, server: &Readiness) -> Judged {
    let response = match answer {
        Answer::Response(response) => response,
        other => return without_response(other, server),
    };
    if !response.http_1_1 {
        return unknown("Upgrade header lost: answered over HTTP/2, which cannot carry it");
    }
    match response.status {
        101 | 200..=299 => unknown(format!(
            "Upgrade header lost on the way, an old connection may have answered ({})",
            response.shown()
        )),
        _ if response.audit_id => dialled_by_server(response),
        404 if response.is_plain_text() => {
            (CellVerdict::Green, "the kubelet answered over a fresh connection".to_owned())
        }
        401 | 403 => (
            CellVerdict::Unhealthy,
            format!("the path is whole, but the kubelet refuses this API server ({})", response.shown()),
        ),
        _ => unknown(format!("an answer that is neither the API server's nor a kubelet's ({})", response.shown())),
    }
}

/// An answer to the upgrade request that the API server itself gave: the dial failed, or was never tried.
fn dialled_by_server(response: &Response) -> Judged {
    let shown = response.shown();
    match response.status {
        // A kubelet answer below 400 to the path. It does not serve the path, so this is not expected; but a kubelet
        // answered, over a fresh connection.
        500 if response.text().contains("invalid upgrade response") => {
            (CellVerdict::Green, format!("the kubelet answered over a fresh connection ({shown})"))
        }
        // A fault of the Node object (no address to dial), not of the path; the cell is broken all the same.
        500 if response.text().contains("no preferred addresses found") => {
            (CellVerdict::Broken, format!("the Node has no address that the API server would dial ({shown})"))
        }
        // 502: k3s before 1.22 passed its tunnel's answer on as it was.
        500 | 502 | 503 | 504 => (CellVerdict::Broken, explained(response)),
        _ => refused_by_server(response),
    }
}

/// Answers that mean the same for both reads: the API server did not even try.
fn refused_by_server(response: &Response) -> Judged {
    let shown = response.shown();
    match response.status {
        404 if response.status_object().is_some_and(|status| status.reason == "NotFound") => {
            unknown(format!("this API server knows no such node ({shown})"))
        }
        401 => unknown(format!("this API server rejects our credentials ({shown})")),
        403 => unknown(format!(
            "forbidden: {RIGHT}; newer Kubernetes may want `create` too, if it worked before an upgrade ({shown})"
        )),
        429 => unknown(format!("throttled by this API server ({shown})")),
        _ => unknown(format!("an answer that proves nothing ({shown})")),
    }
}

/// Judges the answer to the plain GET of the kubelet's `/healthz`.
#[must_use]
pub fn health(answer: &Answer, server: &Readiness) -> Judged {
    let response = match answer {
        Answer::Response(response) => response,
        other => return without_response(other, server),
    };
    let from_server = response.status_object().is_some();
    let shown = response.shown();
    match response.status {
        200 if response.body.trim() == "ok" => (CellVerdict::Green, "healthz says ok".to_owned()),
        200..=299 => unknown(format!("healthz answers without saying ok ({shown})")),
        500 if !from_server && !failing_checks(&response.body).is_empty() => (
            CellVerdict::Unhealthy,
            format!("the kubelet is not healthy: {} failing", failing_checks(&response.body).join(", ")),
        ),
        401 | 403 if !from_server && response.is_plain_text() => {
            (CellVerdict::Unhealthy, format!("the kubelet refuses this API server ({shown})"))
        }
        // A transport failure, as the API server reports it; k3s before 1.22 passed its tunnel's text on.
        500 | 502..=504 if from_server => (CellVerdict::Broken, explained(response)),
        502 | 503 if response.audit_id => (CellVerdict::Broken, explained(response)),
        500 | 502..=504 => unknown(format!("an answer that is neither the API server's nor a kubelet's ({shown})")),
        _ => refused_by_server(response),
    }
}

/// The names of failing checks in a verbose health answer: lines `[-]etcd failed: reason withheld`.
#[must_use]
pub fn failing_checks(body: &str) -> Vec<String> {
    body.lines()
        .filter_map(|line| line.trim().strip_prefix("[-]"))
        .filter_map(|rest| rest.split_whitespace().next())
        .map(|name| name.trim_end_matches(':').to_owned())
        .filter(|name| !name.is_empty())
        .collect()
}

/// What a transport failure's text means, where it is known, before the text itself.
fn explained(response: &Response) -> String {
    let text = response.text();
    let has = |part: &str| text.contains(part);
    let meaning = if has("code 503: 503 Service Unavailable") {
        "an HTTP proxy or load balancer sits in the path"
    } else if has("code 502") || has("failed to find Session") {
        "no tunnel from this API server to the node, or its kubelet is down"
    } else if has("x509: certificate is valid for") {
        "another kubelet answered, or the node's address changed"
    } else if has("dialing proxy") || (has("127.0.0.1:") && has("connection refused") && !has(":10250")) {
        "the API server's own tunnel endpoint does not answer"
    } else if has("i/o timeout") || has("connection timed out") {
        "the node does not answer"
    } else if has("connection refused") {
        "the kubelet does not listen"
    } else if has("no route to host") || has("network is unreachable") {
        "no route from this API server to the node"
    } else if has("client connection lost") {
        "the connection to the kubelet went dead"
    } else {
        "the API server could not reach the kubelet"
    };
    format!("{meaning} ({})", response.shown())
}

/// No response: the path's fault if the API server itself works, else the server's.
fn without_response(answer: &Answer, server: &Readiness) -> Judged {
    let what = match answer {
        // A response is judged before; what it says is shown all the same.
        Answer::Response(response) => response.shown(),
        Answer::TimedOut { seconds } => format!("no answer within {seconds} s"),
        Answer::NoConnection { detail } => one_line(detail),
        Answer::Tls { detail } => {
            return (CellVerdict::ServerDown, format!("the API server's certificate fails: {}", one_line(detail)));
        }
        Answer::NotSent { detail } => return unknown(format!("not asked: {}", one_line(detail))),
    };
    match server {
        Readiness::Ready => (CellVerdict::Broken, format!("{what}, while the API server itself is ready")),
        Readiness::NotReady { failing } if failing.is_empty() => {
            (CellVerdict::ServerDown, format!("{what}, and the API server says that it is not ready"))
        }
        Readiness::NotReady { failing } => (
            CellVerdict::ServerDown,
            format!("{what}, and the API server says that it is not ready ({})", failing.join(", ")),
        ),
        Readiness::Unreachable { detail } => {
            (CellVerdict::ServerDown, format!("the API server does not answer: {}", one_line(detail)))
        }
        Readiness::Unknown { detail } => {
            unknown(format!("{what}, and whether the API server works is not known ({})", one_line(detail)))
        }
    }
}

/// Both reads make the cell: green only if the fresh dial is whole and health says ok. Health is none where the dial
/// already failed.
#[must_use]
pub fn cell(dial: Judged, health: Option<Judged>) -> Judged {
    match (dial, health) {
        ((CellVerdict::Green, _), Some((CellVerdict::Green, _))) => {
            (CellVerdict::Green, "fresh dial whole, healthz ok".to_owned())
        }
        ((CellVerdict::Green, _), Some((verdict, detail))) => {
            (verdict, format!("the fresh dial is whole, but healthz: {detail}"))
        }
        ((CellVerdict::Green, _), None) => unknown("the fresh dial is whole, healthz was not asked"),
        ((verdict, detail), Some((CellVerdict::Green, _))) => {
            (verdict, format!("{detail}; healthz still says ok, over an old connection"))
        }
        (dial, Some(health)) if badness(health.0) > badness(dial.0) => health,
        (dial, _) => dial,
    }
}

/// Order of verdicts: what is proven bad outweighs what is not known.
const fn badness(verdict: CellVerdict) -> u8 {
    match verdict {
        CellVerdict::Green => 0,
        CellVerdict::Unknown => 1,
        CellVerdict::Unhealthy => 2,
        CellVerdict::Broken => 3,
        CellVerdict::ServerDown => 4,
    }
}

fn unknown(detail: impl Into<String>) -> Judged {
    (CellVerdict::Unknown, detail.into())
}

/// Judges the answer of an API server to `GET /readyz?verbose` at its own address.
#[must_use]
pub fn readiness(answer: &Answer) -> Readiness {
    let response = match answer {
        Answer::Response(response) => response,
        Answer::TimedOut { seconds } => {
            return Readiness::Unreachable { detail: format!("no answer within {seconds} s") };
        }
        Answer::NoConnection { detail } => return Readiness::Unreachable { detail: one_line(detail) },
        Answer::Tls { detail } => {
            return Readiness::Unreachable { detail: format!("certificate: {}", one_line(detail)) };
        }
        Answer::NotSent { detail } => return Readiness::Unknown { detail: one_line(detail) },
    };
    match response.status {
        200 => Readiness::Ready,
        // 500: checks failed. 503: it starts or shuts down (k3s says `runtime core not ready`).
        500..=599 => {
            let failing = failing_checks(&response.body);
            let failing = if failing.is_empty() { vec![response.shown()] } else { failing };
            Readiness::NotReady { failing }
        }
        401 => Readiness::Unknown { detail: format!("it rejects our credentials ({})", response.shown()) },
        403 => Readiness::Unknown {
            detail: format!(
                "it forbids /readyz; ClusterRole system:public-info-viewer allows it ({})",
                response.shown()
            ),
        },
        429 => Readiness::Unknown { detail: format!("it throttles ({})", response.shown()) },
        _ => Readiness::Unknown { detail: format!("an answer that proves nothing ({})", response.shown()) },
    }
}

#[cfg(test)]
mod tests;
