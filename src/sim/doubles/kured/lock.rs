//! kured's lock as kured itself reads and writes it (`pkg/daemonsetlock`): Go's decoder, Go's encoder, and what gets
//! lost between them.
//!
//! A second reading on purpose: maint's own codec keeps what it does not know and tells garbage from absence, kured
//! does neither.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::settings::Settings;

/// One holder, as Go decodes it: what is missing or null is the zero value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entry {
    /// `nodeID`
    pub node_id: String,
    /// `metadata.unschedulable`
    pub unschedulable: bool,
    /// `created` as Go writes it again; none is Go's zero time.
    pub created: Option<String>,
    /// `TTL` in nanoseconds.
    pub ttl: i64,
}

/// What came of an attempt to take the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acquire {
    /// This is to be written.
    Write(String),
    /// The single lock names this node already.
    Mine,
    /// Somebody else has it; the name is what gets logged, empty with the multi lock.
    Refused(String),
}

/// Go's zero time as its encoder writes it.
const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

impl Entry {
    fn new(node: &str, unschedulable: bool, now: Timestamp, settings: &Settings) -> Self {
        let ttl = i64::try_from(settings.lock_ttl.as_nanos()).unwrap_or(i64::MAX);
        Self { node_id: node.to_owned(), unschedulable, created: Some(now.to_string()), ttl }
    }

    /// By the stored TTL, not by the flag; without `created` the age is as long as Go can say, 292 years.
    #[must_use]
    pub fn expired(&self, now: Timestamp) -> bool {
        let created = self.created.as_deref().and_then(|text| text.parse::<Timestamp>().ok());
        let age = created.map_or(i128::MAX, |created| now.as_nanosecond() - created.as_nanosecond());
        self.ttl > 0 && age.min(i128::from(i64::MAX)) >= i128::from(self.ttl)
    }

    fn decode(value: &Value) -> Result<Self, String> {
        let mut entry = Self::default();
        for (key, value) in fields(value)? {
            match known(key, &["nodeID", "metadata", "created", "TTL"]) {
                Some("nodeID") => text(value, &mut entry.node_id)?,
                Some("metadata") => {
                    for (key, value) in fields(value)? {
                        if known(key, &["unschedulable"]).is_some() && !value.is_null() {
                            entry.unschedulable = value.as_bool().ok_or_else(|| mismatch(value, "bool"))?;
                        }
                    }
                }
                Some("created") if !value.is_null() => entry.created = Some(time(value)?),
                Some("TTL") if !value.is_null() => {
                    entry.ttl = value.as_i64().ok_or_else(|| mismatch(value, "time.Duration"))?;
                }
                _ => {}
            }
        }
        Ok(entry)
    }

    /// Go's order of fields, and nothing that kured does not know.
    fn encode(&self) -> String {
        let created = self.created.as_deref().unwrap_or(ZERO_TIME);
        format!(
            r#"{{"nodeID":{},"metadata":{{"unschedulable":{}}},"created":"{created}","TTL":{}}}"#,
            Value::from(self.node_id.as_str()),
            self.unschedulable,
            self.ttl
        )
    }
}

fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Members of an object; Go takes null for an object without any.
fn fields(value: &Value) -> Result<Vec<(&str, &Value)>, String> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Object(map) => Ok(map.iter().map(|(key, value)| (key.as_str(), value)).collect()),
        other => Err(mismatch(other, "struct")),
    }
}

/// Go finds a field also when the letters differ in case.
fn known<'a>(key: &str, names: &[&'a str]) -> Option<&'a str> {
    names.iter().copied().find(|name| name.eq_ignore_ascii_case(key))
}

fn mismatch(value: &Value, wanted: &str) -> String {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!("json: cannot unmarshal {found} into Go value of type {wanted}")
}

fn text(value: &Value, into: &mut String) -> Result<(), String> {
    if !value.is_null() {
        *into = value.as_str().ok_or_else(|| mismatch(value, "string"))?.to_owned();
    }
    Ok(())
}

/// RFC 3339 with capital T and Z, as Go demands it; the fraction loses its last zeros when it is written again.
fn time(value: &Value) -> Result<String, String> {
    let text = value.as_str().ok_or_else(|| "Time.UnmarshalJSON: input is not a JSON string".to_owned())?;
    let strict = text.len() >= 20 && text.as_bytes()[10] == b'T' && !text.contains(['t', 'z', ' ']);
    if !strict || text.parse::<Timestamp>().is_err() {
        return Err(format!("parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse"));
    }
    let end = text.find('Z').or_else(|| text.rfind(['+', '-'])).unwrap_or(text.len());
    let (head, zone) = text.split_at(end);
    let head = if head.contains('.') { head.trim_end_matches('0').trim_end_matches('.') } else { head };
    Ok(format!("{head}{zone}"))
}

fn decode_multi(text: &str) -> Result<Vec<Entry>, String> {
    let value = parse(text)?;
    let mut entries = Vec::new();
    for (key, value) in fields(&value)? {
        match known(key, &["maxOwners", "locks"]) {
            // Read only to be of the right type: the flag counts.
            Some("maxOwners") if !value.is_null() && value.as_i64().is_none() => return Err(mismatch(value, "int")),
            Some("locks") if !value.is_null() => {
                let list = value.as_array().ok_or_else(|| mismatch(value, "[]LockAnnotationValue"))?;
                entries = list.iter().map(Entry::decode).collect::<Result<_, _>>()?;
            }
            _ => {}
        }
    }
    Ok(entries)
}

fn encode_multi(owners: i64, entries: &[Entry]) -> String {
    let locks: Vec<String> = entries.iter().map(Entry::encode).collect();
    format!(r#"{{"maxOwners":{owners},"locks":[{}]}}"#, locks.join(","))
}

/// `maxOwners` as it stands, for a release: kured writes back what it read.
fn max_owners(text: &str) -> i64 {
    let value: Option<Value> = serde_json::from_str(text).ok();
    let map: Option<Map<String, Value>> = value.and_then(|value| value.as_object().cloned());
    let found = map.iter().flatten().find(|(key, _)| known(key, &["maxOwners"]).is_some());
    found.and_then(|(_, value)| value.as_i64()).unwrap_or(0)
}

/// This node's entry, if it holds the lock.
///
/// # Errors
/// A value that Go cannot decode.
pub fn holding(settings: &Settings, node: &str, value: Option<&str>, now: Timestamp) -> Result<Option<Entry>, String> {
    let Some(value) = value else { return Ok(None) };
    let entries = if settings.is_multi() { decode_multi(value)? } else { vec![Entry::decode(&parse(value)?)?] };
    Ok(entries.into_iter().find(|entry| entry.node_id == node && !entry.expired(now)))
}

/// Whether the single lock's metadata says unschedulable, whoever holds it and however old it is; none where it says
/// nothing. Up to 1.16.1 the test for holding copies this into kured's memory.
#[must_use]
pub fn metadata(value: Option<&str>) -> Option<bool> {
    let value: Value = serde_json::from_str(value?).ok()?;
    Entry::decode(&value).ok()?;
    let (_, metadata) = value.as_object()?.iter().find(|(key, _)| known(key, &["metadata"]).is_some())?;
    let (_, value) = metadata.as_object()?.iter().find(|(key, _)| known(key, &["unschedulable"]).is_some())?;
    value.as_bool()
}

/// What an attempt to take the lock does.
///
/// # Errors
/// A value that Go cannot decode: nobody acquires.
pub fn acquire(
    settings: &Settings,
    node: &str,
    value: Option<&str>,
    unschedulable: bool,
    now: Timestamp,
) -> Result<Acquire, String> {
    let mine = Entry::new(node, unschedulable, now, settings);
    if settings.is_multi() {
        let mut entries = value.map(decode_multi).transpose().map_err(|e| format!("error getting multi lock: {e}"))?;
        let entries = entries.get_or_insert_default();
        // Expired ones count until the list is full; whether this node is in it already is not asked.
        if entries.len() >= settings.concurrency {
            let before = entries.len();
            entries.retain(|entry| !entry.expired(now));
            if entries.len() == before {
                return Ok(Acquire::Refused(String::new()));
            }
        }
        entries.push(mine);
        let owners = i64::try_from(settings.concurrency).unwrap_or(i64::MAX);
        return Ok(Acquire::Write(encode_multi(owners, entries)));
    }
    if let Some(value) = value {
        let held = Entry::decode(&parse(value)?)?;
        if !held.expired(now) {
            return Ok(if held.node_id == node { Acquire::Mine } else { Acquire::Refused(held.node_id) });
        }
    }
    Ok(Acquire::Write(mine.encode()))
}

/// What is left after a release; none deletes the annotation.
///
/// # Errors
/// The lock is not held by this node, or cannot be decoded.
pub fn release(settings: &Settings, node: &str, value: Option<&str>) -> Result<Option<String>, String> {
    if settings.is_multi() {
        let mut entries = value.map(decode_multi).transpose()?.unwrap_or_default();
        let Some(index) = entries.iter().position(|entry| entry.node_id == node) else {
            return Err("Lock not held".to_owned());
        };
        entries.remove(index);
        return Ok(Some(encode_multi(value.map_or(0, max_owners), &entries)));
    }
    let held = Entry::decode(&parse(value.ok_or("lock not held")?)?)?;
    if held.node_id == node { Ok(None) } else { Err(format!("not lock holder: {}", held.node_id)) }
}
