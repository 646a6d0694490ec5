//! The way to the API server, as a pod has it: address from the environment, token and authority from files.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use http::{Request, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use maint_sim::doubles::kured::calls::{Call, Reply, USER_AGENT};
use serde_json::json;

/// client-go pings a connection that is silent for 30 s and gives it up 15 s later.
const SILENCE: Duration = Duration::from_secs(45);

/// A client of one API server.
pub struct Api {
    client: kube::Client,
    address: String,
}

impl Api {
    /// From `KUBERNETES_SERVICE_HOST`, `KUBERNETES_SERVICE_PORT` and the folder with `token` and `ca.crt`.
    pub async fn in_cluster(credentials: &Path) -> Result<Self> {
        let variable = |name: &str| std::env::var(name).with_context(|| format!("{name} is not set"));
        let address = format!("{}:{}", variable("KUBERNETES_SERVICE_HOST")?, variable("KUBERNETES_SERVICE_PORT")?);
        let config: Kubeconfig = serde_json::from_value(json!({
            "clusters": [{ "name": "in", "cluster": {
                "server": format!("https://{address}"), "certificate-authority": credentials.join("ca.crt") } }],
            "users": [{ "name": "in", "user": { "tokenFile": credentials.join("token") } }],
            "contexts": [{ "name": "in", "context": { "cluster": "in", "user": "in" } }],
            "current-context": "in",
        }))?;
        let mut config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
        config.proxy_url = None;
        // Trying again is the reducer's business, and watched by its tests.
        config.default_retry = false;
        Ok(Self { client: kube::Client::try_from(config)?, address })
    }

    /// Sends a request and waits for the whole answer.
    pub async fn send(&self, call: &Call) -> Reply {
        let what =
            |why: String| Reply::Failed(format!("{} \"https://{}{}\": {why}", name(call), self.address, call.path));
        match tokio::time::timeout(SILENCE, self.exchange(call)).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) if is_refused(&error) => {
                what(format!("dial tcp {}: connect: connection refused", self.address))
            }
            Ok(Err(error)) => what(format!("{error:#}")),
            Err(_) => what("http2: client connection lost".to_string()),
        }
    }

    async fn exchange(&self, call: &Call) -> Result<Reply> {
        let uri = if call.query.is_empty() { call.path.clone() } else { format!("{}?{}", call.path, call.query) };
        let mut request = Request::builder().method(call.method).uri(uri).header(header::USER_AGENT, USER_AGENT);
        if !call.content_type.is_empty() {
            request = request.header(header::CONTENT_TYPE, call.content_type);
        }
        let bytes = call.body.as_ref().map(serde_json::to_vec).transpose()?.unwrap_or_default();
        let response = self.client.send(request.body(Body::from(bytes))?).await?;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await?.to_bytes();
        Ok(Reply::Answer { code, body: serde_json::from_slice(&bytes).unwrap_or_default() })
    }
}

/// The verb as Go's errors write it.
fn name(call: &Call) -> &'static str {
    match call.method {
        "GET" => "Get",
        "PUT" => "Put",
        "POST" => "Post",
        _ => "Patch",
    }
}

fn is_refused(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
    })
}
