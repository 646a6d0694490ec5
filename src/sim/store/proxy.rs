//! The path from an API server to a kubelet: `nodes/N/proxy`, with the answers that were measured.

use std::time::Duration;

use serde_json::json;

use super::error::Refusal;
use super::request::Answer;

/// What the path of one API server to one kubelet is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cell {
    /// Whole, and the kubelet is healthy.
    #[default]
    Whole,
    /// New connections fail, an old one in the pool still answers: the plain GET lies.
    CutLiveKept,
    /// No connection at all; a kubelet that is down looks the same.
    Cut,
    /// Whole, but the kubelet says that it is sick.
    Unhealthy,
    /// The kubelet accepts and says nothing.
    Hang,
}

/// After this long the pool's health check gives up on a kubelet that says nothing (30 s idle + 15 s ping).
const HANG_SECONDS: u64 = 44;

/// Answers `GET nodes/N/proxy/TAIL` for a node that exists; `address` is the kubelet's.
#[must_use]
pub fn answer(cell: Cell, tail: &str, upgrade: bool, address: &str) -> Answer {
    if upgrade { fresh(cell, tail, address) } else { pooled(cell, tail, address) }
}

fn dial_error(address: &str) -> String {
    format!("proxy error from 127.0.0.1:6443 while dialing {address}:10250, code 502: 502 Bad Gateway")
}

/// An upgrade request: dialled anew, each time.
fn fresh(cell: Cell, tail: &str, address: &str) -> Answer {
    match cell {
        Cell::Whole | Cell::Unhealthy if tail == "healthz" && cell == Cell::Whole => {
            plain_status(500, "", "invalid upgrade response: status code 200")
        }
        Cell::Whole | Cell::Unhealthy => {
            let (code, text) = if tail == "healthz" { (500, UNHEALTHY) } else { (404, "404 page not found\n") };
            // Passed on raw from the kubelet: that there is no Audit-Id is what tells it apart.
            Answer { audit_id: false, ..Answer::text(code, text) }
        }
        Cell::Cut | Cell::CutLiveKept => {
            plain_status(500, "", &format!("error dialing backend: {}", dial_error(address)))
        }
        Cell::Hang => Answer { delay: None, ..Answer::text(500, "") },
    }
}

const UNHEALTHY: &str = "[+]ping ok\n[+]log ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n";

/// A plain GET: over whatever connection the API server still has.
fn pooled(cell: Cell, tail: &str, address: &str) -> Answer {
    match cell {
        Cell::Whole | Cell::CutLiveKept if tail == "healthz" => Answer::text(200, "ok"),
        Cell::Unhealthy if tail == "healthz" => Answer::text(500, UNHEALTHY),
        Cell::Whole | Cell::CutLiveKept | Cell::Unhealthy => Answer::text(404, "404 page not found\n"),
        Cell::Cut => {
            let message = format!("error trying to reach service: {}", dial_error(address));
            plain_status(503, "ServiceUnavailable", &message)
        }
        Cell::Hang => {
            let message = "error trying to reach service: http2: client connection lost";
            plain_status(503, "ServiceUnavailable", message).after(Duration::from_secs(HANG_SECONDS))
        }
    }
}

fn plain_status(code: u16, reason: &'static str, message: &str) -> Answer {
    let mut body = Refusal::new(code, reason, message).body().unwrap_or_default();
    if let Some(map) = body.as_object_mut() {
        map.insert("metadata".to_owned(), json!({}));
    }
    Answer::json(code, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measured_table() {
        for (cell, tail, upgrade, code, audit_id, delay) in [
            (Cell::Whole, "healthz", false, 200, true, Some(0)),
            (Cell::Whole, "healthz", true, 500, true, Some(0)),
            (Cell::Whole, "maint-probe", true, 404, false, Some(0)),
            (Cell::CutLiveKept, "healthz", false, 200, true, Some(0)),
            (Cell::CutLiveKept, "maint-probe", true, 500, true, Some(0)),
            (Cell::Cut, "healthz", false, 503, true, Some(0)),
            (Cell::Cut, "maint-probe", true, 500, true, Some(0)),
            (Cell::Unhealthy, "healthz", false, 500, true, Some(0)),
            (Cell::Unhealthy, "maint-probe", true, 404, false, Some(0)),
            (Cell::Hang, "healthz", false, 503, true, Some(44)),
            (Cell::Hang, "maint-probe", true, 500, true, None),
        ] {
            let found = answer(cell, tail, upgrade, "10.0.0.1");
            let row = format!("{cell:?} {tail} upgrade {upgrade}");
            assert_eq!((found.code, found.delay.map(|delay| delay.as_secs())), (code, delay), "{row}");
            assert_eq!(found.audit_id, audit_id, "{row}");
        }
    }
}
