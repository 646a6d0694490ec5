//! Create, update and patch.

use std::sync::Arc;

use serde_json::{Value, json};

use super::error::Refusal;
use super::kinds::{self, Kind};
use super::object::At as _;
use super::patch::Form;
use super::{Context, ObjectKey, Store, managed, object};

/// What of an object a write addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The object; its status is left alone where the kind has a status subresource.
    Main,
    /// `/status`; the specification is left alone.
    Status,
}

impl Store {
    /// Creates an object.
    ///
    /// # Errors
    /// 404 without its namespace, 409 if the name is taken, 422 without a name.
    pub fn create(
        &mut self,
        kind: &Kind,
        namespace: &str,
        object: Value,
        context: &Context,
    ) -> Result<Arc<Value>, Refusal> {
        let mut object = object;
        if !object.is_object() {
            return Err(Refusal::bad_request("the object provided is unrecognized"));
        }
        self.check_place(kind, namespace, &object)?;
        if !object::revision(&object).is_empty() {
            return Err(Refusal::new(500, "", "resourceVersion should not be set on objects to be created"));
        }
        if object::name(&object).is_empty() {
            let prefix = object::text(&object, "/metadata/generateName").to_owned();
            if prefix.is_empty() {
                return Err(Refusal::invalid(
                    kind,
                    "",
                    "metadata.name",
                    "Required value: name or generateName is required",
                ));
            }
            let name = format!("{prefix}{}", self.random.suffix(5));
            object::set_meta(&mut object, "name", json!(name));
        }
        let name = object::name(&object).to_owned();
        let key = ObjectKey { resource: kind.stored_as(), namespace: namespace.to_owned(), name };
        if let Some(there) = self.object(&key) {
            return Err(Refusal::already_exists(kind, &key.name, object::is_deleting(there)));
        }
        self.prepare_new(kind, namespace, &mut object, context);
        if context.dry_run {
            return Ok(Arc::new(object));
        }
        if kind.group == "apiextensions.k8s.io" {
            self.serve_definition(&object);
        }
        self.put(key, Some(object)).ok_or_else(|| Refusal::new(500, "InternalError", "the object was not stored"))
    }

    fn check_place(&self, kind: &Kind, namespace: &str, object: &Value) -> Result<(), Refusal> {
        if !kind.namespaced {
            return Ok(());
        }
        let said = object::namespace(object);
        if !said.is_empty() && said != namespace {
            return Err(Refusal::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        let key = ObjectKey::new("", "namespaces", "", namespace);
        let Some(found) = self.object(&key) else {
            let namespaces = self.kinds.find("", "v1", "namespaces");
            return Err(namespaces.map_or(Refusal::UnknownPath, |kind| Refusal::not_found(kind, namespace)));
        };
        if object::is_deleting(found) {
            let message = format!(
                "{} is forbidden: unable to create new content in namespace {namespace} because it is being terminated",
                kind.qualified()
            );
            return Err(Refusal::new(403, "Forbidden", message));
        }
        Ok(())
    }

    fn prepare_new(&mut self, kind: &Kind, namespace: &str, object: &mut Value, context: &Context) {
        for field in
            ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink"]
        {
            object::set_meta(object, field, Value::Null);
        }
        let uid = self.random.uuid();
        object::fill_new(object, &uid, context.now, kind.generation);
        if let Some(map) = object.as_object_mut() {
            map.insert("apiVersion".to_owned(), json!(kind.api_version()));
            map.insert("kind".to_owned(), json!(kind.kind));
            // A Node that is POSTed with a status keeps it (measured); everybody else's is dropped.
            if kind.status && kind.resource != "nodes" {
                map.remove("status");
            }
        }
        if kind.namespaced {
            object::set_meta(object, "namespace", json!(namespace));
        }
        match (kind.group.as_str(), kind.resource.as_str()) {
            ("", "pods") => {
                object::map(object, "status").insert("phase".to_owned(), json!("Pending"));
                object::map(object, "spec").entry("terminationGracePeriodSeconds").or_insert_with(|| json!(30));
            }
            ("", "namespaces") => {
                object::map(object, "status").insert("phase".to_owned(), json!("Active"));
            }
            ("", "nodes") => {
                object::map(object, "spec");
                object::set_meta(object, "managedFields", Value::Null);
                managed::begin(object, &context.manager, context.now);
                managed::track(None, object, &context.manager, context.now);
            }
            ("apiextensions.k8s.io", _) => {
                object::set_condition(object, "Established", "True", "InitialNamesAccepted", "", context.now);
            }
            _ => {}
        }
    }

    /// Replaces an object (PUT).
    ///
    /// # Errors
    /// 404, 409 for a stale resourceVersion or another uid, 422 where the kind demands a resourceVersion.
    pub fn update(
        &mut self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        object: Value,
        part: Part,
        context: &Context,
    ) -> Result<Arc<Value>, Refusal> {
        let said = object::name(&object);
        if said != name {
            return Err(Refusal::bad_request(format!(
                "the name of the object ({said}) does not match the name on the URL ({name})"
            )));
        }
        let key = ObjectKey { resource: kind.stored_as(), namespace: namespace.to_owned(), name: name.to_owned() };
        let Some(old) = self.object(&key).cloned() else {
            // Leases may be created by PUT (`AllowCreateOnUpdate` of its strategy).
            if kind.resource == "leases" && object::revision(&object).is_empty() && object::uid(&object).is_empty() {
                return self.create(kind, namespace, object, context);
            }
            return Err(Refusal::not_found(kind, name));
        };
        let given = object::uid(&object);
        if !given.is_empty() && given != object::uid(&old) {
            let why =
                format!("Precondition failed: UID in precondition: {given}, UID in object meta: {}", object::uid(&old));
            return Err(Refusal::conflict(kind, name, &why));
        }
        if object::revision(&object).is_empty() && (kind.custom || kind.resource == "leases") {
            return Err(Refusal::revision_required(kind, name));
        }
        self.store_new(kind, key, &old, object, part, context)
    }

    /// Patches an object.
    ///
    /// # Errors
    /// 404; 409 if the patch names a stale resourceVersion; 422 if a JSON patch does not apply or the uid differs;
    /// 415 for a form that is not spoken.
    #[expect(clippy::too_many_arguments, reason = "they are the parts of one request")]
    pub fn patch(
        &mut self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        form: Form,
        patch: &Value,
        part: Part,
        context: &Context,
    ) -> Result<Arc<Value>, Refusal> {
        let key = ObjectKey { resource: kind.stored_as(), namespace: namespace.to_owned(), name: name.to_owned() };
        let old = self.object(&key).cloned().ok_or_else(|| Refusal::not_found(kind, name))?;
        let new = form.apply(&old, patch)?;
        if object::name(&new) != name {
            return Err(Refusal::bad_request(format!(
                "the name of the object ({}) does not match the name on the URL ({name})",
                object::name(&new)
            )));
        }
        let given = object::uid(&new);
        if !given.is_empty() && given != object::uid(&old) {
            let why = format!("Invalid value: \"{given}\": field is immutable");
            return Err(Refusal::invalid(kind, name, "metadata.uid", &why));
        }
        self.store_new(kind, key, &old, new, part, context)
    }

    fn store_new(
        &mut self,
        kind: &Kind,
        key: ObjectKey,
        old: &Arc<Value>,
        new: Value,
        part: Part,
        context: &Context,
    ) -> Result<Arc<Value>, Refusal> {
        let given = object::revision(&new);
        if !given.is_empty() && given != object::revision(old) {
            return Err(Refusal::stale(kind, &key.name));
        }
        let mut new = match part {
            Part::Main => main_part(kind, old, new),
            Part::Status => status_part(kind, old, new),
        };
        if kind.resource == "pods" && kind.group.is_empty() && new.at("/spec/nodeName") != old.at("/spec/nodeName") {
            return Err(Refusal::invalid(
                kind,
                &key.name,
                "spec",
                "Forbidden: pod updates may not change fields other than \
                `spec.containers[*].image`, `spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, `spec.tolerations`",
            ));
        }
        carry(old, &mut new);
        if kind.resource == "nodes" && kind.group.is_empty() {
            managed::track(Some(old), &mut new, &context.manager, context.now);
        }
        object::set_meta(&mut new, "resourceVersion", json!(object::revision(old)));
        if new == **old {
            return Ok(Arc::clone(old));
        }
        if part == Part::Main && kind.generation && specification_differs(old, &new) {
            let generation = old.at("/metadata/generation").and_then(Value::as_i64).unwrap_or(0) + 1;
            object::set_meta(&mut new, "generation", json!(generation));
        }
        if context.dry_run {
            return Ok(Arc::new(new));
        }
        let ungraced = new.at("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0) == 0;
        let gone = object::is_deleting(&new) && ungraced && !object::has_finalizers(&new);
        if gone {
            self.put(key.clone(), Some(new));
            return self.take_away(&key);
        }
        if kind.group == "apiextensions.k8s.io" {
            self.serve_definition(&new);
        }
        self.put(key, Some(new)).ok_or_else(|| Refusal::new(500, "InternalError", "the object was not stored"))
    }

    /// Removes an object for good, and what hangs on it in the API server itself.
    pub(super) fn take_away(&mut self, key: &ObjectKey) -> Result<Arc<Value>, Refusal> {
        let last = self.put(key.clone(), None);
        let last = last.ok_or_else(|| Refusal::new(500, "InternalError", "the object was not there"))?;
        if key.resource.group == "apiextensions.k8s.io" {
            for kind in kinds::of_definition(&last) {
                let left: Vec<(String, String)> =
                    self.objects.get(&kind.stored_as()).into_iter().flat_map(|all| all.keys().cloned()).collect();
                for (namespace, name) in left {
                    self.put(ObjectKey { resource: kind.stored_as(), namespace, name }, None);
                }
                self.kinds.forget(&kind.group, &kind.resource);
            }
        }
        Ok(last)
    }
}

fn main_part(kind: &Kind, old: &Value, mut new: Value) -> Value {
    if kind.status
        && let Some(map) = new.as_object_mut()
    {
        match old.get("status") {
            Some(status) => map.insert("status".to_owned(), status.clone()),
            None => map.remove("status"),
        };
    }
    new
}

/// The status of `new` on all the rest of `old`. Built-in kinds take labels and annotations along (their status
/// strategies only restore the spec), custom ones restore all metadata (measured).
fn status_part(kind: &Kind, old: &Value, mut new: Value) -> Value {
    // The old status may be the greatest part of the object: it is not copied first.
    let kept = old.as_object().into_iter().flatten().filter(|(key, _)| key.as_str() != "status");
    let mut object: Value = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
    if let (Some(map), Some(status)) =
        (object.as_object_mut(), new.as_object_mut().and_then(|new| new.remove("status")))
    {
        map.insert("status".to_owned(), status);
    }
    if !kind.custom {
        for field in ["labels", "annotations"] {
            let value = new.at("/metadata").and_then(|metadata| metadata.get(field)).cloned();
            object::set_meta(&mut object, field, value.unwrap_or(Value::Null));
        }
    }
    object
}

/// System fields stay as they are, whatever a client writes.
fn carry(old: &Value, new: &mut Value) {
    for field in [
        "uid",
        "namespace",
        "creationTimestamp",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generateName",
        "managedFields",
    ] {
        let value = old.at("/metadata").and_then(|metadata| metadata.get(field)).cloned();
        object::set_meta(new, field, value.unwrap_or(Value::Null));
    }
    if let Some(map) = new.as_object_mut() {
        for field in ["apiVersion", "kind"] {
            if let Some(value) = old.get(field) {
                map.insert(field.to_owned(), value.clone());
            }
        }
    }
    for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
        let metadata = object::map(new, "metadata");
        let empty = |value: &Value| match value {
            Value::Object(map) => map.is_empty(),
            Value::Array(list) => list.is_empty(),
            other => other.is_null(),
        };
        // Empty is not stored (omitempty), so it must not look like a change.
        if metadata.get(field).is_some_and(empty) {
            metadata.remove(field);
        }
    }
}

fn specification_differs(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return false };
    let counts = |key: &str| !matches!(key, "metadata" | "status" | "apiVersion" | "kind");
    let differs = |(key, value): (&String, &Value)| counts(key) && new.get(key) != Some(value);
    old.iter().any(differs) || new.keys().any(|key| counts(key) && !old.contains_key(key))
}
