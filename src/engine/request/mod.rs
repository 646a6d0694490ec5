//! What anybody with the operator's rights may ask for: create a record, say a word in one, halt, hold.
//!
//! None of this needs a lease, and none of it can touch a cordon, a pod or a record's status: this port has no way to
//! express that. kured's lock belongs to the leader; that a person takes a holder out of it is a person's act, in a
//! method that can do nothing else: it replaces one exact value by less.

mod events;

use std::sync::Arc;

use http::Method;
use maint_core::api::record::{Maintenance, Word};
use maint_core::api::{Asked, names};
use maint_core::plan::{LockChange, SetLock};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::execute::{Calls, Form, KubeCalls, RECORDS, WriteError, lock_patch};
use crate::runtime::Clock;

/// The spec fields that may change after creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Verify again, or go on as if green.
    Resume,
    /// Call it off.
    Cancel,
    /// Take the command.
    Claimed,
    /// The external action is over.
    ActionDone,
}

impl Field {
    /// Its name in the record.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Resume => "resume",
            Self::Cancel => "cancel",
            Self::Claimed => "claimed",
            Self::ActionDone => "actionDone",
        }
    }
}

/// What becomes of kured's lock when a person takes somebody out of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleasedLock {
    /// Namespace of the DaemonSet.
    pub namespace: String,
    /// Its name.
    pub daemon_set: String,
    /// The annotation.
    pub key: String,
    /// The exact value that was read; if it is another by now, nothing is written.
    pub before: String,
    /// What is left of it; none takes the annotation away.
    pub after: Option<String>,
}

/// Asks through calls to the API: those of a kube client, or of whatever answers alike.
#[derive(Clone)]
pub struct Requests<C = KubeCalls> {
    calls: C,
    clock: Clock,
    namespace: String,
}

impl Requests {
    /// A port for maint's namespace.
    #[must_use]
    pub fn new(client: kube::Client, clock: Clock, namespace: String) -> Self {
        Self::through(KubeCalls::new(client, clock.clone()), clock, namespace)
    }
}

impl<C> Requests<C> {
    /// A port for maint's namespace, through these calls.
    #[must_use]
    pub const fn through(calls: C, clock: Clock, namespace: String) -> Self {
        Self { calls, clock, namespace }
    }
}

impl<C: Calls> Requests<C> {
    async fn call(&self, method: Method, path: &str, form: Form, body: Value) -> Result<Arc<Value>, WriteError> {
        self.calls.call(method, path, form, body).await
    }

    /// Creates a record.
    ///
    /// # Errors
    /// [`WriteError::Conflict`] where one of that name exists; [`WriteError::NotFound`] where the CRD is missing.
    pub async fn create(&self, record: &Maintenance) -> Result<Maintenance, WriteError> {
        let body = serde_json::to_value(record).map_err(|error| WriteError::Invalid(error.to_string()))?;
        let answer = self.call(Method::POST, &format!("{RECORDS}?fieldManager=maint-cli"), Form::Json, body).await?;
        Maintenance::deserialize(&*answer).map_err(|error| WriteError::Server(format!("odd answer: {error}")))
    }

    /// Writes a wish of the service itself down. False: a record of that name exists, since another replica made it.
    ///
    /// # Errors
    /// [`WriteError::NotFound`] where the CRD is missing; see [`WriteError`].
    pub async fn wish(&self, record: &Maintenance) -> Result<bool, WriteError> {
        let body = serde_json::to_value(record).map_err(|error| WriteError::Invalid(error.to_string()))?;
        match self.call(Method::POST, &format!("{RECORDS}?fieldManager=maint"), Form::Json, body).await {
            Ok(_) => Ok(true),
            Err(WriteError::Conflict(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes into a record that kured asked for its node, guarded by the record's resourceVersion.
    ///
    /// # Errors
    /// [`WriteError::Conflict`] where somebody wrote the record since it was read: the next question tells it anew.
    pub async fn asked(&self, record: &Maintenance, asked: &Asked) -> Result<(), WriteError> {
        let text = serde_json::to_string(asked).map_err(|error| WriteError::Invalid(error.to_string()))?;
        let body = json!({"metadata": {
            "resourceVersion": record.metadata.resource_version,
            "annotations": {names::ANNOTATION_ASKED: text},
        }});
        let name = record.metadata.name.as_deref().unwrap_or_default();
        self.call(Method::PATCH, &format!("{RECORDS}/{name}?fieldManager=maint"), Form::Merge, body).await.map(drop)
    }

    /// Says a word in a record. With the record's resourceVersion it is a compare-and-swap: of two that claim a
    /// command one gets [`WriteError::Conflict`].
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn say(
        &self,
        name: &str,
        field: Field,
        word: &Word,
        resource_version: Option<&str>,
    ) -> Result<(), WriteError> {
        let mut body = json!({"spec": {field.as_str(): word}});
        if let Some(version) = resource_version {
            body["metadata"] = json!({"resourceVersion": version});
        }
        self.call(Method::PATCH, &format!("{RECORDS}/{name}?fieldManager=maint-cli"), Form::Merge, body).await?;
        Ok(())
    }

    /// Marks a pending record as replaced by a newer one.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn supersede(&self, name: &str, by: &str) -> Result<(), WriteError> {
        let body = json!({"spec": {"supersededBy": by}});
        self.call(Method::PATCH, &format!("{RECORDS}/{name}?fieldManager=maint-cli"), Form::Merge, body).await?;
        Ok(())
    }

    /// Halts everything, or ends the halt (`None`).
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn halt(&self, halt: Option<&Value>) -> Result<(), WriteError> {
        let base = format!("/api/v1/namespaces/{}/configmaps", self.namespace);
        let text = halt.map(Value::to_string);
        let patch = json!({"data": {names::CONTROL_HALT_KEY: text}});
        let one = format!("{base}/{}?fieldManager=maint-cli", names::CONTROL_CONFIG_MAP);
        match self.call(Method::PATCH, &one, Form::Merge, patch).await {
            Err(WriteError::NotFound(_)) if halt.is_none() => Ok(()),
            Err(WriteError::NotFound(_)) => {
                let body = json!({
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": names::CONTROL_CONFIG_MAP, "namespace": self.namespace},
                    "data": {names::CONTROL_HALT_KEY: text},
                });
                self.call(Method::POST, &format!("{base}?fieldManager=maint-cli"), Form::Json, body).await.map(drop)
            }
            other => other.map(drop),
        }
    }

    /// Holds a node back, or releases it (`None`). Only the annotation is written.
    ///
    /// # Errors
    /// [`WriteError::NotFound`] where there is no such node.
    pub async fn hold(&self, node: &str, hold: Option<&Value>) -> Result<(), WriteError> {
        let text = hold.map(Value::to_string);
        let body = json!({"metadata": {"annotations": {names::ANNOTATION_HOLD: text}}});
        let path = format!("/api/v1/nodes/{node}?fieldManager=maint-cli");
        self.call(Method::PATCH, &path, Form::Merge, body).await.map(drop)
    }

    /// Takes somebody out of kured's lock.
    ///
    /// # Errors
    /// [`WriteError::Conflict`] where the value is no longer the one that was read.
    pub async fn release_kured_lock(&self, lock: &ReleasedLock) -> Result<(), WriteError> {
        let set = SetLock {
            namespace: lock.namespace.clone(),
            name: lock.daemon_set.clone(),
            key: lock.key.clone(),
            before: Some(lock.before.clone()),
            after: lock.after.clone(),
            why: LockChange::Release,
        };
        let path = format!(
            "/apis/apps/v1/namespaces/{}/daemonsets/{}?fieldManager=maint-cli",
            lock.namespace, lock.daemon_set
        );
        match self.call(Method::PATCH, &path, Form::Patch, lock_patch(&set)).await {
            // A failed `test` is 422 with no word of why; the path and the value are ours and right.
            Err(WriteError::Invalid(_)) => {
                Err(WriteError::Conflict("kured's lock is no longer what was read".to_owned()))
            }
            other => other.map(drop),
        }
    }
}
