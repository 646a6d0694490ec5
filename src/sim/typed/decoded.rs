//! What was decoded already: an object that did not change is not decoded twice.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use maint_core::api::SourceId;
use maint_core::api::record::Maintenance;
use maint_core::facts::{Item, Source};
use serde::Deserialize as _;
use serde_json::Value;

use super::reader::List;

/// A list: its source, what it is decoded to, its namespace (empty for all) and its labels (empty for all). One node's
/// objects after another's are a change of the same list, so that what is kept does not grow with the nodes asked for.
type Place = (SourceId, TypeId, String, String);
/// The objects of a list when it was last read, and what they say.
type Seen<S> = Vec<(Arc<Value>, Item<S>)>;

/// The last state of every list and record, with its facts. A stored object never changes, so that the same object is
/// the same resourceVersion; all replicas of a night share what is decoded.
#[derive(Debug, Default)]
pub struct Decoded(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    lists: BTreeMap<Place, Box<dyn Any + Send>>,
    records: BTreeMap<String, (Arc<Value>, Maintenance)>,
    decoded: u64,
}

impl Decoded {
    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many objects were decoded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.with(|inner| inner.decoded)
    }

    /// The facts of a list's objects.
    pub(super) fn items<S: Source>(&self, list: &List<'_>, objects: Vec<Arc<Value>>) -> Vec<Item<S>> {
        self.with(|inner| {
            let (namespace, labels) = (list.namespace.to_owned(), list.label_selector.to_owned());
            let place = (list.spec.id, TypeId::of::<S>(), namespace, labels);
            let before = inner.lists.remove(&place).and_then(|seen| seen.downcast::<Seen<S>>().ok());
            let mut before = before.map(|seen| *seen).unwrap_or_default().into_iter().peekable();
            let mut seen: Seen<S> = Vec::with_capacity(objects.len());
            for object in objects {
                if let Some(same) = before.next_if(|(old, _)| Arc::ptr_eq(old, &object)) {
                    seen.push(same);
                    continue;
                }
                // Both lists are in the order of names: what was before this object is gone or has changed.
                while before.next_if(|(old, _)| place_of(old) < place_of(&object)).is_some() {}
                let known = before.next_if(|(old, _)| place_of(old) == place_of(&object));
                let item = match known {
                    Some((old, item)) if Arc::ptr_eq(&old, &object) => item,
                    _ => {
                        inner.decoded += 1;
                        S::item(&object)
                    }
                };
                seen.push((object, item));
            }
            let items = seen.iter().map(|(_, item)| item.clone()).collect();
            inner.lists.insert(place, Box::new(seen));
            items
        })
    }

    /// The record that an object is.
    pub(super) fn record(&self, object: &Arc<Value>) -> Result<Maintenance, serde_json::Error> {
        let name = crate::store::object::name(object);
        self.with(|inner| {
            if let Some((old, record)) = inner.records.get(name)
                && Arc::ptr_eq(old, object)
            {
                return Ok(record.clone());
            }
            inner.decoded += 1;
            let record = Maintenance::deserialize(&**object)?;
            inner.records.insert(name.to_owned(), (Arc::clone(object), record.clone()));
            Ok(record)
        })
    }
}

/// Namespace and name.
fn place_of(object: &Value) -> (&str, &str) {
    let metadata = object.get("metadata");
    let part = |key: &str| metadata.and_then(|metadata| metadata.get(key)).and_then(Value::as_str).unwrap_or_default();
    (part("namespace"), part("name"))
}
