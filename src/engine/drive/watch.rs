//! A watch that only wakes: no cache hangs on it, so a missed event costs a look, never a wrong decision.

use std::time::Duration;

use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::Value;

use crate::runtime::Clock;

/// The server ends the watch after this long; then it begins anew, which also finds dead connections.
const SERVER_LIMIT: Duration = Duration::from_secs(40);
/// Silence after which the connection counts as dead.
const SILENCE_LIMIT: Duration = Duration::from_secs(45);
/// Wait before a watch that failed begins anew.
const PAUSE: Duration = Duration::from_secs(5);
/// A line longer than this is dropped: an event's name stands near its beginning anyway.
const LINE_LIMIT: usize = 8 * 1024 * 1024;

/// Watches a path for ever and calls `changed` with the name of each object that changed. Ends when dropped.
pub async fn watch(client: &kube::Client, clock: &Clock, path: &str, mut changed: impl FnMut(&str) + Send) {
    loop {
        if let Err(why) = once(client, clock, path, &mut changed).await {
            tracing::debug!(path, why, "the watch begins anew");
            clock.sleep(PAUSE).await;
        }
    }
}

async fn once(
    client: &kube::Client,
    clock: &Clock,
    path: &str,
    changed: &mut (impl FnMut(&str) + Send),
) -> Result<(), String> {
    let separator = if path.contains('?') { '&' } else { '?' };
    let uri = format!("{path}{separator}watch=1&timeoutSeconds={}", SERVER_LIMIT.as_secs());
    let request = http::Request::get(uri).body(Body::empty()).map_err(|error| error.to_string())?;
    let response = clock
        .timeout(SILENCE_LIMIT, client.send(request))
        .await
        .map_err(|late| late.to_string())?
        .map_err(|error| error.to_string())?;
    if !response.status().is_success() {
        return Err(format!("answer {}", response.status()));
    }
    let mut body = response.into_body();
    let mut line: Vec<u8> = Vec::new();
    loop {
        let frame = match clock.timeout(SILENCE_LIMIT, body.frame()).await.map_err(|late| late.to_string())? {
            None => return Ok(()),
            Some(frame) => frame.map_err(|error| error.to_string())?,
        };
        let Some(data) = frame.data_ref() else { continue };
        for piece in data.split_inclusive(|byte| *byte == b'\n') {
            line.extend_from_slice(piece);
            if line.ends_with(b"\n") {
                tell(&line, changed);
                line.clear();
            } else if line.len() > LINE_LIMIT {
                return Err("a line of the watch is too long".to_owned());
            }
        }
    }
}

fn tell(line: &[u8], changed: &mut impl FnMut(&str)) {
    let event: Option<Value> = serde_json::from_slice(line).ok();
    if let Some(name) = event.as_ref().and_then(|event| event.pointer("/object/metadata/name")).and_then(Value::as_str)
    {
        changed(name);
    }
}
