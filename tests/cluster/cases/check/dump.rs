//! `maint check --from` of what kubectl saved of this very cluster says what `maint check` says of it.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::super::{Case, case};
use super::{check, maint, row_done};
use crate::harness::longhorn::Volume;
use crate::harness::{Cluster, wait};

/// What a person saves, one file each.
const KINDS: [&str; 25] = [
    "nodes",
    "leases",
    "daemonsets",
    "services",
    "endpointslices",
    "pods",
    "deployments",
    "statefulsets",
    "replicasets",
    "hpa",
    "pdb",
    "jobs",
    "crd",
    "volumes.longhorn.io",
    "replicas.longhorn.io",
    "engines.longhorn.io",
    "settings.longhorn.io",
    "nodes.longhorn.io",
    "instancemanagers.longhorn.io",
    "volumeattachments.longhorn.io",
    "backups.longhorn.io",
    "systembackups.longhorn.io",
    "systemrestores.longhorn.io",
    "volumeattachments",
    "configmaps",
];

/// These need the API servers' own answers.
const LIVE_ONLY: [&str; 2] = ["control-plane", "kubelet-reachability"];

pub fn cases() -> Vec<Case> {
    vec![
        case("check::dump_of_a_healthy_cluster", |cluster| same(cluster, None)),
        case("check::dump_with_a_volume_rebuilding", |cluster| same(cluster, Some(Volume::Rebuilding(3)))),
    ]
}

async fn same(cluster: Arc<Cluster>, home: Option<Volume>) -> Result<()> {
    if let Some(state) = home {
        cluster.set_volume("pvc-home", state).await?;
    }
    let live = check(&cluster, &cluster.kubeconfig_path(), &[]).await?;
    let wanted_exit = if home.is_some() { 3 } else { 0 };
    ensure!(live.exit == wanted_exit, "live: exit {}:\n{}", live.exit, live.text);
    for format in ["yaml", "json"] {
        let folder = cluster.folder().join(format!("dump-{format}"));
        save(&cluster, &folder, format).await?;
        // A dump needs no cluster: this kubeconfig leads nowhere.
        let path = folder.display().to_string();
        let dump = check(&cluster, Path::new("/nowhere"), &["--from", &path, "--complete"]).await?;
        ensure!(dump.exit == wanted_exit, "{format}: exit {}:\n{}", dump.exit, dump.text);
        ensure!(dump.report["source"]["kind"] == "dump" && live.report["source"]["kind"] == "live", "sources");
        compare(&live.report, &dump.report).with_context(|| format!("{format}:\n{}\n{}", live.text, dump.text))?;
        // Nothing is attached here, and kubectl writes an empty list for "none" and for "forbidden" alike.
        let doubtful = check(&cluster, Path::new("/nowhere"), &["--from", &path]).await?;
        ensure!(doubtful.exit == if wanted_exit == 0 { 4 } else { wanted_exit }, "{format}: exit {}", doubtful.exit);
        ensure!(
            doubtful.gates("unknown").contains(&"attachments") && doubtful.text.contains("--complete"),
            "{}",
            doubtful.text
        );
        std::fs::remove_dir_all(&folder)?;
        row_done();
    }
    let missing = maint(&cluster, Path::new("/nowhere"), &["check", "--from", "/nowhere"]).await?;
    ensure!(missing.exit == 1, "no dump: {missing:?}");
    Ok(())
}

/// Saves each kind with the real kubectl.
async fn save(cluster: &Cluster, folder: &Path, format: &str) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    for kind in KINDS {
        let mut command = Command::new(cluster.kubectl());
        command.args(["get", kind, "-A", "-o", format]).env("KUBECONFIG", cluster.kubeconfig_path());
        let output = cluster.run_in_hub(command, wait::SHORT).await?;
        ensure!(output.status.success(), "kubectl get {kind}: {output:?}");
        std::fs::write(folder.join(format!("{kind}.{format}")), output.stdout)?;
    }
    Ok(())
}

/// All that does not depend on when it was asked.
fn told(finding: &Value) -> Value {
    let mut finding = finding.clone();
    if let Some(fields) = finding.as_object_mut() {
        fields.remove("observedAt");
    }
    finding
}

fn compare(live: &Value, dump: &Value) -> Result<()> {
    let nodes = |report: &Value| report["nodes"].as_array().cloned().unwrap_or_default();
    let (live, dump) = (nodes(live), nodes(dump));
    ensure!(!live.is_empty() && live.len() == dump.len(), "{} nodes live, {} in the dump", live.len(), dump.len());
    for (live, dump) in live.iter().zip(&dump) {
        ensure!(
            live["name"] == dump["name"] && live["verdict"] == dump["verdict"],
            "{} {}",
            live["name"],
            dump["name"]
        );
        let findings = |node: &Value| node["findings"].as_array().cloned().unwrap_or_default();
        let (of_live, of_dump) = (findings(live), findings(dump));
        ensure!(of_live.len() == of_dump.len(), "{} findings live, {} in the dump", of_live.len(), of_dump.len());
        for (live, dump) in of_live.iter().zip(&of_dump) {
            if LIVE_ONLY.iter().any(|gate| live["id"] == *gate) {
                ensure!(live["id"] == dump["id"] && dump["status"] != "block", "{dump}");
                continue;
            }
            ensure!(told(live) == told(dump), "live {live}\ndump {dump}");
        }
    }
    Ok(())
}
