//! Lists over kube's client, by hand: its typed lists lose a whole list to one bad object, and its error type cannot
//! tell a kind that does not exist from a server that answers rubbish.

use std::fmt::Write as _;
use std::time::Duration;

use maint_core::facts::{Item, Malformed, Source, SourceSpec};
use maint_core::matrix::classify::one_line;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::client::{Exchange, FailureClass, get};
use crate::ports::{Page, PageRequest, ReadError, Reader};
use crate::runtime::Clock;

/// Limit of one page.
pub const PAGE_LIMIT: Duration = Duration::from_secs(15);
/// Largest page that is taken, in bytes: 500 Nodes of 60 kB with room to spare.
const PAGE_BYTES: usize = 64 * 1024 * 1024;
/// How much of an answer that is not understood is shown, in bytes.
const SHOWN_BYTES: usize = 200;

/// Lists through one client.
#[derive(Clone)]
pub struct KubeReader {
    client: kube::Client,
    clock: Clock,
}

impl std::fmt::Debug for KubeReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KubeReader").finish_non_exhaustive()
    }
}

impl KubeReader {
    /// A reader.
    #[must_use]
    pub const fn new(client: kube::Client, clock: Clock) -> Self {
        Self { client, clock }
    }
}

impl Reader for KubeReader {
    async fn list_page<S: Source>(&self, request: &PageRequest<'_>) -> Result<Page<S>, ReadError> {
        let accept = [("accept", "application/json")];
        match get(&self.client, &self.clock, &path(request), &accept, PAGE_LIMIT, PAGE_BYTES).await {
            Exchange::Complete { truncated: true, .. } => {
                Err(ReadError::Server(format!("a page of more than {} MiB", PAGE_BYTES / 1024 / 1024)))
            }
            Exchange::Complete { head, body, .. } => page(request, head.status.as_u16(), &body),
            Exchange::Cut { status, failure } => {
                Err(ReadError::Transport(format!("HTTP {}, then cut off: {}", status.as_u16(), failure.detail)))
            }
            Exchange::Failed(failure) => Err(match failure.class {
                FailureClass::Timeout => ReadError::Timeout(failure.detail),
                _ => ReadError::Transport(failure.detail),
            }),
            Exchange::TimedOut(limit) => Err(ReadError::Timeout(format!("no answer within {} s", limit.as_secs()))),
        }
    }
}

/// Path and query. No `resourceVersion`: that is the most recent state, never a cache's.
fn path(request: &PageRequest<'_>) -> String {
    let SourceSpec { group, version, resource, label_selector, .. } = *request.spec;
    let mut path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    if let Some(namespace) = request.namespace {
        path.push_str("/namespaces/");
        path.push_str(&escape(namespace));
    }
    // Writing to a String cannot fail.
    let _ = write!(path, "/{resource}?limit={}", request.limit);
    if let Some(selector) = request.label_selector.or(label_selector) {
        let _ = write!(path, "&labelSelector={}", escape(selector));
    }
    if let Some(selector) = request.field_selector {
        let _ = write!(path, "&fieldSelector={}", escape(selector));
    }
    if let Some(token) = request.continue_token {
        let _ = write!(path, "&continue={}", escape(token));
    }
    path
}

/// Percent-encodes all but the unreserved characters (RFC 3986).
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

#[derive(Deserialize)]
struct ListDocument {
    kind: String,
    #[serde(default)]
    metadata: ListMetadata,
    /// `null` is how Go writes an empty list; a missing key is no list.
    items: Option<Vec<Box<RawValue>>>,
}

#[derive(Default, Deserialize)]
struct ListMetadata {
    #[serde(rename = "continue")]
    continue_token: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    kind: String,
    message: String,
    reason: String,
    details: Option<StatusDetails>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StatusDetails {
    name: String,
}

fn page<S: Source>(request: &PageRequest<'_>, status: u16, body: &[u8]) -> Result<Page<S>, ReadError> {
    if status == 200 {
        return list(request, body);
    }
    let object = serde_json::from_slice::<Status>(body).ok().filter(|status| status.kind == "Status");
    let text = object.as_ref().map_or_else(|| shown(body), |status| one_line(&status.message));
    let text = format!("HTTP {status}: {text}");
    Err(match status {
        401 | 403 => ReadError::Forbidden(text),
        404 if is_absent(request.spec, object.as_ref(), body) => ReadError::Absent,
        410 => ReadError::Expired(text),
        _ => ReadError::Server(text),
    })
}

/// Whether a 404 says that the kind does not exist. Built-in kinds always exist: there it says that this is no (or a
/// much too old) API server. The plain text is what an API server answers for a group, version or kind that no CRD
/// serves; aggregated API servers answer a Status that names no object.
fn is_absent(spec: &SourceSpec, object: Option<&Status>, body: &[u8]) -> bool {
    let says_so = match object {
        Some(status) => {
            let names_object = status.details.as_ref().is_some_and(|details| !details.name.is_empty());
            status.reason == "NotFound" && !names_object
        }
        None => body.trim_ascii() == b"404 page not found",
    };
    says_so && !spec.built_in
}

fn list<S: Source>(request: &PageRequest<'_>, body: &[u8]) -> Result<Page<S>, ReadError> {
    let no_list = |why: String| ReadError::Server(format!("HTTP 200, but {why}: {}", shown(body)));
    let document: ListDocument =
        serde_json::from_slice(body).map_err(|error| no_list(format!("no list ({})", one_line(&error.to_string()))))?;
    let wanted = format!("{}List", request.spec.kind);
    if document.kind != wanted {
        return Err(no_list(format!("a {} instead of a {wanted}", one_line(&document.kind))));
    }
    Ok(Page {
        items: document.items.unwrap_or_default().iter().map(|raw| decode(raw)).collect(),
        continue_token: document.metadata.continue_token.filter(|token| !token.is_empty()),
    })
}

/// The beginning of an answer, escaped for a terminal.
fn shown(body: &[u8]) -> String {
    let beginning = body.get(..SHOWN_BYTES).unwrap_or(body);
    let dots = if body.len() > SHOWN_BYTES { "..." } else { "" };
    format!("`{}`{dots}", String::from_utf8_lossy(beginning).trim_end().escape_debug())
}

/// Objects are decoded one by one, so that a page of large Nodes never stands in memory as a tree.
pub(super) fn decode<S: Source>(raw: &RawValue) -> Item<S> {
    match serde_json::from_str::<Value>(raw.get()) {
        Ok(value) => S::item(&value),
        // The page was one JSON document, so only what goes beyond JSON's grammar fails here: numbers out of range,
        // nesting beyond the limit.
        Err(error) => Item::Malformed(Malformed {
            object: format!("{} without a name", S::SPEC.kind),
            path: "(whole object)".to_owned(),
            problem: format!("cannot be read: {}", one_line(&error.to_string())),
        }),
    }
}

#[cfg(test)]
mod tests;
