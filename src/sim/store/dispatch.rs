//! From a request to an answer of the store. Neither knows about connections, faults or time.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::delete::{DeleteOptions, Deleted};
use super::discovery;
use super::error::Refusal;
use super::evict::EvictionRefused;
use super::kinds::Kind;
use super::object::At as _;
use super::patch::Form;
use super::request::{Answer, Payload, Request, Target};
use super::select::{Fields, Labels, selectable};
use super::watch::WatchRequest;
use super::{Context, ListOptions, Listing, Part, Store, object};

/// What one API server sees.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// Time now.
    pub now: Timestamp,
    /// The revision at which its cache stands still: what reads with `resourceVersion=0` and watches see.
    pub cached_at: Option<u64>,
    /// The revision that every read sees, also one that asks for the most recent state. A real server cannot do
    /// this; it stands for a client that was answered from an old cache.
    pub read_at: Option<u64>,
}

/// What a request came to, before it is text.
#[derive(Debug)]
pub enum Done {
    /// An object, and the code of the answer.
    Object(u16, Arc<Value>),
    /// A `Status` of success with these details, and the code of the answer.
    Success(u16, Value),
    /// A page of a list.
    List(Kind, Listing),
    /// A watch begins.
    Watch(Box<WatchRequest>),
}

/// Answers a request on the store.
pub fn answer(store: &mut Store, request: &Request, view: &View) -> Answer {
    if request.target == Target::Path {
        return discovery::answer(store.kinds(), &request.path);
    }
    match perform(store, request, view) {
        Ok(Done::Object(code, object)) => Answer::json(code, &object),
        Ok(Done::Success(code, details)) => Answer::success(code, details),
        Ok(Done::List(kind, listing)) => Answer::bytes(200, list_bytes(&kind, &listing)),
        Ok(Done::Watch(watch)) => {
            let mut answer = Answer::bytes(200, Vec::new());
            answer.payload = Payload::Watch(watch);
            answer
        }
        Err(refused) => Answer::from(refused.refusal).after(refused.delay),
    }
}

/// Does what a request asks for.
///
/// # Errors
/// As the API server refuses it, and how long that takes.
pub fn perform(store: &mut Store, request: &Request, view: &View) -> Result<Done, EvictionRefused> {
    let Target::Resource { group, version, resource, namespace, name, subresource, .. } = &request.target else {
        return Err(Refusal::UnknownPath.into());
    };
    let Some(kind) = store.kinds().find(group, version, resource).cloned() else {
        let built_in = store.kinds().is_built_in(group, version);
        return Err(if built_in { Refusal::no_such_resource() } else { Refusal::UnknownPath }.into());
    };
    let call = Call { kind, namespace, name, request, view };
    let result = match (request.verb(), subresource.as_str()) {
        ("list", "") => call.list(store),
        ("watch", "") => call.watch(),
        ("get", "") => call.get(store),
        ("get", "status") if call.kind.status => call.get(store),
        ("create", "") if name.is_empty() => call.create(store),
        ("create", "eviction") if resource == "pods" => return call.evict(store),
        ("update", "") => call.update(store, Part::Main),
        ("update", "status") if call.kind.status => call.update(store, Part::Status),
        ("patch", "") => call.patch(store, Part::Main),
        ("patch", "status") if call.kind.status => call.patch(store, Part::Status),
        ("delete", "") => call.delete(store),
        ("deletecollection" | "create" | "unknown", "") => {
            let message = "the server does not allow this method on the requested resource";
            Err(Refusal::new(405, "MethodNotAllowed", message))
        }
        _ => Err(Refusal::no_such_resource()),
    };
    Ok(result?)
}

struct Call<'a> {
    kind: Kind,
    namespace: &'a str,
    name: &'a str,
    request: &'a Request,
    view: &'a View,
}

impl Call<'_> {
    fn context(&self) -> Context {
        Context {
            now: self.view.now,
            manager: self.request.manager(),
            dry_run: self.request.parameter("dryRun") == "All",
        }
    }

    fn selectors(&self) -> Result<(Labels, Fields), Refusal> {
        let labels = Labels::parse(self.request.parameter("labelSelector"))?;
        let offered = selectable(&self.kind.group, &self.kind.resource);
        Ok((labels, Fields::parse(self.request.parameter("fieldSelector"), offered)?))
    }

    /// The revision that a read sees; none is the newest.
    fn read_at(&self) -> Result<Option<u64>, Refusal> {
        match self.request.parameter("resourceVersion") {
            "" => Ok(self.view.read_at),
            "0" => Ok(self.view.read_at.or(self.view.cached_at)),
            text => {
                let asked = parse_revision(text)?;
                if self.request.parameter("resourceVersionMatch") == "Exact" {
                    return Ok(Some(asked));
                }
                // Not older than asked: the cache if it is new enough, else the newest state.
                Ok(self.view.read_at.or(self.view.cached_at).filter(|cached| *cached >= asked))
            }
        }
    }

    fn list(&self, store: &Store) -> Result<Done, Refusal> {
        let (labels, fields) = self.selectors()?;
        let token = Some(self.request.parameter("continue")).filter(|token| !token.is_empty()).map(str::to_owned);
        let limit = self.request.parameter("limit").parse().unwrap_or(0);
        let options = ListOptions { labels, fields, limit, token, at: self.read_at()? };
        let asked = self.request.parameter("resourceVersion").parse::<u64>().unwrap_or(0);
        let options = if asked > store.revision() { ListOptions { at: Some(asked), ..options } } else { options };
        let listing = store.list(&self.kind, self.namespace, &options)?;
        Ok(Done::List(self.kind.clone(), listing))
    }

    fn get(&self, store: &Store) -> Result<Done, Refusal> {
        let at = self.read_at()?;
        store.get(&self.kind, self.namespace, self.name, at).map(|found| Done::Object(200, found))
    }

    fn watch(&self) -> Result<Done, Refusal> {
        let (labels, fields) = self.selectors()?;
        let from = match self.request.parameter("resourceVersion") {
            "" | "0" => None,
            text => Some(parse_revision(text)?),
        };
        let timeout = self.request.parameter("timeoutSeconds").parse().ok().filter(|seconds| *seconds > 0);
        let watch = WatchRequest {
            kind: self.kind.clone(),
            namespace: self.namespace.to_owned(),
            labels,
            fields,
            from,
            bookmarks: matches!(self.request.parameter("allowWatchBookmarks"), "1" | "true"),
            // The real server draws 30 to 60 minutes.
            timeout: Duration::from_secs(timeout.unwrap_or(1800)),
        };
        Ok(Done::Watch(Box::new(watch)))
    }

    fn create(&self, store: &mut Store) -> Result<Done, Refusal> {
        let made = store.create(&self.kind, self.namespace, self.request.json()?, &self.context())?;
        Ok(Done::Object(201, made))
    }

    fn update(&self, store: &mut Store, part: Part) -> Result<Done, Refusal> {
        let object = self.request.json()?;
        let before = store.revision();
        let stored = store.update(&self.kind, self.namespace, self.name, object, part, &self.context())?;
        let made = store.revision() > before && stored.at("/metadata/creationTimestamp").is_some() && {
            let last = store.changes_after(before).unwrap_or_default();
            last.iter().any(|change| change.before.is_none() && change.key.name == self.name)
        };
        Ok(Done::Object(if made { 201 } else { 200 }, stored))
    }

    fn patch(&self, store: &mut Store, part: Part) -> Result<Done, Refusal> {
        let form = Form::of(&self.request.content_type, self.kind.custom)?;
        let patch = self.request.json()?;
        let stored = store.patch(&self.kind, self.namespace, self.name, form, &patch, part, &self.context())?;
        Ok(Done::Object(200, stored))
    }

    fn delete(&self, store: &mut Store) -> Result<Done, Refusal> {
        let body = if self.request.is_empty() { None } else { Some(self.request.json()?) };
        let mut options = DeleteOptions::of(body.as_ref());
        if let Ok(seconds) = self.request.parameter("gracePeriodSeconds").parse() {
            options.grace_seconds = Some(seconds);
        }
        let deleted = store.delete(&self.kind, self.namespace, self.name, &options, &self.context())?;
        let pod = self.kind.group.is_empty() && self.kind.resource == "pods";
        Ok(match &deleted {
            Deleted::Gone(last) if !pod => {
                let mut details = json!({"name": self.name, "kind": self.kind.resource, "uid": object::uid(last)});
                if !self.kind.group.is_empty()
                    && let Some(map) = details.as_object_mut()
                {
                    map.insert("group".to_owned(), json!(self.kind.group));
                }
                Done::Success(200, details)
            }
            other => Done::Object(200, Arc::clone(other.object())),
        })
    }

    fn evict(&self, store: &mut Store) -> Result<Done, EvictionRefused> {
        let eviction = self.request.json()?;
        if self.request.parameter("fieldValidation") == "Strict"
            && let Some(field) = super::evict::unknown_field(&eviction)
        {
            let message = format!("strict decoding error: unknown field \"{field}\"");
            return Err(Refusal::bad_request(message).into());
        }
        store.evict(self.namespace, self.name, &eviction, &self.context())?;
        Ok(Done::Success(201, Value::Null))
    }
}

fn parse_revision(text: &str) -> Result<u64, Refusal> {
    text.parse().map_err(|_| {
        Refusal::bad_request(format!(
            "resourceVersion: Invalid value: \"{text}\": strconv.ParseUint: parsing \"{text}\": invalid syntax"
        ))
    })
}

/// The items of a built-in kind carry neither `kind` nor `apiVersion` in a list; those of a custom one do.
struct ListItem<'a>(&'a Arc<Value>);

impl serde::Serialize for ListItem<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_object() {
            Some(map) => {
                serializer.collect_map(map.iter().filter(|(key, _)| !matches!(key.as_str(), "kind" | "apiVersion")))
            }
            None => self.0.serialize(serializer),
        }
    }
}

/// A list as a document.
pub(crate) fn list_document(kind: &Kind, listing: &Listing) -> Value {
    let items: Vec<Value> = listing
        .items
        .iter()
        .map(|item| {
            let mut item = Value::clone(item);
            if !kind.custom
                && let Some(map) = item.as_object_mut()
            {
                map.retain(|key, _| !matches!(key.as_str(), "kind" | "apiVersion"));
            }
            item
        })
        .collect();
    json!({
        "kind": format!("{}List", kind.kind), "apiVersion": kind.api_version(),
        "metadata": list_metadata(listing), "items": items,
    })
}

fn list_metadata(listing: &Listing) -> Value {
    let mut metadata = json!({"resourceVersion": listing.revision.to_string()});
    if let Some(map) = metadata.as_object_mut() {
        if let Some(token) = &listing.token {
            map.insert("continue".to_owned(), json!(token));
        }
        if let Some(remaining) = listing.remaining {
            map.insert("remainingItemCount".to_owned(), json!(remaining));
        }
    }
    metadata
}

fn list_bytes(kind: &Kind, listing: &Listing) -> Vec<u8> {
    let metadata = list_metadata(listing);
    let head = format!(
        "{{\"kind\":\"{}List\",\"apiVersion\":\"{}\",\"metadata\":{metadata},\"items\":",
        kind.kind,
        kind.api_version()
    );
    let items = if kind.custom {
        serde_json::to_vec(&listing.items.iter().map(AsRef::as_ref).collect::<Vec<&Value>>())
    } else {
        serde_json::to_vec(&listing.items.iter().map(ListItem).collect::<Vec<_>>())
    };
    let mut bytes = head.into_bytes();
    bytes.extend(items.unwrap_or_else(|_| b"[]".to_vec()));
    bytes.push(b'}');
    bytes
}
