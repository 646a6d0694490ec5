//! The only place that changes nodes, pods, records' status: every write here is fenced by a lease.
//!
//! Each act is one request that carries what makes it void when the world has moved on: a resourceVersion, a uid, a
//! fixed name. Repeating an act is harmless.

mod action_pod;
mod call;
mod error;
mod kured_lock;
mod node;
mod port;
mod report;
mod sentinel_pod;
mod state;

use std::sync::Arc;

use http::Method;
use maint_core::api::names;
use maint_core::api::record::{Maintenance, MaintenanceStatus};
use maint_core::config::Settings;
use maint_core::plan::{Act, Eviction, FINALIZER};
use serde::Deserialize as _;
use serde_json::{Value, json};

pub use call::{Calls, Form, KubeCalls, WRITE_LIMIT, message_of, send};
pub(crate) use call::{name_in, page_of};
pub use error::WriteError;
pub(crate) use kured_lock::patch as lock_patch;
pub use port::{Fenced, Performed};
pub use report::{KubeReports, REPORTS, Reports};
pub use state::StateWrite;

use crate::lead::LeaseGuard;
use crate::runtime::Clock;

/// Path of the records.
pub const RECORDS: &str = "/apis/maint.dev/v1alpha1/maintenances";

/// Writes through calls to the API: those of a kube client, or of whatever answers alike.
pub struct KubeFenced<C = KubeCalls> {
    calls: C,
    settings: Settings,
}

impl KubeFenced {
    /// A writer. The client must not retry by itself.
    #[must_use]
    pub const fn new(client: kube::Client, clock: Clock, settings: Settings) -> Self {
        Self::through(KubeCalls::new(client, clock), settings)
    }
}

impl<C> KubeFenced<C> {
    /// A writer through these calls.
    #[must_use]
    pub const fn through(calls: C, settings: Settings) -> Self {
        Self { calls, settings }
    }
}

impl<C: Calls> KubeFenced<C> {
    async fn call(
        &self,
        guard: &LeaseGuard,
        method: Method,
        path: &str,
        form: Form,
        body: Value,
    ) -> Result<Arc<Value>, WriteError> {
        // The lease must outlive the longest time that this request can be on its way.
        guard.check(WRITE_LIMIT).map_err(|error| WriteError::NotLeading(error.to_string()))?;
        let answer = self.calls.call(method.clone(), path, form, body).await;
        match &answer {
            Ok(_) => tracing::debug!(%method, path, "wrote"),
            Err(error) => tracing::info!(%method, path, category = error.category(), %error, "did not write"),
        }
        answer
    }

    async fn evict(&self, guard: &LeaseGuard, eviction: &Eviction) -> Result<(), WriteError> {
        let path = format!("/api/v1/namespaces/{}/pods/{}/eviction", eviction.namespace, eviction.name);
        let body = json!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": eviction.name, "namespace": eviction.namespace},
            "deleteOptions": {"preconditions": {"uid": eviction.uid}},
        });
        match self.call(guard, Method::POST, &path, Form::Json, body).await {
            // Gone, or another pod of that name: either way this one is no longer there.
            Ok(_) | Err(WriteError::NotFound(_) | WriteError::Conflict(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn evict_all(&self, guard: &LeaseGuard, evictions: &[Eviction]) -> Result<Performed, WriteError> {
        let tries = evictions.iter().map(|eviction| async move { (eviction, self.evict(guard, eviction).await) });
        let mut refused = Vec::new();
        for (eviction, outcome) in futures_util::future::join_all(tries).await {
            let name = format!("{}/{}", eviction.namespace, eviction.name);
            match outcome {
                Ok(()) => {}
                Err(error @ WriteError::NotLeading(_)) => return Err(error),
                Err(WriteError::Refused(why)) => refused.push((name, why)),
                Err(error) => refused.push((name, error.to_string())),
            }
        }
        Ok(Performed { refused })
    }

    async fn delete_pod(
        &self,
        guard: &LeaseGuard,
        namespace: &str,
        name: &str,
        uid: &str,
    ) -> Result<Performed, WriteError> {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
        let body = json!({"preconditions": {"uid": uid}, "gracePeriodSeconds": 5});
        match self.call(guard, Method::DELETE, &path, Form::Json, body).await {
            Ok(_) | Err(WriteError::NotFound(_)) => Ok(Performed::default()),
            Err(error) => Err(error),
        }
    }

    async fn finalizer(
        &self,
        guard: &LeaseGuard,
        record: &Maintenance,
        wanted: bool,
    ) -> Result<Arc<Value>, WriteError> {
        let mut finalizers = record.metadata.finalizers.clone().unwrap_or_default();
        finalizers.retain(|one| one != FINALIZER);
        if wanted {
            finalizers.push(FINALIZER.to_owned());
        }
        let body = json!({
            "metadata": {"resourceVersion": record.metadata.resource_version, "finalizers": finalizers},
        });
        let path = format!("{RECORDS}/{}?fieldManager=maint", record.metadata.name.as_deref().unwrap_or_default());
        self.call(guard, Method::PATCH, &path, Form::Merge, body).await
    }
}

impl<C: Calls> Fenced for KubeFenced<C> {
    async fn write_status(
        &self,
        guard: &LeaseGuard,
        record: &Maintenance,
        status: &MaintenanceStatus,
    ) -> Result<Maintenance, WriteError> {
        let mut next = record.clone();
        next.status = Some(status.clone());
        let body = serde_json::to_value(&next).map_err(|error| WriteError::Invalid(error.to_string()))?;
        let name = record.metadata.name.as_deref().unwrap_or_default();
        let path = format!("{RECORDS}/{name}/status?fieldManager=maint");
        let answer = self.call(guard, Method::PUT, &path, Form::Json, body).await?;
        Maintenance::deserialize(&*answer).map_err(|error| WriteError::Server(format!("odd answer: {error}")))
    }

    async fn write_state(&self, guard: &LeaseGuard, write: &StateWrite) -> Result<(), WriteError> {
        let base = format!("/api/v1/namespaces/{}/configmaps", self.settings.namespace);
        let body = state::body(write, &self.settings.namespace);
        if write.resource_version.is_none() {
            let path = format!("{base}?fieldManager=maint");
            return self.call(guard, Method::POST, &path, Form::Json, body).await.map(drop);
        }
        let path = format!("{base}/{}?fieldManager=maint", names::STATE_CONFIG_MAP);
        self.call(guard, Method::PATCH, &path, Form::Merge, body).await.map(drop)
    }

    async fn perform(&self, guard: &LeaseGuard, record: &Maintenance, act: &Act) -> Result<Performed, WriteError> {
        let done = |_: Arc<Value>| Performed::default();
        match act {
            Act::AddFinalizer => self.finalizer(guard, record, true).await.map(done),
            Act::RemoveFinalizer => match self.finalizer(guard, record, false).await {
                Err(WriteError::NotFound(_)) => Ok(Performed::default()),
                other => other.map(done),
            },
            Act::Evict(evictions) => self.evict_all(guard, evictions).await,
            Act::CreateActionPod { name, node, boot_id } => {
                let pod = action_pod::manifest(&self.settings.action.pod, name, node, boot_id);
                let path = format!("/api/v1/namespaces/{}/pods?fieldManager=maint", self.settings.action.pod.namespace);
                match self.call(guard, Method::POST, &path, Form::Json, pod).await {
                    // It is there already: its name is the record's, so it is ours.
                    Ok(_) | Err(WriteError::Conflict(_)) => Ok(Performed::default()),
                    Err(error) => Err(error),
                }
            }
            Act::DeleteActionPod { name, uid } => {
                self.delete_pod(guard, &self.settings.action.pod.namespace, name, uid).await
            }
            Act::CreateSentinelPod { name, node, path, mark, wanted_on } => {
                let settings = &self.settings.kured.sentinel;
                let asked = sentinel_pod::Asked { name, node, path, mark, wanted_on: wanted_on.as_deref() };
                let pod = sentinel_pod::manifest(settings, &asked);
                let path = format!("/api/v1/namespaces/{}/pods?fieldManager=maint", settings.namespace);
                match self.call(guard, Method::POST, &path, Form::Json, pod).await {
                    // It is there already: its name is the record's, so it is ours.
                    Ok(_) | Err(WriteError::Conflict(_)) => Ok(Performed::default()),
                    Err(error) => Err(error),
                }
            }
            Act::DeleteSentinelPod { name, uid } => {
                self.delete_pod(guard, &self.settings.kured.sentinel.namespace, name, uid).await
            }
            Act::SetLock(set) => {
                let path = kured_lock::path(set);
                match self.call(guard, Method::PATCH, &path, Form::Patch, kured_lock::patch(set)).await {
                    // The API server says this for a failed `test`, with no detail: somebody wrote first.
                    Err(WriteError::Invalid(message)) => Err(WriteError::Conflict(message)),
                    other => other.map(done),
                }
            }
            Act::Cordon { node, .. }
            | Act::Uncordon { node, .. }
            | Act::DropOwner { node, .. }
            | Act::MarkProven { node, .. } => {
                let Some(body) = node::patch(act) else { return Ok(Performed::default()) };
                let path = format!("/api/v1/nodes/{node}?fieldManager=maint");
                self.call(guard, Method::PATCH, &path, Form::Merge, body).await.map(done)
            }
        }
    }
}
