//! The Lease.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use maint_core::api::names;
use maint_core::election::{Answer, LeaseRecord, Version};
use maint_engine::lead::{LeaseStore, lease_of, seen_of};
use serde::Deserialize as _;
use serde_json::Value;

use super::calls::Asked;
use super::pass;
use crate::store::Refusal;
use crate::store::http::Cluster;
use crate::store::request::Request;

/// The Lease `maint`, by several ways. One way is kept until an attempt fails.
pub struct TypedLease {
    cluster: Arc<Cluster>,
    client: &'static str,
    order: Vec<usize>,
    namespace: String,
    current: Mutex<Current>,
}

#[derive(Default)]
struct Current {
    index: usize,
    /// Metadata of the Lease as last seen: a write must not strip what others put there.
    metadata: ObjectMeta,
}

impl TypedLease {
    /// The Lease of a namespace, through these API servers in turn.
    #[must_use]
    pub fn new(cluster: Arc<Cluster>, client: &'static str, order: Vec<usize>, namespace: &str) -> Self {
        Self { cluster, client, order, namespace: namespace.to_owned(), current: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, method: &str, name: &str, query: &str, lease: Option<&Lease>) -> Result<Arc<Value>, Answer> {
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases{name}", self.namespace);
        let mut request = Request::new(method, &path, query);
        if let Some(lease) = lease {
            let document = serde_json::to_value(lease).map_err(|error| Answer::Failed(error.to_string()))?;
            request.document = Some(Arc::new(document));
        }
        let server = self.order.get(self.lock().index).copied();
        let server = server.ok_or_else(|| Answer::Failed("no way to the API is known".to_owned()))?;
        match pass(&self.cluster, server, self.client, &Asked(&request)).await {
            Ok(Ok((_, found))) => Ok(found),
            Ok(Err(refused)) => Err(answer_of(&refused.refusal)),
            Err(broken) => Err(Answer::Failed(broken)),
        }
    }

    fn seen(&self, found: Result<Arc<Value>, Answer>) -> Answer {
        let found = match found {
            Ok(found) => found,
            Err(answer) => return answer,
        };
        let lease = match Lease::deserialize(&*found) {
            Ok(lease) => lease,
            Err(error) => return Answer::Failed(error.to_string()),
        };
        match seen_of(&lease) {
            Ok(seen) => {
                self.lock().metadata = lease.metadata;
                Answer::Seen(seen)
            }
            Err(why) => Answer::Failed(why.to_owned()),
        }
    }
}

fn answer_of(refusal: &Refusal) -> Answer {
    match refusal {
        Refusal::Status { code: 404, reason: "NotFound", .. } => Answer::NotFound,
        Refusal::Status { code: 409, .. } => Answer::Conflict,
        other => Answer::Failed(other.to_string()),
    }
}

/// As the real client sends it.
fn name() -> String {
    format!("/{}", names::LEASE)
}

/// As the real client sends it.
fn query() -> String {
    format!("&fieldManager={}", names::FIELD_MANAGER)
}

impl LeaseStore for TypedLease {
    async fn get(&self) -> Answer {
        let found = self.ask("GET", &name(), "", None).await;
        match self.seen(found) {
            Answer::Conflict => Answer::Failed("409 of a read".to_owned()),
            answer => answer,
        }
    }

    async fn create(&self, record: LeaseRecord) -> Answer {
        let lease = lease_of(&self.namespace, &record, None);
        let found = self.ask("POST", "", &query(), Some(&lease)).await;
        match self.seen(found) {
            Answer::NotFound => Answer::Failed("the namespace is missing".to_owned()),
            answer => answer,
        }
    }

    async fn update(&self, record: LeaseRecord, version: Version) -> Answer {
        let kept = self.lock().metadata.clone();
        let lease = lease_of(&self.namespace, &record, Some((version, kept)));
        let found = self.ask("PUT", &name(), &query(), Some(&lease)).await;
        self.seen(found)
    }

    fn move_on(&self) {
        let mut current = self.lock();
        current.index = (current.index + 1) % self.order.len().max(1);
    }
}
