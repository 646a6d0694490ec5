//! Deletion: preconditions, finalizers, and the grace of pods.

use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::error::Refusal;
use super::kinds::Kind;
use super::object::At as _;
use super::{Context, ObjectKey, Store, object};

/// `DeleteOptions`, as far as they are used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// `gracePeriodSeconds`
    pub grace_seconds: Option<i64>,
    /// `preconditions.uid`
    pub uid: Option<String>,
    /// `preconditions.resourceVersion`
    pub revision: Option<String>,
    /// `dryRun` contains `All`.
    pub dry_run: bool,
}

impl DeleteOptions {
    /// From a body, or from `deleteOptions` of an Eviction.
    #[must_use]
    pub fn of(value: Option<&Value>) -> Self {
        let Some(value) = value else { return Self::default() };
        let text = |pointer: &str| value.at(pointer).and_then(Value::as_str).map(str::to_owned);
        let all = |list: &Value| list.as_array().is_some_and(|list| list.contains(&json!("All")));
        Self {
            grace_seconds: value.get("gracePeriodSeconds").and_then(Value::as_i64),
            uid: text("/preconditions/uid"),
            revision: text("/preconditions/resourceVersion"),
            dry_run: value.get("dryRun").is_some_and(all),
        }
    }

    /// Compares the preconditions with an object.
    ///
    /// # Errors
    /// 409 if one of them does not hold.
    pub fn check(&self, kind: &Kind, object: &Value) -> Result<(), Refusal> {
        let name = object::name(object);
        if let Some(uid) = &self.uid
            && uid != object::uid(object)
        {
            let why =
                format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {}", object::uid(object));
            return Err(Refusal::conflict(kind, name, &why));
        }
        if let Some(revision) = &self.revision
            && revision != object::revision(object)
        {
            let why = format!(
                "Precondition failed: ResourceVersion in precondition: {revision}, ResourceVersion in object meta: {}",
                object::revision(object)
            );
            return Err(Refusal::conflict(kind, name, &why));
        }
        Ok(())
    }
}

/// What a deletion came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Deleted {
    /// Gone; the last state.
    Gone(Arc<Value>),
    /// Marked; a finalizer or its grace keeps it.
    Marked(Arc<Value>),
}

impl Deleted {
    /// The object as it was left.
    #[must_use]
    pub const fn object(&self) -> &Arc<Value> {
        match self {
            Self::Gone(object) | Self::Marked(object) => object,
        }
    }
}

impl Store {
    /// Deletes an object.
    ///
    /// # Errors
    /// 404, or 409 if a precondition does not hold.
    pub fn delete(
        &mut self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
        context: &Context,
    ) -> Result<Deleted, Refusal> {
        let key = ObjectKey { resource: kind.stored_as(), namespace: namespace.to_owned(), name: name.to_owned() };
        let old = self.object(&key).cloned().ok_or_else(|| Refusal::not_found(kind, name))?;
        options.check(kind, &old)?;
        if options.dry_run || context.dry_run {
            return Ok(Deleted::Gone(old));
        }
        let grace = grace(kind, &old, options);
        let marked = old.at("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
        if grace == 0 && !object::has_finalizers(&old) {
            return self.take_away(&key).map(Deleted::Gone);
        }
        // A second deletion only ever shortens the grace.
        if object::is_deleting(&old) && marked.is_none_or(|marked| marked <= grace) {
            return Ok(Deleted::Marked(old));
        }
        let mut new = Value::clone(&old);
        let end = context.now + SignedDuration::from_secs(grace);
        object::set_meta(&mut new, "deletionTimestamp", json!(object::seconds(end)));
        object::set_meta(&mut new, "deletionGracePeriodSeconds", json!(grace));
        if kind.generation {
            let generation = old.at("/metadata/generation").and_then(Value::as_i64).unwrap_or(0) + 1;
            object::set_meta(&mut new, "generation", json!(generation));
        }
        let stored = self.put(key, Some(new));
        stored.map(Deleted::Marked).ok_or_else(|| Refusal::new(500, "InternalError", "the object was not stored"))
    }
}

/// Only pods have a grace; one that is on no node, or has ended, has none (`podStrategy.CheckGracefulDelete`).
fn grace(kind: &Kind, object: &Value, options: &DeleteOptions) -> i64 {
    if !(kind.group.is_empty() && kind.resource == "pods") {
        return 0;
    }
    let ended = matches!(object::text(object, "/status/phase"), "Succeeded" | "Failed");
    if object::text(object, "/spec/nodeName").is_empty() || ended {
        return 0;
    }
    let own = object.at("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(30);
    options.grace_seconds.unwrap_or(own).max(0)
}
