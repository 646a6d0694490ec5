//! A validating webhook for evictions: HTTPS in the hub that the API servers ask before they evict a pod of one namespace.
//! A case says what it answers for one pod; all others may go, and so may whatever is only tried.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, ensure};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::ByteString;
use rcgen::{CertificateParams, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

use super::net::{HUB, NODES};
use super::objects::CASE_LABEL;
use super::{Cluster, wait};

/// Where such webhooks are registered.
pub const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
/// The name that a refusal carries.
pub const NAME: &str = "evictions.case.test";

/// What is said to the evictions of the one pod.
#[derive(Clone, Copy, Debug)]
pub enum Verdict {
    /// So many are refused with this message, the later ones allowed.
    Refuse(usize, &'static str),
    /// None is answered before [`Admission::release`]; then they are allowed.
    Hold,
}

/// The webhook; it ends when it is dropped. Its registration is deleted by the next reset.
pub struct Admission {
    shared: Arc<Shared>,
    task: AbortHandle,
}

struct Shared {
    pod: String,
    verdict: Verdict,
    asked: Mutex<Asked>,
    released: watch::Sender<bool>,
}

/// How often it was asked.
#[derive(Clone, Copy, Default)]
struct Asked {
    /// For the one pod.
    pod: usize,
    /// To try only, for any pod.
    tries: usize,
}

impl Admission {
    /// Listens, registers itself for the evictions of a namespace, and waits until each API server asks it.
    pub async fn start(cluster: &Cluster, namespace: &str, pod: &str, verdict: Verdict) -> Result<Self> {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(vec![HUB.to_string()])?.self_signed(&key)?;
        let config = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?,
            )?;
        let listener = TcpListener::bind((HUB, 0)).await.context("the webhook cannot listen")?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            pod: pod.to_string(),
            verdict,
            asked: Mutex::default(),
            released: watch::Sender::new(false),
        });
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let task = tokio::spawn(accept(listener, acceptor, shared.clone())).abort_handle();
        let admission = Self { shared, task };
        let registration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": { "name": "case-evictions", "labels": { CASE_LABEL: "true" } },
            "webhooks": [{
                "name": NAME, "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
                "timeoutSeconds": 15,
                "clientConfig": { "url": format!("https://{HUB}:{port}/"), "caBundle": ByteString(certificate.pem().into_bytes()) },
                "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": namespace } },
                "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/eviction"] }],
            }],
        });
        cluster.client(1).await?.create(WEBHOOKS, &registration).await?;
        admission.wait_known(cluster, namespace, pod).await?;
        Ok(admission)
    }

    /// Each API server hears of the registration for itself: until it does, it asks nobody.
    async fn wait_known(&self, cluster: &Cluster, namespace: &str, pod: &str) -> Result<()> {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/eviction?dryRun=All");
        let body = json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": pod, "namespace": namespace } });
        for i in 1..=NODES {
            let client = cluster.client(i).await?;
            wait::until(wait::SHORT, format!("API server {i} to ask the webhook"), || async {
                let before = self.shared.lock().tries;
                let answer =
                    client.call(Method::POST, &path, &[("content-type", "application/json")], Some(&body)).await?;
                ensure!(answer.status.is_success(), "{} {}", answer.status, answer.message());
                Ok((self.shared.lock().tries > before).then_some(()))
            })
            .await?;
        }
        Ok(())
    }

    /// How often the eviction of the one pod was asked about.
    pub fn asked(&self) -> usize {
        self.shared.lock().pod
    }

    /// What is held is answered now, and nothing is held any more.
    pub fn release(&self) {
        self.shared.released.send_replace(true);
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(connection(stream, acceptor.clone(), shared.clone()));
    }
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let service = service_fn(|request| {
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(shared.answer(request).await) }
    });
    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let body = request.into_body().collect().await.ok();
        let review: Option<Value> = body.and_then(|body| serde_json::from_slice(&body.to_bytes()).ok());
        let mut response = Response::new(Full::default());
        match review {
            Some(review) => {
                let asked = &review["request"];
                let mut said = self.judge(asked).await;
                said["uid"] = asked["uid"].clone();
                let answer =
                    json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": said });
                *response.body_mut() = Full::new(Bytes::from(answer.to_string()));
                response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
            }
            None => *response.status_mut() = StatusCode::BAD_REQUEST,
        }
        response
    }

    async fn judge(&self, asked: &Value) -> Value {
        let allowed = json!({ "allowed": true });
        if asked["dryRun"] == true {
            self.lock().tries += 1;
            return allowed;
        }
        if asked["object"]["metadata"]["name"] != self.pod.as_str() {
            return allowed;
        }
        let times = {
            let mut counts = self.lock();
            counts.pod += 1;
            counts.pod
        };
        match self.verdict {
            Verdict::Refuse(most, message) if times <= most => {
                json!({ "allowed": false, "status": { "code": 403, "message": message } })
            }
            Verdict::Refuse(..) => allowed,
            Verdict::Hold => {
                self.released.subscribe().wait_for(|released| *released).await.ok();
                allowed
            }
        }
    }
}
