//! kured's lock annotation: both formats, unknown fields kept, garbage told.
//!
//! kured (all versions up to 1.23) keeps its lock as JSON in an annotation of its DaemonSet:
//!
//! ```text
//! single (--concurrency 1):  {"nodeID":"X","metadata":{"unschedulable":false},"created":"<RFC3339>","TTL":<ns>}
//! multi  (--concurrency >1): {"maxOwners":N,"locks":[<single>, ...]}
//! ```
//!
//! A released single lock is deleted, a released multi lock stays as `"locks":[]`. kured ignores unknown fields, so
//! maint may add its own; they are kept here. What cannot be understood is a [`LockError`] and must never be written
//! over: with garbage in it kured acquires nothing, which is the safe side.

use jiff::Timestamp;
use serde_json::{Map, Value};

/// `nodeID` of the hold that kured's documentation tells people to set by hand.
pub const MANUAL: &str = "manual";

/// Which of the two formats a lock has; it follows kured's `--concurrency`, and the wrong one freezes or frees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `--concurrency 1`: the value is one entry.
    Single,
    /// `--concurrency` above 1: the value is a list of entries.
    Multi,
}

/// A lock that could be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Lock {
    /// Its format.
    pub format: Format,
    /// `maxOwners` of the multi format. kured writes it and never reads it: its flag counts.
    pub max_owners: Option<i64>,
    /// Who holds it: exactly one entry in the single format. The same node can be in it twice (kured does not look
    /// for its own expired entry before it appends).
    pub entries: Vec<Entry>,
    /// Fields that kured does not know, of the multi format's outer object.
    pub other: Map<String, Value>,
}

/// One holder.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// `nodeID`: kured's `--node-id`, a node's name, or [`MANUAL`]; never empty.
    pub node_id: String,
    /// `metadata.unschedulable`: the node was cordoned before the drain, so kured leaves the uncordon to others.
    /// None where it is not there, which kured reads as false.
    pub unschedulable: Option<bool>,
    /// `created`; none in the documented manual hold.
    pub created: Option<Timestamp>,
    /// `TTL` in nanoseconds; 0, negative or none means that it does not expire.
    pub ttl_ns: Option<i64>,
    /// Unknown fields of `metadata`; none where `metadata` itself is not there.
    pub other_metadata: Option<Map<String, Value>>,
    /// Unknown fields of the entry.
    pub other: Map<String, Value>,
}

/// A lock that cannot be understood. It must not be written over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// No JSON.
    #[error("is no JSON: {0}")]
    Json(String),
    /// A field is not there.
    #[error("{path} is missing")]
    Missing {
        /// Path of the field.
        path: String,
    },
    /// A field has another type or form than kured's own reader accepts.
    #[error("{path} is `{found}`, wanted {wanted}")]
    Wrong {
        /// Path of the field.
        path: String,
        /// What was there, shortened.
        found: String,
        /// What would be understood.
        wanted: &'static str,
    },
    /// Fields of both formats at once.
    #[error("has `nodeID` and `locks`: it is neither of kured's two formats")]
    BothFormats,
}

impl Entry {
    /// Whether kured takes the entry for expired: TTL above zero, and as much time has passed since `created`. By the
    /// stored value, not by the flag. Without `created` Go's zero time counts, which is long ago.
    ///
    /// An expired entry does not make its node safe: the node can still be half-way through its reboot.
    #[must_use]
    pub fn expired(&self, now: Timestamp) -> bool {
        let Some(ttl) = self.ttl_ns.filter(|ttl| *ttl > 0) else { return false };
        self.created.is_none_or(|created| now.as_nanosecond() - created.as_nanosecond() >= i128::from(ttl))
    }

    fn to_value(&self) -> Value {
        let mut map = self.other.clone();
        map.insert("nodeID".to_owned(), Value::from(self.node_id.as_str()));
        if self.unschedulable.is_some() || self.other_metadata.is_some() {
            let mut metadata = self.other_metadata.clone().unwrap_or_default();
            if let Some(unschedulable) = self.unschedulable {
                metadata.insert("unschedulable".to_owned(), Value::from(unschedulable));
            }
            map.insert("metadata".to_owned(), Value::Object(metadata));
        }
        if let Some(created) = self.created {
            map.insert("created".to_owned(), Value::from(created.to_string()));
        }
        if let Some(ttl) = self.ttl_ns {
            map.insert("TTL".to_owned(), Value::from(ttl));
        }
        Value::Object(map)
    }
}

impl Lock {
    /// Reads the annotation's value.
    ///
    /// # Errors
    /// If it is no JSON, mixes the formats, or a field that kured reads is missing or of another type.
    pub fn parse(text: &str) -> Result<Self, LockError> {
        let value: Value = serde_json::from_str(text).map_err(|error| LockError::Json(error.to_string()))?;
        let Value::Object(mut map) = value else { return Err(wrong("the lock", &value, "an object")) };
        let multi = map.contains_key("locks") || map.contains_key("maxOwners");
        if !multi {
            let entries = vec![entry("", map)?];
            return Ok(Self { format: Format::Single, max_owners: None, entries, other: Map::new() });
        }
        if map.contains_key("nodeID") {
            return Err(LockError::BothFormats);
        }
        let max_owners = whole_number("", "maxOwners", map.remove("maxOwners"))?;
        // `null` would be an empty list to kured's reader. Nobody writes it, so it is rather a broken edit.
        let entries = match map.remove("locks") {
            Some(Value::Array(list)) => {
                list.into_iter().enumerate().map(|(index, value)| listed(index, value)).collect::<Result<_, _>>()?
            }
            Some(other) => return Err(wrong("locks", &other, "a list")),
            None => return Err(LockError::Missing { path: "locks".to_owned() }),
        };
        Ok(Self { format: Format::Multi, max_owners, entries, other: map })
    }

    /// The value as it is to be written: what was read, with what was changed. Empty for the single format without an
    /// entry, which kured releases by deleting the annotation.
    #[must_use]
    pub fn to_text(&self) -> String {
        let entries = self.entries.iter().map(Entry::to_value);
        match self.format {
            Format::Single => entries.into_iter().next().map(|value| value.to_string()).unwrap_or_default(),
            Format::Multi => {
                let mut map = self.other.clone();
                if let Some(max_owners) = self.max_owners {
                    map.insert("maxOwners".to_owned(), Value::from(max_owners));
                }
                map.insert("locks".to_owned(), Value::Array(entries.collect()));
                Value::Object(map).to_string()
            }
        }
    }

    /// Whether kured on this node would find that it holds the lock: an unexpired entry names it.
    #[must_use]
    pub fn is_held_by(&self, node: &str, now: Timestamp) -> bool {
        self.entries.iter().any(|entry| entry.node_id == node && !entry.expired(now))
    }
}

fn listed(index: usize, value: Value) -> Result<Entry, LockError> {
    let path = format!("locks[{index}]");
    match value {
        Value::Object(map) => entry(&format!("{path}."), map),
        other => Err(wrong(&path, &other, "an object")),
    }
}

fn entry(prefix: &str, mut map: Map<String, Value>) -> Result<Entry, LockError> {
    let node_id = match map.remove("nodeID") {
        Some(Value::String(name)) if !name.is_empty() => name,
        Some(other) => return Err(wrong(&format!("{prefix}nodeID"), &other, "a node's name")),
        None => return Err(LockError::Missing { path: format!("{prefix}nodeID") }),
    };
    let (unschedulable, other_metadata) = match map.remove("metadata") {
        None | Some(Value::Null) => (None, None),
        Some(Value::Object(mut metadata)) => match metadata.remove("unschedulable") {
            None | Some(Value::Null) => (None, Some(metadata)),
            Some(Value::Bool(flag)) => (Some(flag), Some(metadata)),
            Some(other) => return Err(wrong(&format!("{prefix}metadata.unschedulable"), &other, "true or false")),
        },
        Some(other) => return Err(wrong(&format!("{prefix}metadata"), &other, "an object")),
    };
    let created = match map.remove("created") {
        None | Some(Value::Null) => None,
        Some(value) => {
            let time = value.as_str().and_then(|text| text.parse().ok());
            Some(time.ok_or_else(|| wrong(&format!("{prefix}created"), &value, "a time like 2026-01-31T23:59:59Z"))?)
        }
    };
    let ttl_ns = whole_number(prefix, "TTL", map.remove("TTL"))?;
    Ok(Entry { node_id, unschedulable, created, ttl_ns, other_metadata, other: map })
}

fn whole_number(prefix: &str, key: &str, value: Option<Value>) -> Result<Option<i64>, LockError> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            value.as_i64().map(Some).ok_or_else(|| wrong(&format!("{prefix}{key}"), &value, "a whole number"))
        }
    }
}

fn wrong(path: &str, found: &Value, wanted: &'static str) -> LockError {
    let found = found.to_string().chars().take(60).collect();
    LockError::Wrong { path: path.to_owned(), found, wanted }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;

    const CREATED: &str = "2026-11-30T00:00:00.5Z";

    fn created() -> Timestamp {
        CREATED.parse().expect("a time")
    }

    #[test]
    fn both_formats_are_read_and_written_back_with_what_is_unknown() {
        let single =
            r#"{"nodeID":"worker1","metadata":{"unschedulable":false},"created":"2026-11-30T00:00:00.5Z","TTL":0}"#;
        let rows = [
            ("single", single.to_owned(), Format::Single, vec!["worker1"]),
            ("documented manual hold", r#"{"nodeID":"manual"}"#.to_owned(), Format::Single, vec![MANUAL]),
            (
                "single with fields of others",
                r#"{"nodeID":"a","maint":{"uid":"u"},"metadata":{"unschedulable":true,"why":[1]},"TTL":9}"#.to_owned(),
                Format::Single,
                vec!["a"],
            ),
            ("metadata without the flag", r#"{"nodeID":"a","metadata":{}}"#.to_owned(), Format::Single, vec!["a"]),
            ("released multi", r#"{"maxOwners":2,"locks":[]}"#.to_owned(), Format::Multi, vec![]),
            ("multi", format!(r#"{{"maxOwners":2,"locks":[{single}],"note":"x"}}"#), Format::Multi, vec!["worker1"]),
            ("multi without maxOwners", format!(r#"{{"locks":[{single}]}}"#), Format::Multi, vec!["worker1"]),
            (
                "a node twice",
                format!(r#"{{"maxOwners":2,"locks":[{single},{single}]}}"#),
                Format::Multi,
                vec!["worker1", "worker1"],
            ),
        ];
        for (row, text, format, holders) in rows {
            let lock = Lock::parse(&text).unwrap_or_else(|error| panic!("{row}: {error}"));
            assert_eq!(lock.format, format, "{row}");
            assert_eq!(lock.entries.iter().map(|entry| entry.node_id.as_str()).collect::<Vec<_>>(), holders, "{row}");
            let written: Value = serde_json::from_str(&lock.to_text()).expect(row);
            assert_eq!(written, serde_json::from_str::<Value>(&text).expect(row), "{row}");
        }
    }

    #[test]
    fn white_space_and_offsets_keep_their_meaning() {
        let lock =
            Lock::parse(" {\n \"nodeID\" : \"a\", \"created\": \"2026-11-30T02:00:00.5+02:00\" } ").expect("a lock");
        assert_eq!(lock.entries[0].created, Some(created()));
        assert_eq!(lock.to_text(), r#"{"created":"2026-11-30T00:00:00.5Z","nodeID":"a"}"#);
    }

    #[test]
    fn garbage_is_a_typed_error() {
        let rows = [
            ("S12: no JSON", "held by worker1", "is no JSON: expected value at line 1 column 1"),
            ("empty", "", "is no JSON: EOF while parsing a value at line 1 column 0"),
            ("null", "null", "the lock is `null`, wanted an object"),
            ("a list", "[]", "the lock is `[]`, wanted an object"),
            ("a name", r#""worker1""#, "the lock is `\"worker1\"`, wanted an object"),
            ("an empty object", "{}", "nodeID is missing"),
            ("an empty name", r#"{"nodeID":""}"#, "nodeID is `\"\"`, wanted a node's name"),
            ("a null name", r#"{"nodeID":null}"#, "nodeID is `null`, wanted a node's name"),
            (
                "both formats",
                r#"{"nodeID":"a","locks":[]}"#,
                "has `nodeID` and `locks`: it is neither of kured's two formats",
            ),
            ("no list", r#"{"maxOwners":2}"#, "locks is missing"),
            ("a null list", r#"{"maxOwners":2,"locks":null}"#, "locks is `null`, wanted a list"),
            ("an odd entry", r#"{"locks":["a"]}"#, "locks[0] is `\"a\"`, wanted an object"),
            ("an entry without a name", r#"{"locks":[{"TTL":0}]}"#, "locks[0].nodeID is missing"),
            ("odd maxOwners", r#"{"maxOwners":"2","locks":[]}"#, "maxOwners is `\"2\"`, wanted a whole number"),
            ("odd TTL", r#"{"nodeID":"a","TTL":"30m"}"#, "TTL is `\"30m\"`, wanted a whole number"),
            ("fraction", r#"{"nodeID":"a","TTL":1.5}"#, "TTL is `1.5`, wanted a whole number"),
            (
                "odd time",
                r#"{"nodeID":"a","created":"now"}"#,
                "created is `\"now\"`, wanted a time like 2026-01-31T23:59:59Z",
            ),
            ("odd metadata", r#"{"nodeID":"a","metadata":[]}"#, "metadata is `[]`, wanted an object"),
            (
                "odd flag",
                r#"{"locks":[{"nodeID":"a","metadata":{"unschedulable":"true"}}]}"#,
                "locks[0].metadata.unschedulable is `\"true\"`, wanted true or false",
            ),
        ];
        for (row, text, message) in rows {
            assert_eq!(Lock::parse(text).expect_err(row).to_string(), message, "{row}");
        }
    }

    #[test]
    fn an_entry_expires_by_its_stored_ttl() {
        let hour = 3_600_000_000_000;
        let rows = [
            ("no TTL", None, Some(created()), false),
            ("TTL 0", Some(0), Some(created()), false),
            ("negative", Some(-1), Some(created()), false),
            ("exactly now", Some(hour), Some(created()), true),
            ("one nanosecond left", Some(hour + 1), Some(created()), false),
            ("no TTL and never created: the manual hold", None, None, false),
            ("TTL and never created: Go's zero time", Some(hour), None, true),
        ];
        let now = created() + SignedDuration::from_hours(1);
        for (row, ttl_ns, created, expired) in rows {
            let mut lock = Lock::parse(r#"{"nodeID":"a"}"#).expect("a lock");
            lock.entries[0].ttl_ns = ttl_ns;
            lock.entries[0].created = created;
            assert_eq!(lock.entries[0].expired(now), expired, "{row}");
            assert_eq!(lock.is_held_by("a", now), !expired, "{row}");
            assert!(!lock.is_held_by("b", now), "{row}");
        }
    }

    #[test]
    fn an_edit_changes_nothing_else() {
        let text = r#"{"locks":[{"TTL":0,"created":"2026-11-30T00:00:00.5Z","metadata":{"unschedulable":false},"nodeID":"a","x":1}],"maxOwners":2}"#;
        let mut lock = Lock::parse(text).expect("a lock");
        lock.entries[0].unschedulable = Some(true);
        assert_eq!(lock.to_text(), text.replace("false", "true"));
    }
}
