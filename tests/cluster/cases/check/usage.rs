//! What cannot be asked at all is one clear error: what is wrong, and what helps.

use std::sync::Arc;

use anyhow::{Result, ensure};

use super::super::{Case, case};
use super::{maint, row_done};
use crate::harness::Cluster;
use crate::harness::control_plane::Stop;

pub fn cases() -> Vec<Case> {
    vec![case("check::one_clear_error", one_clear_error)]
}

async fn one_clear_error(cluster: Arc<Cluster>) -> Result<()> {
    let (admin, nobody) = (cluster.kubeconfig_path(), cluster.kubeconfig_of("nobody"));
    cluster.stop_apiserver(3, Stop::Kill).await?;
    let rows: &[(&str, &std::path::Path, &[&str], i32, &[&str])] = &[
        (
            "unknown node",
            &admin,
            &["check", "workr2"],
            2,
            &["error: unknown node `workr2`, did you mean `worker2`?; known: worker1, worker2, worker3\n"],
        ),
        (
            "unknown context",
            &admin,
            &["check", "--context", "server-9"],
            1,
            &["no context `server-9`", "server-1, server-2, server-3", "\n  what helps: "],
        ),
        (
            "server of the context is down",
            &admin,
            &["check", "worker2", "--context", "server-3"],
            1,
            &["https://10.77.0.3:6443/ does not answer", "refused", "\n  what helps: "],
        ),
        (
            "the same for the matrix",
            &admin,
            &["matrix", "--context", "server-3"],
            1,
            &["https://10.77.0.3:6443/ does not answer", "\n  what helps: "],
        ),
        ("no rights, all nodes", &nobody, &["check"], 4, &["error: cannot tell which nodes there are (forbidden): "]),
    ];
    for (row, kubeconfig, arguments, exit, parts) in rows {
        let run = maint(&cluster, kubeconfig, arguments).await?;
        ensure!(run.exit == *exit && run.stdout.is_empty(), "{row}: {run:?}");
        ensure!(run.stderr.starts_with("error: "), "{row}: {run:?}");
        for part in *parts {
            ensure!(run.stderr.contains(part), "{row}: no `{part}` in {run:?}");
        }
        row_done();
    }
    // Another server of the same cluster can be asked, and it is told that one is down.
    let run = maint(&cluster, &admin, &["matrix"]).await?;
    ensure!(run.exit == 3 && run.stdout.contains("worker3"), "{run:?}");
    let run = maint(&cluster, &nobody, &["matrix"]).await?;
    ensure!(run.exit == 4, "without rights nothing is whole, and nothing is broken: {run:?}");
    Ok(())
}
