//! Network namespaces of one run: `hub` (etcd, controllers, tests) and one per node, joined by a bridge, closed to the outside.

use std::fs::File;
use std::future::Future;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result, anyhow, bail};
use nix::sched::{CloneFlags, setns};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// How many nodes there are; each is a server too.
pub const NODES: usize = 3;
/// The address of the hub: etcd and, as their source, the tests.
pub const HUB: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 254);

/// The address of node and API server `i`, counted from 1.
pub fn address(i: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, u8::try_from(i).unwrap_or(u8::MAX))
}

/// The namespaces of one run, deleted on drop.
pub struct Network {
    prefix: String,
}

impl Network {
    /// Makes the namespaces. The prefix keeps runs apart that use the same addresses.
    pub fn create(prefix: &str) -> Result<Self> {
        let network = Self { prefix: prefix.to_string() };
        network.namespace("hub")?;
        let hub = network.name("hub");
        ip(&["-n", &hub, "link", "add", "br0", "type", "bridge"])?;
        ip(&["-n", &hub, "addr", "add", &format!("{HUB}/24"), "dev", "br0"])?;
        ip(&["-n", &hub, "link", "set", "br0", "up"])?;
        for i in 1..=NODES {
            let (short, port) = (format!("n{i}"), format!("vn{i}"));
            network.namespace(&short)?;
            let node = network.name(&short);
            ip(&["-n", &hub, "link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", &node])?;
            ip(&["-n", &hub, "link", "set", &port, "master", "br0", "up"])?;
            ip(&["-n", &node, "addr", "add", &format!("{}/24", address(i)), "dev", "eth0"])?;
            ip(&["-n", &node, "link", "set", "eth0", "up"])?;
            ip(&["-n", &node, "route", "add", "default", "via", &HUB.to_string()])?;
        }
        Ok(network)
    }

    /// The full name of `hub`, `n1`, ...
    pub fn name(&self, short: &str) -> String {
        format!("{}{short}", self.prefix)
    }

    /// The file to enter it by.
    pub fn path(&self, short: &str) -> String {
        path_of(&self.name(short))
    }

    fn namespace(&self, short: &str) -> Result<()> {
        let name = self.name(short);
        ip(&["netns", "add", &name])?;
        ip(&["-n", &name, "link", "set", "lo", "up"])
    }

    /// Deletes all namespaces that start with this prefix; the links go with them.
    pub fn delete_all(prefix: &str) {
        let Ok(entries) = std::fs::read_dir("/run/netns") else { return };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(prefix) {
                ip(&["netns", "del", &name]).ok();
            }
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        Self::delete_all(&self.prefix);
    }
}

fn path_of(name: &str) -> String {
    format!("/run/netns/{name}")
}

fn ip(arguments: &[&str]) -> Result<()> {
    let output = Command::new("ip").args(arguments).output().context("cannot run `ip` (iproute2)")?;
    if !output.status.success() {
        bail!("`ip {}` failed: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// A tokio runtime whose threads all live in one namespace, so that everything it dials and binds is there.
pub struct Runtime {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Runtime {
    /// Enters the namespace in a fresh thread; the runtime's workers, started by that thread, inherit it.
    pub fn enter(namespace: &str, workers: usize) -> Result<Self> {
        let path = path_of(namespace);
        let file = File::open(&path).with_context(|| format!("cannot open network namespace {path}"))?;
        let (ready_sender, ready) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name(namespace.to_string()).spawn(move || {
            let runtime =
                setns(&file, CloneFlags::CLONE_NEWNET).map_err(|error| anyhow!("setns: {error}")).and_then(|()| {
                    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build()?)
                });
            match runtime {
                Ok(runtime) => {
                    ready_sender.send(Ok(runtime.handle().clone())).ok();
                    runtime.block_on(stopped).ok();
                    runtime.shutdown_background();
                }
                Err(error) => {
                    ready_sender.send(Err(error)).ok();
                }
            }
        })?;
        let handle = ready
            .recv()
            .context("the namespace thread ended early")?
            .with_context(|| format!("cannot enter {path}"))?;
        Ok(Self { handle, stop: Some(stop), thread: Some(thread) })
    }

    /// Where to spawn. Never `block_on` it from outside: that future would dial from the caller's namespace.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Runs a future inside and waits for it. Must not be called from one of the runtime's own threads.
    pub fn run<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> Result<T> {
        let (sender, receiver) = mpsc::channel();
        let task = self.handle.spawn(async move {
            sender.send(future.await).ok();
        });
        receiver.recv().map_err(|_| match task.is_finished() {
            true => anyhow!("the task panicked; its message is above"),
            false => anyhow!("the task was dropped"),
        })
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            stop.send(()).ok();
        }
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}
