//! What befalls a night by chance, one thing at a time: the service's processes, API servers, nodes, and people.

use std::sync::PoisonError;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::{Person, REPLICAS, Stage, TARGET, cluster, troubles};
use crate::clock::sleep;
use crate::kinds::FaultKind;
use crate::random::Random;
use crate::store::ObjectKey;
use crate::store::http::Cut;
use crate::store::proxy::Cell;
use crate::world::fixture::LONGHORN_NAMESPACE;

/// Those that a plan can have in [`super::Plan::acts`].
pub const ALL: &[FaultKind] = &[
    FaultKind::KillReplica,
    FaultKind::FreezeReplica,
    FaultKind::CutServer,
    FaultKind::DropWatches,
    FaultKind::EndingNamespace,
    FaultKind::UnreadyServer,
    FaultKind::StaleCache,
    FaultKind::Compacted,
    FaultKind::TunnelCut,
    FaultKind::TunnelKept,
    FaultKind::KubeletHangs,
    FaultKind::KubeletSick,
    FaultKind::OtherNodeDown,
    FaultKind::RebootsUnasked,
    FaultKind::BudgetZero,
    FaultKind::VolumeDegraded,
    FaultKind::AutoscalerInert,
    FaultKind::Halts,
    FaultKind::Holds,
];

/// The nodes, and as many API servers.
const NODES: [&str; 3] = [TARGET, "n2", "n3"];

fn one_of<T: Copy>(random: &mut Random, list: &[T]) -> Option<T> {
    list.get(usize::try_from(random.below(list.len() as u64)).unwrap_or(0)).copied()
}

/// Lets one thing after another befall the night until this time.
pub(super) async fn reign(stage: &Stage, random: &mut Random, end: Timestamp) {
    let clock = stage.cluster.clock();
    while clock.now() < end {
        let Some(kind) = one_of(random, &stage.plan.acts) else { return };
        sleep(Duration::from_secs(3 + random.below(35))).await;
        act(stage, kind, random).await;
    }
}

impl Stage {
    /// Takes down that something befell the night, and counts it.
    fn befalls(&self, kind: FaultKind) {
        let now = self.cluster.clock().now();
        self.befell.lock().unwrap_or_else(PoisonError::into_inner).push((now, kind));
        // What alters an answer counts where it does so.
        if kind != FaultKind::CutServer {
            self.cluster.lock().happened(kind);
        }
    }

    /// Changes an object from outside, as whoever owns it would.
    fn edits(&self, key: &ObjectKey, change: impl FnOnce(&mut serde_json::Value)) {
        self.with(|_, inner, _| inner.store.edit(key, change));
    }
}

/// Every act ends what it began.
async fn act(stage: &Stage, kind: FaultKind, random: &mut Random) {
    let client = one_of(random, &REPLICAS).unwrap_or(REPLICAS[0]);
    let server = one_of(random, &[0, 1, 2]).unwrap_or(0);
    let node = one_of(random, &NODES).unwrap_or(TARGET);
    let lasts = Duration::from_secs(3 + random.below(40));
    if kind == FaultKind::RebootsUnasked && stage.with(|world, _, _| world.is_down(TARGET)) {
        return;
    }
    stage.befalls(kind);
    match kind {
        FaultKind::KillReplica => stage.cluster.lock().faults.stop(client),
        FaultKind::FreezeReplica => stage.cluster.lock().faults.freeze(client),
        FaultKind::CutServer => {
            let how = one_of(random, &[Cut::Refuse, Cut::Hang]).unwrap_or_default();
            stage.cluster.cut(server, how);
            sleep(lasts).await;
            stage.cluster.cut(server, Cut::No);
        }
        FaultKind::DropWatches => stage.cluster.drop_watches(server),
        FaultKind::UnreadyServer => {
            ready(stage, server, false);
            sleep(lasts).await;
            ready(stage, server, true);
        }
        FaultKind::StaleCache => {
            stand_still(stage, server, true);
            sleep(lasts).await;
            stand_still(stage, server, false);
        }
        FaultKind::Compacted => {
            stage.with(|_, inner, _| inner.store.compact());
            stage.cluster.drop_watches(server);
        }
        FaultKind::TunnelCut => cell(stage, (server, node), Cell::Cut, lasts).await,
        FaultKind::TunnelKept => cell(stage, (server, node), Cell::CutLiveKept, lasts).await,
        FaultKind::KubeletHangs => cell(stage, (server, node), Cell::Hang, lasts).await,
        FaultKind::KubeletSick => cell(stage, (server, node), Cell::Unhealthy, lasts).await,
        FaultKind::OtherNodeDown => {
            let other = one_of(random, &NODES[1..]).unwrap_or("n2");
            stage.with(|world, inner, now| world.power_off(inner, other, now));
            sleep(lasts + Duration::from_secs(50)).await;
            stage.with(|world, _, now| world.power_on(other, now));
        }
        FaultKind::RebootsUnasked => {
            let down = cluster::pace().reboot;
            stage.with(|world, inner, now| world.reboot(inner, TARGET, down, now));
        }
        FaultKind::Halts | FaultKind::Holds => says(stage, kind, lasts).await,
        _ => workloads(stage, kind, lasts).await,
    }
}

/// What befalls workloads.
async fn workloads(stage: &Stage, kind: FaultKind, lasts: Duration) {
    match kind {
        // It ends once only, and its pod is gone then.
        FaultKind::EndingNamespace => {
            stage.with(|_, inner, now| troubles::leave(inner, now));
            sleep(lasts).await;
            stage.with(|_, inner, now| troubles::relent(inner, now));
        }
        FaultKind::BudgetZero => {
            budget(stage, 0);
            sleep(lasts).await;
            budget(stage, 1);
        }
        FaultKind::VolumeDegraded => {
            let key = ObjectKey::new("longhorn.io", "volumes", LONGHORN_NAMESPACE, "logs");
            stage.edits(&key, |volume| volume["status"]["robustness"] = json!("degraded"));
            sleep(lasts).await;
            stage.edits(&key, |volume| volume["status"]["robustness"] = json!("healthy"));
        }
        FaultKind::AutoscalerInert => {
            let key = ObjectKey::new("autoscaling", "horizontalpodautoscalers", "kube-system", "coredns");
            stage.edits(&key, |scaler| scaler["status"]["conditions"][1]["status"] = json!("False"));
            sleep(lasts).await;
            stage.edits(&key, |scaler| scaler["status"]["conditions"][1]["status"] = json!("True"));
        }
        _ => {}
    }
}

fn ready(stage: &Stage, server: usize, is_so: bool) {
    if let Some(server) = stage.cluster.lock().servers.get_mut(server) {
        server.ready = is_so;
    }
}

fn stand_still(stage: &Stage, server: usize, still: bool) {
    let mut inner = stage.cluster.lock();
    let revision = still.then(|| inner.store.revision());
    if let Some(server) = inner.servers.get_mut(server) {
        server.cached_at = revision;
    }
    inner.store.wake_all();
}

async fn cell(stage: &Stage, (server, node): (usize, &str), cell: Cell, lasts: Duration) {
    let pair = (server, node.to_owned());
    stage.with(|_, inner, _| inner.cells.insert(pair.clone(), cell));
    sleep(lasts).await;
    stage.with(|_, inner, _| inner.cells.remove(&pair));
}

fn budget(stage: &Stage, most: i64) {
    let key = ObjectKey::new("policy", "poddisruptionbudgets", "default", "web");
    stage.edits(&key, |budget| {
        let generation = budget["metadata"]["generation"].as_i64().unwrap_or(1);
        budget["metadata"]["generation"] = json!(generation + 1);
        budget["spec"]["maxUnavailable"] = json!(most);
    });
}

async fn says(stage: &Stage, kind: FaultKind, lasts: Duration) {
    let person = Person::new(stage, "person");
    if kind == FaultKind::Halts {
        person.halts(true).await;
        sleep(lasts).await;
        person.halts(false).await;
    } else {
        person.holds(true).await;
        sleep(lasts).await;
        person.holds(false).await;
    }
}
