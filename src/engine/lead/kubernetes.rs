//! The Lease of a real cluster.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::PostParams;
use kube::{Api, Client};
use maint_core::api::names;
use maint_core::election::{Answer, LeaseRecord, Seen, Term, Version};

use super::store::LeaseStore;

/// Makes a client with connections of its own, for one way to the API: the Service, or one API server's own address.
pub type ClientSource = Box<dyn Fn() -> Result<Client, String> + Send + Sync>;

/// The Lease `maint` in maint's namespace, by several ways to the API. The server that reboots may be the one that we
/// talk to, so an attempt that failed is followed by one with a new client for the next way.
///
/// The clients must not retry by themselves (`default_retry = false`): the election does.
pub struct KubernetesLease {
    namespace: String,
    sources: Vec<ClientSource>,
    current: Mutex<Current>,
}

#[derive(Default)]
struct Current {
    index: usize,
    client: Option<Client>,
    /// Metadata of the Lease as last seen: a PUT must not strip what others put there.
    metadata: ObjectMeta,
}

impl KubernetesLease {
    /// Nothing is sent yet. The ways are tried in this order and round again.
    #[must_use]
    pub fn new(namespace: impl Into<String>, sources: Vec<ClientSource>) -> Self {
        Self { namespace: namespace.into(), sources, current: Mutex::new(Current::default()) }
    }

    fn api(&self) -> Result<Api<Lease>, String> {
        let mut current = self.lock();
        let client = match &current.client {
            Some(client) => client.clone(),
            None => {
                let source = self.sources.get(current.index).ok_or("no way to the API is known")?;
                let client = source()?;
                current.client = Some(client.clone());
                client
            }
        };
        Ok(Api::namespaced(client, &self.namespace))
    }

    fn seen(&self, lease: Lease) -> Answer {
        match seen_of(&lease) {
            Ok(seen) => {
                self.lock().metadata = lease.metadata;
                Answer::Seen(seen)
            }
            Err(why) => failed(why),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LeaseStore for KubernetesLease {
    async fn get(&self) -> Answer {
        let api = match self.api() {
            Ok(api) => api,
            Err(why) => return failed(&why),
        };
        match api.get(names::LEASE).await {
            Ok(lease) => self.seen(lease),
            Err(kube::Error::Api(status)) if status.code == 404 && status.reason == "NotFound" => Answer::NotFound,
            Err(error) => failed(&error.to_string()),
        }
    }

    async fn create(&self, record: LeaseRecord) -> Answer {
        match self.api() {
            Ok(api) => match api.create(&parameters(), &lease_of(&self.namespace, &record, None)).await {
                Ok(lease) => self.seen(lease),
                Err(kube::Error::Api(status)) if status.code == 409 => Answer::Conflict,
                // 404 too: then the namespace is missing.
                Err(error) => failed(&error.to_string()),
            },
            Err(why) => failed(&why),
        }
    }

    async fn update(&self, record: LeaseRecord, version: Version) -> Answer {
        let kept = self.lock().metadata.clone();
        let lease = lease_of(&self.namespace, &record, Some((version, kept)));
        match self.api() {
            Ok(api) => match api.replace(names::LEASE, &parameters(), &lease).await {
                Ok(lease) => self.seen(lease),
                Err(kube::Error::Api(status)) if status.code == 409 => Answer::Conflict,
                Err(kube::Error::Api(status)) if status.code == 404 && status.reason == "NotFound" => Answer::NotFound,
                Err(error) => failed(&error.to_string()),
            },
            Err(why) => failed(&why),
        }
    }

    fn move_on(&self) {
        let mut current = self.lock();
        current.client = None;
        current.index = (current.index + 1) % self.sources.len().max(1);
    }
}

fn failed(why: &str) -> Answer {
    Answer::Failed(why.to_owned())
}

fn parameters() -> PostParams {
    PostParams { field_manager: Some(names::FIELD_MANAGER.to_owned()), ..PostParams::default() }
}

/// The Lease that a write sends: with a version it replaces that one and nothing else, and keeps what others put into
/// its metadata, as last seen.
#[must_use]
pub fn lease_of(namespace: &str, record: &LeaseRecord, replaced: Option<(Version, ObjectMeta)>) -> Lease {
    let (name, namespace) = (Some(names::LEASE.to_owned()), Some(namespace.to_owned()));
    let metadata = match replaced {
        None => ObjectMeta { name, namespace, ..ObjectMeta::default() },
        Some((version, kept)) => ObjectMeta {
            name,
            namespace,
            uid: Some(version.uid),
            resource_version: Some(version.resource_version),
            labels: kept.labels,
            annotations: kept.annotations,
            owner_references: kept.owner_references,
            finalizers: kept.finalizers,
            ..ObjectMeta::default()
        },
    };
    encode(record, metadata)
}

fn encode(record: &LeaseRecord, metadata: ObjectMeta) -> Lease {
    let spec = LeaseSpec {
        // No holder at all says "free" to every version of the API; an empty name may be refused one day.
        holder_identity: Some(record.holder.clone()).filter(|holder| !holder.is_empty()),
        lease_duration_seconds: Some(i32::try_from(record.duration.as_secs()).unwrap_or(i32::MAX)),
        lease_transitions: Some(i32::try_from(record.term.0).unwrap_or(i32::MAX)),
        acquire_time: record.acquired.map(MicroTime),
        renew_time: record.renewed.map(MicroTime),
        ..LeaseSpec::default()
    };
    Lease { metadata, spec: Some(spec) }
}

/// What the API showed. An odd duration or term is no reason to refuse: time and the version decide.
///
/// # Errors
/// If it has no uid or resourceVersion: then no write could name what it replaces.
pub fn seen_of(lease: &Lease) -> Result<Seen, &'static str> {
    let spec = lease.spec.clone().unwrap_or_default();
    let uid = lease.metadata.uid.clone().ok_or("the Lease has no metadata.uid")?;
    let resource_version =
        lease.metadata.resource_version.clone().ok_or("the Lease has no metadata.resourceVersion")?;
    let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(0);
    let record = LeaseRecord {
        holder: spec.holder_identity.unwrap_or_default(),
        term: Term(i64::from(spec.lease_transitions.unwrap_or(0).max(0))),
        duration: Duration::from_secs(seconds),
        acquired: spec.acquire_time.map(|time| time.0),
        renewed: spec.renew_time.map(|time| time.0),
    };
    Ok(Seen { record, version: Version { uid, resource_version } })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::{Request, Response};
    use http_body_util::BodyExt;
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    type Log = Arc<Mutex<Vec<String>>>;

    /// A way to an API that answers everything alike, and notes what it was asked.
    fn way(name: &'static str, status: u16, answer: Value, log: &Log) -> ClientSource {
        let log = Arc::clone(log);
        Box::new(move || {
            let (log, answer) = (Arc::clone(&log), answer.clone());
            log.lock().expect("lock").push(format!("{name} connects"));
            let service = tower::service_fn(move |request: Request<Body>| {
                let (log, answer) = (Arc::clone(&log), answer.clone());
                async move {
                    let (parts, body) = request.into_parts();
                    let body = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
                    let line = format!("{} {} {}", parts.method, parts.uri, String::from_utf8_lossy(&body));
                    log.lock().expect("lock").push(line.trim().to_owned());
                    Response::builder()
                        .status(status)
                        .body(Body::from(answer.to_string().into_bytes()))
                        .map_err(|e| e.to_string())
                }
            });
            Ok(Client::new(service, "default"))
        })
    }

    fn status(code: u16, reason: &str) -> Value {
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "reason": reason, "code": code})
    }

    fn lease() -> Value {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "maint", "namespace": "maint", "uid": "u1", "resourceVersion": "42", "labels": {"a": "b"}},
            "spec": {"holderIdentity": "maint-b_y", "leaseDurationSeconds": 30, "leaseTransitions": 7},
        })
    }

    fn version() -> Version {
        Version { uid: "u1".to_owned(), resource_version: "42".to_owned() }
    }

    #[tokio::test]
    async fn answers_are_told_apart() {
        let record = LeaseRecord {
            holder: "maint-b_y".to_owned(),
            term: Term(7),
            duration: Duration::from_secs(30),
            ..LeaseRecord::default()
        };
        let seen = Answer::Seen(Seen { record: record.clone(), version: version() });
        let bare = json!({"metadata": {"name": "maint", "uid": "u1", "resourceVersion": "42"}});
        let nobody = Answer::Seen(Seen { record: LeaseRecord::default(), version: version() });
        let rows = [
            ("read", 'g', 200, lease(), Some(seen.clone())),
            ("made by hand, without spec", 'g', 200, bare, Some(nobody)),
            ("absent", 'g', 404, status(404, "NotFound"), Some(Answer::NotFound)),
            ("no such resource: a proxy answers, or no API", 'g', 404, json!("404 page not found"), None),
            ("forbidden", 'g', 403, status(403, "Forbidden"), None),
            ("created", 'c', 201, lease(), Some(seen.clone())),
            ("created by another first", 'c', 409, status(409, "AlreadyExists"), Some(Answer::Conflict)),
            ("the namespace is missing", 'c', 404, status(404, "NotFound"), None),
            ("written", 'u', 200, lease(), Some(seen)),
            ("written by another first", 'u', 409, status(409, "Conflict"), Some(Answer::Conflict)),
            ("deleted", 'u', 404, status(404, "NotFound"), Some(Answer::NotFound)),
            ("overloaded", 'u', 429, status(429, "TooManyRequests"), None),
            ("no version in the answer", 'g', 200, json!({"metadata": {"name": "maint"}}), None),
        ];
        for (name, call, code, answer, wanted) in rows {
            let store = KubernetesLease::new("maint", vec![way("one", code, answer, &Log::default())]);
            let found = match call {
                'g' => store.get().await,
                'c' => store.create(record.clone()).await,
                _ => store.update(record.clone(), version()).await,
            };
            match wanted {
                Some(wanted) => assert_eq!(found, wanted, "{name}"),
                None => assert!(matches!(found, Answer::Failed(_)), "{name}: {found:?}"),
            }
        }
    }

    #[tokio::test]
    async fn a_write_names_what_it_replaces_and_keeps_what_others_put_there() {
        let log = Log::default();
        let store = KubernetesLease::new("maint", vec![way("one", 200, lease(), &log)]);
        store.get().await;
        let at = "2026-11-30T01:00:00.123456Z".parse().expect("a time");
        let record = LeaseRecord {
            term: Term(8),
            duration: Duration::from_secs(30),
            renewed: Some(at),
            ..LeaseRecord::default()
        };
        store.update(record, version()).await;
        let path = "/apis/coordination.k8s.io/v1/namespaces/maint/leases/maint";
        let log = log.lock().expect("lock");
        assert_eq!(log[..2], ["one connects".to_owned(), format!("GET {path}")]);
        let body =
            log[2].strip_prefix(&format!("PUT {path}?&fieldManager=maint ")).unwrap_or_else(|| panic!("{}", log[2]));
        let wanted = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "maint", "namespace": "maint", "uid": "u1", "resourceVersion": "42", "labels": {"a": "b"}},
            "spec": {"leaseDurationSeconds": 30, "leaseTransitions": 8, "renewTime": "2026-11-30T01:00:00.123456Z"},
        });
        assert_eq!(serde_json::from_str::<Value>(body).expect("JSON"), wanted);
    }

    #[tokio::test]
    async fn after_a_failure_the_next_way_is_taken_with_a_new_client() {
        let log = Log::default();
        let broken: ClientSource = Box::new(|| Err("no address".to_owned()));
        let store = KubernetesLease::new(
            "maint",
            vec![way("one", 503, status(503, "Down"), &log), broken, way("three", 200, lease(), &log)],
        );
        for wanted in [false, false, true, true] {
            let answer = store.get().await;
            assert_eq!(matches!(answer, Answer::Seen(_)), wanted, "{answer:?}");
            if !wanted {
                store.move_on();
            }
        }
        store.move_on();
        store.get().await;
        let connects =
            log.lock().expect("lock").iter().filter(|line| line.ends_with("connects")).cloned().collect::<Vec<_>>();
        assert_eq!(connects, ["one connects", "three connects", "one connects"]);
        assert!(matches!(KubernetesLease::new("maint", Vec::new()).get().await, Answer::Failed(_)));
    }
}
