//! An API server for one run of the binary: fixed answers over a loopback socket, and a log of what was asked.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::support::{Run, maint_with};

/// The records.
pub const RECORDS: &str = "/apis/maint.dev/v1alpha1/maintenances";
/// The leader's Lease.
pub const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/maint/leases/maint";
/// The reports.
pub const REPORTS: &str = "/apis/maint.dev/v1alpha1/maintenancereports";
/// The DaemonSets.
pub const DAEMON_SETS: &str = "/apis/apps/v1/daemonsets";
/// maint's ConfigMaps.
pub const CONFIG_MAPS: &str = "/api/v1/namespaces/maint/configmaps";

/// Answers by `METHOD path`, without the query.
#[derive(Clone, Default)]
pub struct Api {
    answers: BTreeMap<String, (u16, Value)>,
    log: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Api {
    /// A cluster with maint's CRDs, the nodes worker1 and worker2, and neither records nor halt nor leader.
    pub fn new() -> Self {
        let node = |name: &str, annotations: Value| {
            json!({
                "metadata": {"name": name, "annotations": annotations}, "spec": {},
                "status": {"nodeInfo": {"bootID": "b1"}, "conditions": [{"type": "Ready", "status": "True"}]},
            })
        };
        let hold = json!({"maint.dev/hold": r#"{"by":"ben","reason":"disk swap"}"#});
        Self::default()
            .list("/api/v1/nodes", vec![node("worker1", json!({})), node("worker2", hold)])
            .list(CONFIG_MAPS, vec![])
            .list(RECORDS, vec![])
            .list(REPORTS, vec![])
            .list(DAEMON_SETS, vec![])
            .answer("PATCH /api/v1/nodes/worker1", 200, json!({}))
            .answer("PATCH /api/v1/nodes/worker2", 200, json!({}))
            .answer(&format!("PATCH {CONFIG_MAPS}/maint-control"), 200, json!({}))
    }

    /// Sets an answer.
    pub fn answer(mut self, asked: &str, code: u16, body: Value) -> Self {
        self.answers.insert(asked.to_owned(), (code, body));
        self
    }

    /// Sets a list.
    #[allow(clippy::needless_pass_by_value, reason = "a table of tests reads better without references")]
    pub fn list(self, path: &str, items: Vec<Value>) -> Self {
        let kind = match path.rsplit('/').next() {
            Some("nodes") => "NodeList",
            Some("configmaps") => "ConfigMapList",
            Some("daemonsets") => "DaemonSetList",
            Some("maintenancereports") => "MaintenanceReportList",
            _ => "MaintenanceList",
        };
        self.answer(&format!("GET {path}"), 200, json!({"kind": kind, "metadata": {}, "items": items}))
    }

    /// Puts a record there, in the list and by its name; words can be said in it.
    pub fn record(self, record: &Value) -> Self {
        let name = record["metadata"]["name"].as_str().expect("a name");
        self.answer(&format!("GET {RECORDS}/{name}"), 200, record.clone())
            .answer(&format!("PATCH {RECORDS}/{name}"), 200, record.clone())
            .list(RECORDS, vec![record.clone()])
    }

    /// Refuses something, as an API server does.
    pub fn refuse(self, asked: &str, code: u16, message: &str) -> Self {
        self.answer(asked, code, json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message}))
    }

    /// What was written, as (`METHOD path`, body).
    pub fn writes(&self) -> Vec<(String, Value)> {
        let log = self.log.lock().expect("not poisoned");
        log.iter().filter(|(asked, _)| !asked.starts_with("GET")).cloned().collect()
    }

    fn respond(&self, asked: String, body: Value) -> (u16, Value) {
        let created = asked.starts_with("POST") && !self.answers.contains_key(&asked);
        let answer = match self.answers.get(&asked) {
            Some(answer) => answer.clone(),
            None if asked == "GET /version" => (200, json!({"gitVersion": "v1.33.0"})),
            None if created => (201, body.clone()),
            None => (
                404,
                json!({"kind": "Status", "status": "Failure", "message": format!("no {asked}"), "reason": "NotFound", "details": {"name": "x"}}),
            ),
        };
        self.log.lock().expect("not poisoned").push((asked, body));
        answer
    }

    /// Serves connections for ever.
    async fn serve(self, listener: TcpListener) {
        let mut connections = JoinSet::new();
        loop {
            let Ok((stream, _)) = listener.accept().await else { continue };
            let api = self.clone();
            let service = service_fn(move |request: Request<Incoming>| {
                let api = api.clone();
                async move {
                    let asked = format!("{} {}", request.method(), request.uri().path());
                    let bytes = request
                        .into_body()
                        .collect()
                        .await
                        .map(http_body_util::Collected::to_bytes)
                        .unwrap_or_default();
                    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
                    let (code, body) = api.respond(asked, body);
                    let response = Response::builder().status(code).body(Full::new(Bytes::from(body.to_string())));
                    Ok::<_, Infallible>(response.expect("a response"))
                }
            });
            connections.spawn(async move {
                let _ =
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    }

    /// Runs maint against it, as anna on the host `desk`.
    pub fn maint(&self, arguments: &[&str]) -> Run {
        self.with(|kubeconfig| {
            let environment = [("LANG", "C.UTF-8"), ("USER", "anna"), ("HOSTNAME", "desk"), ("KUBECONFIG", kubeconfig)];
            maint_with(arguments, &environment)
        })
    }

    /// Does something with the path of a kubeconfig while it serves.
    pub fn with<T: Send>(&self, what: impl FnOnce(&str) -> T + Send) -> T {
        self.with_at("127.0.0.1:0", what)
    }

    /// The same at this address.
    pub fn with_at<T: Send>(&self, address: &str, what: impl FnOnce(&str) -> T + Send) -> T {
        let folder = tempfile::tempdir().expect("a folder");
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind(address)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let path = folder.path().join("kubeconfig");
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "fake",
            "clusters": [{"name": "fake", "cluster": {"server": format!("http://{address}")}}],
            "users": [{"name": "fake", "user": {}}],
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
        });
        std::fs::write(&path, kubeconfig.to_string()).expect("written");
        let mut serving = JoinSet::new();
        serving.spawn_on(self.clone().serve(listener), runtime.handle());
        what(&path.display().to_string())
    }
}
