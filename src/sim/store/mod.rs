//! A Kubernetes API server in memory: objects, revisions, history. No clock and no chance of its own.
//!
//! What it answers follows what was measured on kube-apiserver 1.34.4; `crate::conformance` is the list of
//! behaviours that runs on both. Time is passed into every write, names and uids come from one seed.

mod delete;
mod discovery;
pub mod dispatch;
pub mod error;
mod evict;
pub mod http;
pub mod kinds;
mod managed;
pub mod object;
pub mod passage;
pub mod patch;
pub mod proxy;
mod read;
pub mod request;
pub mod select;
pub mod serve;
pub mod service;
#[cfg(test)]
mod tests;
pub mod watch;
mod webhook;
mod write;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use jiff::Timestamp;
use serde_json::Value;

pub use delete::{DeleteOptions, Deleted};
pub use error::Refusal;
pub use evict::EvictionRefused;
pub use kinds::{Kind, Kinds, Resource};
pub use read::{ListOptions, Listing};
pub use webhook::{Webhook, Webhooks};
pub use write::Part;

use crate::random::Random;

/// Where an object is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Group and resource.
    pub resource: Resource,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ObjectKey {
    /// From its parts.
    #[must_use]
    pub fn new(group: &str, resource: &str, namespace: &str, name: &str) -> Self {
        Self { resource: Resource::new(group, resource), namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// A node.
    #[must_use]
    pub fn node(name: &str) -> Self {
        Self::new("", "nodes", "", name)
    }

    /// A pod.
    #[must_use]
    pub fn pod(namespace: &str, name: &str) -> Self {
        Self::new("", "pods", namespace, name)
    }
}

/// One revision: what an object was before and after it.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The store's revision after it.
    pub revision: u64,
    /// Which object.
    pub key: ObjectKey,
    /// None for a creation.
    pub before: Option<Arc<Value>>,
    /// None for a deletion.
    pub after: Option<Arc<Value>>,
    /// The last state of a deleted object, with the revision of the deletion.
    pub last: Option<Arc<Value>>,
}

/// What a write knows about its request.
#[derive(Debug, Clone)]
pub struct Context {
    /// Time of the write.
    pub now: Timestamp,
    /// Field manager: `?fieldManager`, or the user agent up to its slash.
    pub manager: String,
    /// `?dryRun=All`
    pub dry_run: bool,
}

impl Context {
    /// A plain write.
    #[must_use]
    pub fn new(now: Timestamp, manager: &str) -> Self {
        Self { now, manager: manager.to_owned(), dry_run: false }
    }
}

type Objects = BTreeMap<(String, String), Arc<Value>>;

/// The store.
#[derive(Debug)]
pub struct Store {
    kinds: Kinds,
    objects: BTreeMap<Resource, Objects>,
    revision: u64,
    history: VecDeque<Arc<Change>>,
    /// The earliest revision whose state can still be told.
    oldest: u64,
    kept: usize,
    random: Random,
    wakers: Vec<Waker>,
    /// Webhooks that refuse evictions.
    pub webhooks: Webhooks,
}

impl Store {
    /// Revisions that are kept for watches and stale reads unless told otherwise.
    pub const KEPT: usize = 20_000;

    /// An empty store with the namespaces that every cluster has.
    #[must_use]
    pub fn new(seed: u64, now: Timestamp) -> Self {
        let mut store = Self {
            kinds: Kinds::default(),
            objects: BTreeMap::new(),
            revision: 1000,
            history: VecDeque::new(),
            oldest: 1000,
            kept: Self::KEPT,
            random: Random::new(seed),
            wakers: Vec::new(),
            webhooks: Webhooks::default(),
        };
        for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
            let namespace = serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
                "status": {"phase": "Active"}});
            store.seed(namespace, now);
        }
        store
    }

    /// Keeps only so many revisions; older watches get 410.
    pub fn keep(&mut self, revisions: usize) {
        self.kept = revisions;
        self.trim();
    }

    /// Forgets all history up to now, as a compaction does.
    pub fn compact(&mut self) {
        self.history.clear();
        self.oldest = self.revision;
    }

    fn trim(&mut self) {
        while self.history.len() > self.kept {
            if let Some(change) = self.history.pop_front() {
                self.oldest = change.revision;
            }
        }
    }

    /// The kinds that are served.
    #[must_use]
    pub const fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// Serves a kind from now on, without a CustomResourceDefinition object.
    pub fn register(&mut self, kind: Kind) {
        self.kinds.register(kind);
    }

    /// The newest revision.
    #[must_use]
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// The earliest revision that can still be read or watched from.
    #[must_use]
    pub const fn oldest(&self) -> u64 {
        self.oldest
    }

    /// An object as it is now.
    #[must_use]
    pub fn object(&self, key: &ObjectKey) -> Option<&Arc<Value>> {
        self.objects.get(&key.resource)?.get(&(key.namespace.clone(), key.name.clone()))
    }

    /// All objects of a resource, by namespace and name.
    pub fn all<'a>(&'a self, group: &str, resource: &str) -> impl Iterator<Item = &'a Arc<Value>> + use<'a> {
        self.objects.get(&Resource::new(group, resource)).into_iter().flat_map(BTreeMap::values)
    }

    /// Every object with its key.
    #[must_use]
    pub fn snapshot(&self) -> BTreeMap<ObjectKey, Arc<Value>> {
        let mut found = BTreeMap::new();
        for (resource, objects) in &self.objects {
            for ((namespace, name), object) in objects {
                let key = ObjectKey { resource: resource.clone(), namespace: namespace.clone(), name: name.clone() };
                found.insert(key, Arc::clone(object));
            }
        }
        found
    }

    /// The changes after a revision, oldest first; none if some of them are forgotten.
    #[must_use]
    pub fn changes_after(&self, revision: u64) -> Option<Vec<Arc<Change>>> {
        if revision < self.oldest {
            return None;
        }
        Some(self.history.range(self.first_after(revision)..).cloned().collect())
    }

    fn first_after(&self, revision: u64) -> usize {
        self.history.partition_point(|change| change.revision <= revision)
    }

    /// Wakes `waker` at the next change.
    pub fn wake_on_change(&mut self, waker: &Waker) {
        if !self.wakers.iter().any(|known| known.will_wake(waker)) {
            self.wakers.push(waker.clone());
        }
    }

    /// Wakes whoever waits for a change; also called when a server is cut, so that its watches notice.
    pub fn wake_all(&mut self) {
        for waker in self.wakers.drain(..) {
            waker.wake();
        }
    }

    /// Puts an object as it is, bypassing every rule of the API but uid, times and revision: the start of a world.
    pub fn seed(&mut self, object: Value, now: Timestamp) -> Option<ObjectKey> {
        let kind = self.kinds.of_object(&object)?.clone();
        let mut object = object;
        let namespace = object::namespace(&object).to_owned();
        let name = object::name(&object).to_owned();
        let uid = self.random.uuid();
        object::fill_new(&mut object, &uid, now, kind.generation);
        if kind.group == "apiextensions.k8s.io" {
            self.serve_definition(&object);
        }
        if kind.group.is_empty() && kind.resource == "nodes" {
            managed::begin(&mut object, "kubelet", now);
        }
        let key = ObjectKey { resource: kind.stored_as(), namespace, name };
        self.put(key.clone(), Some(object));
        Some(key)
    }

    /// Changes an object as the cluster's own parts do, bypassing the rules of the API; a change of nothing is
    /// none. Answers whether something changed.
    pub fn edit(&mut self, key: &ObjectKey, change: impl FnOnce(&mut Value)) -> bool {
        let Some(old) = self.object(key).cloned() else { return false };
        let mut new = Value::clone(&old);
        change(&mut new);
        if new == *old {
            return false;
        }
        self.put(key.clone(), Some(new));
        true
    }

    /// The same with the whole object as it shall be.
    pub fn replace(&mut self, key: &ObjectKey, object: Value) -> bool {
        let differs = self.object(key).is_some_and(|old| **old != object);
        if differs {
            self.put(key.clone(), Some(object));
        }
        differs
    }

    /// Takes an object away, bypassing finalizers and grace. Answers whether it was there.
    pub fn remove(&mut self, key: &ObjectKey) -> bool {
        let there = self.object(key).is_some();
        if there {
            self.put(key.clone(), None);
        }
        there
    }

    /// A suffix for a generated name.
    pub fn suffix(&mut self) -> String {
        self.random.suffix(5)
    }

    fn serve_definition(&mut self, definition: &Value) {
        for kind in kinds::of_definition(definition) {
            self.kinds.register(kind);
        }
    }

    /// The one place that makes a revision.
    fn put(&mut self, key: ObjectKey, object: Option<Value>) -> Option<Arc<Value>> {
        self.revision += 1;
        let revision = self.revision;
        let objects = self.objects.entry(key.resource.clone()).or_default();
        let place = (key.namespace.clone(), key.name.clone());
        let before = objects.get(&place).cloned();
        let after = object.map(|mut object| {
            object::set_revision(&mut object, revision);
            Arc::new(object)
        });
        let last = match (&before, &after) {
            (Some(before), None) => {
                let mut last = Value::clone(before);
                object::set_revision(&mut last, revision);
                Some(Arc::new(last))
            }
            _ => None,
        };
        match &after {
            Some(object) => objects.insert(place, Arc::clone(object)),
            None => objects.remove(&place),
        };
        let answer = after.clone().or_else(|| last.clone());
        self.history.push_back(Arc::new(Change { revision, key, before, after, last }));
        self.trim();
        self.wake_all();
        answer
    }
}
