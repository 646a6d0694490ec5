//! The test cluster for a person: `up` brings it up and stays, the other verbs speak to the running one.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unused_self,
    clippy::unused_async,
    reason = "real processes need real time; a harness talks; its verbs read alike"
)]

#[allow(dead_code, reason = "shared with the tests, which use the rest")]
#[path = "harness/mod.rs"]
mod harness;
#[path = "kured/mod.rs"]
mod kured;

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixListener;
use tokio::sync::Notify;

use harness::control_plane::Stop;
use harness::etcd_voter::Voter;
use harness::longhorn::{VOLUMES, Volume};
use harness::net::NODES;
use harness::proxy::Tunnel;
use harness::{Cluster, node_index, node_name, objects};

const HELP: &str = "\
verbs, to be given to a second `cargo run --features cluster --example cluster --`:
  status                                  nodes, servers, tunnels
  cut SERVER NODE [drop|keep|hang]        break a tunnel: drop live connections (default), keep them, or hang
  mend [SERVER NODE]                      make one tunnel or all of them whole
  reboot NODE [SECONDS]                   off, and on again after 8 s
  power-off NODE | power-on NODE          the same in two steps
  healthz NODE ok|bad                     what its kubelet says of itself
  stop-api SERVER [kill|term] | start-api SERVER
  freeze-api SERVER | thaw-api SERVER     it takes connections and answers nothing
  servers-follow yes|no                   whether a node's API server goes down with it (yes)
  volume NAME healthy|rebuilding|degraded|single|faulted [NODE]
  longhorn-setting NAME VALUE
  metrics on|off                          the autoscaler's metrics
  voter NODE member|learner|silent        the EtcdIsVoter condition
  reset                                   everything back to healthy
  down                                    end the cluster";

fn main() -> ExitCode {
    if let Some(code) = kured::hidden_mode() {
        return code;
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = match words.first().map(String::as_str) {
        Some("up") => up(),
        None | Some("help" | "-h" | "--help") => {
            println!(
                "up                                        bring a cluster up and stay until Ctrl-C or `down`\n{HELP}"
            );
            Ok(())
        }
        Some(_) => send(&words.join(" ")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn up() -> Result<()> {
    let cluster = Cluster::up()?;
    let kubeconfig = cluster.kubeconfig_path();
    let enter = format!("nsenter --net={}", cluster.hub_path());
    println!("nodes       {}", (1..=NODES).map(node_name).collect::<Vec<_>>().join(" "));
    println!("volumes     {}", VOLUMES.map(|(name, _)| name).join(" "));
    println!("kubeconfig  {}  (contexts server-1 to server-{NODES})", kubeconfig.display());
    println!("logs        {}", cluster.folder().join("logs").display());
    println!("enter       {enter} env KUBECONFIG={} bash", kubeconfig.display());
    println!("kubectl     {enter} {} --kubeconfig={} get nodes", cluster.kubectl().display(), kubeconfig.display());
    println!("{HELP}");
    println!("Ctrl-C or `down` ends it.");
    let down = Arc::new(Notify::new());
    let (serving, asked) = (cluster.clone(), down.clone());
    cluster.run_inside(async move {
        let listener = UnixListener::bind(serving.folder().join("control.sock"))?;
        tokio::spawn(serve(listener, serving, asked));
        Ok::<_, std::io::Error>(())
    })??;
    cluster.run_inside(async move { down.notified().await })?;
    cluster.shutdown();
    Ok(())
}

/// One line in, the answer's lines out; the first word of the last one is `ok` or `error`.
async fn serve(listener: UnixListener, cluster: Arc<Cluster>, down: Arc<Notify>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let (cluster, down) = (cluster.clone(), down.clone());
        tokio::spawn(async move {
            let (reader, mut writer) = stream.split();
            let mut line = String::new();
            if tokio::io::BufReader::new(reader).read_line(&mut line).await.is_err() {
                return;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            if words == ["down"] {
                writer.write_all(b"ok\n").await.ok();
                return down.notify_one();
            }
            let answer = match obey(&cluster, &words).await {
                Ok(text) if text.is_empty() => "ok\n".to_string(),
                Ok(text) => format!("{text}\nok\n"),
                Err(error) => format!("error: {error:#}\n"),
            };
            writer.write_all(answer.as_bytes()).await.ok();
        });
    }
}

async fn obey(cluster: &Cluster, words: &[&str]) -> Result<String> {
    match words {
        ["status"] => return status(cluster).await,
        ["cut", server, node] => cluster.cut(server_index(server)?, node, Tunnel::Cut)?,
        ["cut", server, node, how] => cluster.cut(server_index(server)?, node, tunnel(how)?)?,
        ["mend"] => {
            for server in 1..=NODES {
                for node in 1..=NODES {
                    cluster.mend(server, &node_name(node))?;
                }
            }
        }
        ["mend", server, node] => cluster.mend(server_index(server)?, node)?,
        ["reboot", node] => cluster.reboot(node, 8).await?,
        ["reboot", node, seconds] => cluster.reboot(node, seconds.parse().context("SECONDS is no number")?).await?,
        ["power-off", node] => cluster.power_off(node).await?,
        ["power-on", node] => cluster.power_on(node).await?,
        ["healthz", node, how] => cluster.set_kubelet_healthy(node, choice(how, &[("ok", true), ("bad", false)])?)?,
        ["stop-api", server] => cluster.stop_apiserver(server_index(server)?, Stop::Kill).await?,
        ["stop-api", server, how] => {
            let how = choice(how, &[("kill", Stop::Kill), ("term", Stop::Term)])?;
            cluster.stop_apiserver(server_index(server)?, how).await?;
        }
        ["start-api", server] => cluster.start_apiserver(server_index(server)?)?,
        ["freeze-api", server] => cluster.freeze_apiserver(server_index(server)?),
        ["thaw-api", server] => cluster.thaw_apiserver(server_index(server)?),
        ["servers-follow", how] => cluster.servers_follow(choice(how, &[("yes", true), ("no", false)])?),
        ["volume", name, state] => cluster.set_volume(name, volume(state, 3)?).await?,
        ["volume", name, state, node] => cluster.set_volume(name, volume(state, node_index(node)?)?).await?,
        ["longhorn-setting", name, value] => cluster.set_longhorn_setting(name, value).await?,
        ["metrics", how] => cluster.metrics.set(choice(how, &[("on", true), ("off", false)])?),
        ["voter", node, how] => {
            let states = [("member", Voter::Member), ("learner", Voter::Learner), ("silent", Voter::Silent)];
            cluster.voters.set(node_index(node)?, choice(how, &states)?);
        }
        ["reset"] => cluster.reset().await?,
        _ => bail!("no such verb, or words are missing\n{HELP}"),
    }
    Ok(String::new())
}

async fn status(cluster: &Cluster) -> Result<String> {
    let mut lines = Vec::new();
    for node in cluster.nodes().await? {
        let name = node["metadata"]["name"].as_str().unwrap_or("");
        let ready =
            objects::condition(&node, "Ready").and_then(|condition| condition["status"].as_str()).unwrap_or("?");
        let cordon = if node["spec"]["unschedulable"] == true { "cordoned" } else { "" };
        let boot = node["status"]["nodeInfo"]["bootID"].as_str().unwrap_or("");
        lines.push(format!("{name}  Ready={ready}  boot {boot}  {cordon} {}", objects::taints(&node).join(" ")));
    }
    for i in 1..=NODES {
        let row: Vec<_> =
            (1..=NODES).map(|node| format!("{}={:?}", node_name(node), cluster.tunnel(i, node))).collect();
        let runs = if cluster.apiserver_runs(i) { "runs" } else { "stopped" };
        lines.push(format!("server {i}  {runs}  {}", row.join("  ")));
    }
    Ok(lines.join("\n"))
}

fn server_index(word: &str) -> Result<usize> {
    word.parse()
        .ok()
        .filter(|i| (1..=NODES).contains(i))
        .ok_or_else(|| anyhow!("no API server {word}; there are 1 to {NODES}"))
}

fn tunnel(word: &str) -> Result<Tunnel> {
    choice(word, &[("drop", Tunnel::Cut), ("keep", Tunnel::CutKeepingLive), ("hang", Tunnel::Hang)])
}

fn volume(word: &str, node: usize) -> Result<Volume> {
    choice(
        word,
        &[
            ("healthy", Volume::Healthy),
            ("rebuilding", Volume::Rebuilding(node)),
            ("degraded", Volume::Waiting(node)),
            ("single", Volume::SingleReplica(node)),
            ("faulted", Volume::Faulted),
        ],
    )
}

fn choice<T: Copy>(word: &str, choices: &[(&str, T)]) -> Result<T> {
    let found = choices.iter().find(|(name, _)| *name == word).map(|(_, value)| *value);
    found.ok_or_else(|| {
        anyhow!("{word} is none of {}", choices.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "))
    })
}

/// Sends a verb to the one cluster that is up.
fn send(line: &str) -> Result<()> {
    let sockets = harness::run::live_sockets(&harness::target_folder());
    let socket = match sockets.as_slice() {
        [] => bail!("no cluster is up; start one with `up` in another terminal"),
        [socket] => socket,
        _ => bail!("{} clusters are up; end all but one", sockets.len()),
    };
    let mut stream = UnixStream::connect(socket).with_context(|| format!("cannot reach {}", socket.display()))?;
    writeln!(stream, "{line}")?;
    let mut answered = false;
    for line in BufReader::new(stream).lines() {
        let line = line?;
        answered = true;
        if let Some(error) = line.strip_prefix("error: ") {
            bail!("{error}");
        }
        println!("{line}");
    }
    if answered { Ok(()) } else { bail!("the cluster gave no answer") }
}
