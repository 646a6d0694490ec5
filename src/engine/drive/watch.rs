//! A watch that only wakes: no cache hangs on it, so a missed event costs a look, never a wrong decision.

use std::collections::BTreeMap;
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

/// What a wake-up is told of an object that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// `namespace/name`, or the name alone.
    pub name: String,
    /// What somebody else than the writer of its status can have changed: the generation (spec), and whether it is
    /// being deleted.
    pub asked: (i64, bool),
    /// Its annotations, but for what kubectl keeps there of whole objects.
    pub annotations: BTreeMap<String, String>,
}

/// Watches a path for ever and calls `changed` for each object that changed. Ends when dropped.
pub async fn watch(client: &kube::Client, clock: &Clock, path: &str, mut changed: impl FnMut(Changed) + Send) {
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
    changed: &mut (impl FnMut(Changed) + Send),
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

fn tell(line: &[u8], changed: &mut impl FnMut(Changed)) {
    let event: Option<Value> = serde_json::from_slice(line).ok();
    let Some(metadata) = event.as_ref().and_then(|event| event.pointer("/object/metadata")) else { return };
    if let Some(name) = metadata.get("name").and_then(Value::as_str) {
        let generation = metadata.get("generation").and_then(Value::as_i64).unwrap_or_default();
        let deleting = metadata.get("deletionTimestamp").is_some_and(|at| !at.is_null());
        let annotations = metadata.get("annotations").and_then(Value::as_object).into_iter().flatten();
        let annotations = annotations
            .filter(|(key, _)| !key.starts_with("kubectl.kubernetes.io/"))
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect();
        let name = match metadata.get("namespace").and_then(Value::as_str) {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name.to_owned(),
        };
        changed(Changed { name, asked: (generation, deleting), annotations });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_what_was_asked() {
        let rows = [
            (r#"{"type":"MODIFIED","object":{"metadata":{"name":"a","generation":2}}}"#, Some(("a", (2, false)))),
            (
                r#"{"type":"MODIFIED","object":{"metadata":{"name":"a","generation":3,"deletionTimestamp":"x"}}}"#,
                Some(("a", (3, true))),
            ),
            (r#"{"type":"ADDED","object":{"metadata":{"name":"n"}}}"#, Some(("n", (0, false)))),
            (r#"{"type":"ADDED","object":{"metadata":{"name":"n","namespace":"s"}}}"#, Some(("s/n", (0, false)))),
            (r#"{"type":"ERROR","object":{"code":410}}"#, None),
            ("rubbish", None),
        ];
        for (line, wanted) in rows {
            let mut found = None;
            tell(line.as_bytes(), &mut |changed| found = Some(changed));
            let wanted =
                wanted.map(|(name, asked)| Changed { name: name.to_owned(), asked, annotations: BTreeMap::new() });
            assert_eq!(found, wanted, "{line}");
        }
        let line = r#"{"object":{"metadata":{"name":"a","annotations":{"k":"v","kubectl.kubernetes.io/last":"x"}}}}"#;
        let mut found = None;
        tell(line.as_bytes(), &mut |changed| found = Some(changed.annotations));
        assert_eq!(found, Some(BTreeMap::from([("k".to_owned(), "v".to_owned())])));
    }
}
