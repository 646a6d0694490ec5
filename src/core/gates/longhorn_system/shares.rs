//! Shared volumes (RWX): their share manager is a pod without a budget, and serves over NFS.

use super::system::{Problem, System};
use crate::api::{Evidence, Moment, Reason, Status};
use crate::facts::longhorn::Volume;

pub(super) fn judge(system: &System<'_>, problems: &mut Vec<Problem>) {
    for (volume, _) in system.volumes() {
        let attached = volume.state == "attached" && volume.metadata.deletion_timestamp.is_none();
        if !attached {
            continue;
        }
        let not_running = not_running(system, volume);
        if system.input.moment == Moment::Start && not_running.is_none() {
            problems.extend(on_target(system, volume));
        }
        problems.extend(not_running);
    }
}

fn label(volume: &Volume) -> String {
    let name = &volume.metadata.name;
    volume.claim.as_ref().map_or_else(|| name.clone(), |claim| format!("{name} ({claim})"))
}

fn evidence(volume: &Volume, field: &str, value: &str, wanted: &str) -> Evidence {
    Evidence::new(format!("Volume {}", volume.metadata.full_name()), field, value, wanted)
}

/// Clients hang or go read-only without it (longhorn#9022). One that nobody asked for is stopped.
fn not_running(system: &System<'_>, volume: &Volume) -> Option<Problem> {
    let wanted = || {
        let of = system.attachments.iter().filter(|one| one.volume == volume.metadata.name);
        let serves = |kind: &str| matches!(kind, "share-manager-controller" | "csi-attacher");
        of.flat_map(|one| &one.tickets).any(|ticket| serves(&ticket.kind))
    };
    let state = match volume.share_state.as_str() {
        "running" => return None,
        "" if volume.access_mode != "rwx" || !wanted() => return None,
        "stopped" if matches!(volume.access_mode.as_str(), "rwo" | "rwop") || !wanted() => return None,
        "" => "not set",
        state => state,
    };
    let message = format!("shared volume {} is attached, and its share manager is {state}", label(volume));
    let evidence = evidence(volume, "status.shareState", state, "running");
    Some(Problem::new(Status::Block, Reason::LonghornShareNotRunning, message, evidence))
}

/// It moves with the drain, and its clients elsewhere wait meanwhile.
fn on_target(system: &System<'_>, volume: &Volume) -> Option<Problem> {
    if volume.access_mode != "rwx" || !system.is_target(&volume.current_node) {
        return None;
    }
    let target = &volume.current_node;
    let message = format!(
        "shared volume {} is served from {target}: its clients on other nodes wait while it moves",
        label(volume)
    );
    let evidence = evidence(volume, "status.currentNodeID", target, "another node");
    Some(Problem::new(Status::Warn, Reason::LonghornShareOnTarget, message, evidence))
}
