//! What a case can do to the cluster and ask of it.

use std::path::PathBuf;
use std::process::Output;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};

use super::audit::Log;
use super::client::Client;
use super::control_plane::{Stop, listed_servers};
use super::longhorn::{self, Volume};
use super::metrics;
use super::net::{NODES, address};
use super::objects::{self, CASE_LABEL};
use super::proxy::Tunnel;
use super::wait::{self, Limit};
use super::{Cluster, node_index, node_name, now_micros};

/// Who talks to the API, and where.
impl Cluster {
    /// A kubeconfig of user `admin` with one context per server, `server-1` (the current one) to `server-3`.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.pki.kubeconfig("admin")
    }

    /// The same for another user: `nobody` has no rights, `harness` is left out of the audit log.
    pub fn kubeconfig_of(&self, user: &str) -> PathBuf {
        self.pki.kubeconfig(user)
    }

    /// A kubeconfig with a fresh token of a service account, with the same contexts.
    pub async fn kubeconfig_for(&self, namespace: &str, account: &str) -> Result<PathBuf> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let request = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": { "expirationSeconds": 86400 } });
        let answer = self.client(1).await?.create(&path, &request).await?;
        let token = answer["status"]["token"].as_str().context("no token in the answer")?;
        self.pki.token_kubeconfig(&format!("{namespace}-{account}"), token)
    }

    /// `https://10.77.0.i:6443`.
    pub fn server_addr(&self, i: usize) -> String {
        format!("https://{}:6443", address(i))
    }

    /// The harness's own client at server `i`: not in the audit log.
    pub async fn client(&self, i: usize) -> Result<Client> {
        self.plane.client(i).await
    }

    /// A client of user `admin` at server `i`: what it does is in the audit log.
    pub async fn admin(&self, i: usize, agent: &str) -> Result<Client> {
        Client::for_context(&self.kubeconfig_path(), Some(&format!("server-{i}")), agent).await
    }

    /// The first server that answers, for cases that take servers down.
    pub async fn any_client(&self) -> Result<Client> {
        wait::until(wait::SERVER_READY, "any API server to answer", || async {
            for i in (1..=NODES).filter(|i| self.plane.server_runs(*i)) {
                let client = self.client(i).await?;
                if client
                    .call(http::Method::GET, "/readyz", &[], None)
                    .await
                    .is_ok_and(|answer| answer.status.is_success())
                {
                    return Ok(Some(client));
                }
            }
            Ok(None)
        })
        .await
    }

    /// The real kubectl of the cluster's version.
    pub fn kubectl(&self) -> PathBuf {
        self.binaries.kubernetes("kubectl")
    }

    /// The program under test.
    pub fn maint_binary(&self) -> Result<PathBuf> {
        if let Some(path) = option_env!("CARGO_BIN_EXE_maint") {
            return Ok(path.into());
        }
        let own = std::env::current_exe()?;
        own.ancestors()
            .map(|folder| folder.join("maint"))
            .find(|path| path.is_file())
            .context("the program `maint` is not built")
    }

    /// Runs a program inside the hub's namespace, from where all API servers can be reached; killed at the limit.
    pub async fn run_in_hub(&self, command: std::process::Command, limit: Limit) -> Result<Output> {
        let what = format!("{command:?}");
        let mut command = tokio::process::Command::from(command);
        command.kill_on_drop(true).stdin(std::process::Stdio::null());
        // On one of the hub's own threads, whose namespace the child inherits.
        let running =
            self.hub.handle().spawn(async move { tokio::time::timeout(limit.length, command.output()).await });
        match running.await? {
            Ok(output) => output.with_context(|| format!("cannot run {what}")),
            Err(_) => {
                Err(anyhow!("limit `{}` of {} s reached while waiting for {what}", limit.name, limit.length.as_secs()))
            }
        }
    }

    /// Starts a program inside the hub's namespace; it is killed when the value is dropped.
    pub async fn spawn_in_hub(&self, command: std::process::Command) -> Result<tokio::process::Child> {
        let mut command = tokio::process::Command::from(command);
        command.kill_on_drop(true);
        Ok(self.hub.handle().spawn(async move { command.spawn() }).await??)
    }

    /// The instant from which `audit_since` reads.
    pub fn audit_mark(&self) -> String {
        now_micros()
    }

    /// What was asked of the three API servers since the mark.
    pub fn audit_since(&self, mark: &str) -> Result<Log> {
        Log::read(self.run.path(), mark)
    }

    /// The file of the hub's namespace, to enter it by `nsenter --net=`.
    pub fn hub_path(&self) -> String {
        self.network.path("hub")
    }

    /// The scratch folder of the run.
    pub fn folder(&self) -> &std::path::Path {
        self.run.path()
    }
}

/// What is broken and mended.
impl Cluster {
    /// Breaks the tunnel between API server `i` and a node.
    pub fn cut(&self, i: usize, node: &str, how: Tunnel) -> Result<()> {
        self.plane.proxy(i).set(node_index(node)?, how);
        Ok(())
    }

    /// Makes the tunnel whole.
    pub fn mend(&self, i: usize, node: &str) -> Result<()> {
        self.cut(i, node, Tunnel::Pass)
    }

    /// The state of the tunnel between API server `i` and node `j`.
    pub fn tunnel(&self, i: usize, j: usize) -> Tunnel {
        self.plane.proxy(i).state(j)
    }

    /// How many connections API server `i` has asked for to a node so far.
    pub fn connects(&self, i: usize, node: &str) -> Result<u64> {
        Ok(self.plane.proxy(i).connects(node_index(node)?))
    }

    /// Whether a node's API server goes down with it (as on a real machine; the default) or lives on.
    pub fn servers_follow(&self, yes: bool) {
        self.servers_follow.store(yes, Ordering::Relaxed);
    }

    /// The node is gone at once; its pods are frozen.
    pub async fn power_off(&self, node: &str) -> Result<()> {
        let i = node_index(node)?;
        self.kubelets[i - 1].down();
        if self.servers_follow.load(Ordering::Relaxed) {
            self.stop_apiserver(i, Stop::Kill).await?;
        }
        Ok(())
    }

    /// The node boots: new boot ID, containers started again. Returns before it is Ready.
    pub async fn power_on(&self, node: &str) -> Result<()> {
        self.switch_on(node, false)
    }

    /// The node is back without having booted, as after a network failure.
    pub async fn reconnect(&self, node: &str) -> Result<()> {
        self.switch_on(node, true)
    }

    fn switch_on(&self, node: &str, keep_boot_id: bool) -> Result<()> {
        let i = node_index(node)?;
        if !self.plane.server_runs(i) {
            self.plane.start_server(i)?;
        }
        self.kubelets[i - 1].up(keep_boot_id);
        Ok(())
    }

    /// Off for so many seconds, then on.
    pub async fn reboot(&self, node: &str, seconds: u64) -> Result<()> {
        self.power_off(node).await?;
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        self.power_on(node).await
    }

    /// What a node's `/healthz` answers.
    pub fn set_kubelet_healthy(&self, node: &str, healthy: bool) -> Result<()> {
        self.kubelets[node_index(node)? - 1].set_healthy(healthy);
        Ok(())
    }

    /// The boot ID that a node reports or will report.
    pub fn boot_id(&self, node: &str) -> Result<String> {
        Ok(self.kubelets[node_index(node)? - 1].boot_id())
    }

    /// Ends API server `i`; `start_apiserver` starts it again.
    pub async fn stop_apiserver(&self, i: usize, how: Stop) -> Result<()> {
        let plane = self.plane.clone();
        // It may take seconds, and the hub's threads have other work.
        Ok(tokio::task::spawn_blocking(move || plane.stop_server(i, how)).await?)
    }

    /// Starts API server `i`. Returns before it answers.
    pub fn start_apiserver(&self, i: usize) -> Result<()> {
        self.plane.start_server(i)
    }

    /// Freezes API server `i`: it takes connections and answers nothing.
    pub fn freeze_apiserver(&self, i: usize) {
        self.plane.freeze_server(i, true);
    }

    /// Lets a frozen API server go on.
    pub fn thaw_apiserver(&self, i: usize) {
        self.plane.freeze_server(i, false);
    }

    /// Whether the process of API server `i` is there, frozen or not.
    pub fn apiserver_runs(&self, i: usize) -> bool {
        self.plane.server_runs(i)
    }

    /// Puts a Longhorn volume into a state.
    pub async fn set_volume(&self, volume: &str, state: Volume) -> Result<()> {
        self.longhorn.set(&self.any_client().await?, volume, state).await
    }

    /// Changes a Longhorn setting.
    pub async fn set_longhorn_setting(&self, name: &str, value: &str) -> Result<()> {
        self.longhorn.set_setting(&self.any_client().await?, name, value).await
    }
}

/// What cases build and wait for.
impl Cluster {
    /// A namespace that is emptied and deleted by the next reset.
    pub async fn namespace(&self, name: &str) -> Result<()> {
        let client = self.any_client().await?;
        let body = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": { CASE_LABEL: "true" } } });
        wait::until(wait::CONTROLLERS, format!("namespace {name}"), || async {
            client.create("/api/v1/namespaces", &body).await.map(Some)
        })
        .await?;
        let account = format!("/api/v1/namespaces/{name}/serviceaccounts/default");
        wait::until(wait::CONTROLLERS, format!("service account {name}/default"), || async {
            client.find(&account).await
        })
        .await?;
        Ok(())
    }

    /// A Deployment of a case; `annotations` steer its pods (see `kubelet/pods.rs`). Waits until all pods are ready.
    pub async fn deployment(&self, namespace: &str, name: &str, replicas: u32, annotations: &Value) -> Result<()> {
        let client = self.any_client().await?;
        let labels = json!({ "app": name });
        let body = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name, "namespace": namespace, "labels": labels },
            "spec": { "replicas": replicas, "selector": { "matchLabels": labels }, "template": {
                "metadata": { "labels": labels, "annotations": annotations },
                "spec": { "containers": [{ "name": "main", "image": "test" }] } } },
        });
        client.create(&format!("/apis/apps/v1/namespaces/{namespace}/deployments"), &body).await?;
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}");
        wait::until(wait::CONTROLLERS, format!("{replicas} ready pods of {namespace}/{name}"), || async {
            Ok((client.get(&path).await?["status"]["readyReplicas"] == replicas).then_some(()))
        })
        .await
    }

    /// Waits until a node is Ready, has this boot ID (if one is given) and no taint of the node controller.
    pub async fn wait_node_back(&self, node: &str, boot_id: Option<&str>) -> Result<()> {
        let client = self.any_client().await?;
        wait::until(wait::NODE_STATE, format!("{node} to be Ready and untainted"), || async {
            let object = client.get(&format!("/api/v1/nodes/{node}")).await?;
            let booted = boot_id.is_none_or(|id| object["status"]["nodeInfo"]["bootID"] == id);
            let tainted =
                objects::taints(&object).iter().any(|taint| !taint.starts_with("node.kubernetes.io/unschedulable"));
            Ok((booted && objects::is_true(&object, "Ready") && !tainted).then_some(()))
        })
        .await
    }

    /// Waits until all servers answer for every kind and are listed.
    pub async fn wait_servers(&self) -> Result<()> {
        for i in 1..=NODES {
            let client = self.client(i).await?;
            // Each server starts the storage of a CRD for itself, when it is first asked, and says 429 meanwhile.
            for path in longhorn::paths().chain([metrics::PODS_PATH.to_string(), "/api/v1/nodes".to_string()]) {
                wait::until(wait::SERVER_READY, format!("{path} of API server {i}"), || async {
                    client.get(&path).await.map(Some)
                })
                .await?;
            }
        }
        let client = self.client(1).await?;
        wait::until(wait::CONTROL_PLANE, "three API servers in EndpointSlice default/kubernetes", || async {
            Ok((listed_servers(&client).await?.len() == NODES).then_some(()))
        })
        .await
    }

    /// The node objects, in order.
    pub async fn nodes(&self) -> Result<Vec<Value>> {
        let client = self.any_client().await?;
        let mut nodes = Vec::new();
        for i in 1..=NODES {
            nodes.push(client.get(&format!("/api/v1/nodes/{}", node_name(i))).await?);
        }
        Ok(nodes)
    }
}
