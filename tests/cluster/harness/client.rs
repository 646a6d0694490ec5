//! A thin JSON client over `kube::Client`: one API server, one identity, raw answers where a case needs them.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use http::{HeaderMap, Method, Request, StatusCode, Version, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

/// A whole answer of an API server.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub version: Version,
    pub headers: HeaderMap,
    pub body: String,
}

impl Answer {
    /// The `message` of a Status, or the raw text.
    pub fn message(&self) -> String {
        let status: Option<Value> = serde_json::from_str(&self.body).ok();
        status
            .and_then(|value| Some(value["message"].as_str()?.to_string()))
            .unwrap_or_else(|| self.body.trim().to_string())
    }

    pub fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.body).with_context(|| format!("no JSON in the answer: {:.200}", self.body))
    }

    /// The API server's own answers carry it, the kubelet's raw ones do not.
    pub fn has_audit_id(&self) -> bool {
        self.headers.contains_key("audit-id")
    }

    pub fn content_type(&self) -> &str {
        self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("")
    }

    fn success(self, what: &str) -> Result<Value> {
        if self.status.is_success() {
            self.json()
        } else {
            bail!("{what}: {} {}", self.status.as_u16(), self.message())
        }
    }
}

/// How a PATCH body is meant.
#[derive(Clone, Copy, Debug)]
pub enum Patch {
    Merge,
    Strategic,
    Json,
}

impl Patch {
    fn content_type(self) -> &'static str {
        match self {
            Patch::Merge => "application/merge-patch+json",
            Patch::Strategic => "application/strategic-merge-patch+json",
            Patch::Json => "application/json-patch+json",
        }
    }
}

/// One identity at one API server.
#[derive(Clone)]
pub struct Client {
    config: kube::Config,
    kube: kube::Client,
    agent: String,
    limit: Duration,
}

impl Client {
    /// From a kubeconfig's current context. Must be made and used inside the run's namespaces.
    pub async fn new(kubeconfig: &Path, agent: &str) -> Result<Self> {
        Self::for_context(kubeconfig, None, agent).await
    }

    /// From a named context, such as `server-2`.
    pub async fn for_context(kubeconfig: &Path, context: Option<&str>, agent: &str) -> Result<Self> {
        let read =
            Kubeconfig::read_from(kubeconfig).with_context(|| format!("cannot read {}", kubeconfig.display()))?;
        let options = KubeConfigOptions { context: context.map(str::to_string), ..KubeConfigOptions::default() };
        let mut config = kube::Config::from_custom_kubeconfig(read, &options).await?;
        // A proxy of the machine's environment knows nothing of these namespaces, and retries would hide answers.
        config.proxy_url = None;
        config.default_retry = false;
        config.connect_timeout = Some(Duration::from_secs(2));
        Self::with_config(config, agent)
    }

    /// Without any identity of its own: `system:anonymous`.
    pub async fn anonymous(kubeconfig: &Path) -> Result<Self> {
        let mut config = Self::for_context(kubeconfig, None, "anonymous").await?.config;
        config.auth_info = AuthInfo::default();
        Self::with_config(config, "anonymous")
    }

    fn with_config(config: kube::Config, agent: &str) -> Result<Self> {
        let kube = kube::Client::try_from(config.clone())?;
        Ok(Self { config, kube, agent: agent.to_string(), limit: Duration::from_secs(10) })
    }

    pub fn with_agent(mut self, agent: &str) -> Self {
        self.agent = agent.to_string();
        self
    }

    pub fn with_limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The client below, for typed work.
    pub fn kube(&self) -> kube::Client {
        self.kube.clone()
    }

    /// One request, whatever comes back. An error means that nothing came back at all.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Answer> {
        let what = format!("{method} {path}");
        let request = self.request(method, path, headers, body)?;
        let exchange = async {
            let response = self.kube.send(request).await?;
            let (parts, body) = response.into_parts();
            let bytes = body.collect().await?.to_bytes();
            let body = String::from_utf8_lossy(&bytes).into_owned();
            Ok::<_, anyhow::Error>(Answer {
                status: parts.status,
                version: parts.version,
                headers: parts.headers,
                body,
            })
        };
        match tokio::time::timeout(self.limit, exchange).await {
            Ok(result) => result.with_context(|| format!("{what}: no answer")),
            Err(_) => Err(anyhow!("{what}: no answer within {} s", self.limit.as_secs_f64())),
        }
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Request<Body>> {
        let mut request = Request::builder().method(method).uri(path).header(header::USER_AGENT, &self.agent);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let bytes = body.map(serde_json::to_vec).transpose()?.unwrap_or_default();
        Ok(request.body(Body::from(bytes))?)
    }

    pub async fn get(&self, path: &str) -> Result<Value> {
        self.call(Method::GET, path, &[], None).await?.success(path)
    }

    /// `None` when it is not there.
    pub async fn find(&self, path: &str) -> Result<Option<Value>> {
        let answer = self.call(Method::GET, path, &[], None).await?;
        if answer.status == StatusCode::NOT_FOUND { Ok(None) } else { answer.success(path).map(Some) }
    }

    /// The items of a list.
    pub async fn list(&self, path: &str) -> Result<Vec<Value>> {
        let mut list = self.get(path).await?;
        Ok(serde_json::from_value(list["items"].take()).unwrap_or_default())
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Answer> {
        self.call(Method::POST, path, &[("content-type", "application/json")], Some(body)).await
    }

    pub async fn create(&self, path: &str, body: &Value) -> Result<Value> {
        self.post(path, body).await?.success(path)
    }

    /// Creates it unless it is there. It looks first: an existing Service with its own address is refused by 422, not 409.
    pub async fn ensure(&self, path: &str, body: &Value) -> Result<()> {
        let name = body["metadata"]["name"].as_str().context("an object without a name")?;
        if self.find(&format!("{path}/{name}")).await?.is_some() {
            return Ok(());
        }
        let answer = self.post(path, body).await?;
        if answer.status == StatusCode::CONFLICT { Ok(()) } else { answer.success(path).map(drop) }
    }

    pub async fn patch(&self, kind: Patch, path: &str, body: &Value) -> Result<Value> {
        self.try_patch(kind, path, body).await?.success(path)
    }

    pub async fn try_patch(&self, kind: Patch, path: &str, body: &Value) -> Result<Answer> {
        self.call(Method::PATCH, path, &[("content-type", kind.content_type())], Some(body)).await
    }

    pub async fn merge(&self, path: &str, body: &Value) -> Result<Value> {
        self.patch(Patch::Merge, path, body).await
    }

    pub async fn strategic(&self, path: &str, body: &Value) -> Result<Value> {
        self.patch(Patch::Strategic, path, body).await
    }

    /// Deletes it if it is there.
    pub async fn delete(&self, path: &str, options: Option<&Value>) -> Result<()> {
        let headers: &[(&str, &str)] = if options.is_some() { &[("content-type", "application/json")] } else { &[] };
        let answer = self.call(Method::DELETE, path, headers, options).await?;
        if answer.status == StatusCode::NOT_FOUND { Ok(()) } else { answer.success(path).map(drop) }
    }

    /// Asks for an eviction; 201 is yes, 429 is a budget's no.
    pub async fn evict(&self, namespace: &str, pod: &str) -> Result<Answer> {
        let body = json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": pod, "namespace": namespace } });
        self.post(&format!("/api/v1/namespaces/{namespace}/pods/{pod}/eviction"), &body).await
    }

    /// The kubelet's health through this API server, over whatever connection it keeps.
    pub async fn plain_healthz(&self, node: &str) -> Result<Answer> {
        self.call(Method::GET, &format!("/api/v1/nodes/{node}/proxy/healthz"), &[], None).await
    }

    /// A path that no kubelet serves, asked so that the API server must dial anew. The kubelet's raw answer closes the
    /// connection without saying so beforehand, so it has one of its own: a pooled one would fail the next request.
    pub async fn fresh_dial(&self, node: &str) -> Result<Answer> {
        let mut alone = self.clone();
        alone.kube = kube::Client::try_from(self.config.clone())?;
        let headers = [("connection", "Upgrade"), ("upgrade", "maint-probe")];
        alone.call(Method::GET, &format!("/api/v1/nodes/{node}/proxy/maint-probe"), &headers, None).await
    }

    /// Opens a watch; its answer comes line by line.
    pub async fn watch(&self, path: &str) -> Result<Lines> {
        let request = self.request(Method::GET, path, &[], None)?;
        let response =
            tokio::time::timeout(self.limit, self.kube.send(request)).await.context("no answer to a watch")??;
        if !response.status().is_success() {
            bail!("watch {path}: {}", response.status());
        }
        Ok(Lines { body: response.into_body(), buffer: Vec::new() })
    }
}

/// The events of a watch.
pub struct Lines {
    body: Body,
    buffer: Vec<u8>,
}

impl Lines {
    /// The next event, or `None` at the end of the watch.
    pub async fn next(&mut self) -> Result<Option<Value>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}
