//! `maint serve`: the service. One replica; several of them elect a leader.

use std::net::SocketAddr;

use clap::Args;
use maint_engine::client::install_crypto_provider;
use maint_engine::runtime::Env;
use maint_engine::serve::{LiveOptions, ReplicaEnd, serve};

use super::{Common, Exit};

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub struct Serve {
    /// Address of /healthz, /readyz and /status
    #[arg(long, default_value = "0.0.0.0:8080", value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// Name of our own pod, or another name for this process
    #[arg(long, env = "POD_NAME", default_value = "maint", value_name = "NAME")]
    pod_name: String,
    /// The node that our own pod runs on
    #[arg(long, env = "NODE_NAME", value_name = "NODE")]
    node_name: Option<String>,
}

impl Serve {
    /// Runs until the lease is lost, or a signal asks it to stop.
    pub async fn run(&self, common: &Common) -> anyhow::Result<Exit> {
        install_crypto_provider();
        let settings = common.settings()?;
        let (env, owner) = Env::production();
        let options = LiveOptions {
            access: common.access(),
            listen: self.listen,
            pod: self.pod_name.clone(),
            node: self.node_name.clone(),
        };
        match serve(env, owner, settings, options, stop_signal()).await? {
            ReplicaEnd::Stopped(_) => Ok(Exit::Fine),
            end => anyhow::bail!("this replica must end, and whoever runs it starts it anew: {end:?}"),
        }
    }
}

/// SIGTERM, as the kubelet sends it, or Ctrl-C.
async fn stop_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        // Without the handler the signal ends the process at once, which every part of maint survives.
        return std::future::pending().await;
    };
    tokio::select! {
        biased;
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}
