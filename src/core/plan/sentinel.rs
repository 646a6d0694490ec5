//! The sentinel file of a manual reboot by kured: put on the node by a short pod, and taken away by another one.
//!
//! The file says whose it is. It is made only where there is none, and removed only where it still says so: a wish that
//! kured's node has by itself is neither ours nor touched.

use super::Act;
use super::grant::wishes_itself;
use super::run::{LOOK_SECONDS, Run, SOON_SECONDS};
use super::time::{after, parse_time, stamp};
use crate::api::record::Sentinel;
use crate::api::{Action, MessageKind, Outcome, Phase, Trigger};
use crate::facts::{Node, Observation, Pod};
use crate::kured::{Place, Places};

/// A request that was sent is done or refused by then (`--request-timeout` of kube-apiserver), in seconds.
const LATE_CREATE_SECONDS: i64 = 60;
/// Folders that a boot empties.
const VOLATILE: &[&str] = &["/run/", "/var/run/"];

/// One of the two pods.
enum ShortPod<'a> {
    Unreadable,
    Missing,
    There(&'a Pod),
}

impl<'a> Run<'a> {
    fn sentinel_pod_name(&self, remove: bool) -> String {
        format!("maint-{}-sentinel{}", self.name(), if remove { "-off" } else { "" })
    }

    fn sentinel_pod(&self, remove: bool) -> ShortPod<'a> {
        if matches!(self.input.facts.action_pods, Observation::Absent { .. }) {
            return ShortPod::Missing;
        }
        let pods = self.current(&self.input.facts.action_pods, Pod::ACTIONS.max_age_seconds);
        let Some(pods) = pods else { return ShortPod::Unreadable };
        let name = self.sentinel_pod_name(remove);
        let found = pods.iter().find_map(|item| match item {
            crate::facts::Item::Good(pod) if pod.metadata.name == name => Some(ShortPod::There(pod)),
            crate::facts::Item::Malformed(bad) if bad.object.ends_with(&format!("/{name}")) => {
                Some(ShortPod::Unreadable)
            }
            _ => None,
        });
        found.unwrap_or(ShortPod::Missing)
    }

    /// A pod that this run itself put on the node for a moment: no drain moves it.
    pub(super) fn is_short_pod(&self, pod: &Pod) -> bool {
        let has = self.status.kured.as_ref().is_some_and(|kured| kured.sentinel.is_some());
        has && pod.metadata.namespace == self.input.settings.kured.sentinel.namespace
            && [false, true].iter().any(|remove| pod.metadata.name == self.sentinel_pod_name(*remove))
    }

    fn node_of_that_name(&self) -> Option<&'a Node> {
        self.input.facts.nodes.good().find(|node| node.metadata.name == self.node_name())
    }

    fn mark(&self) -> String {
        format!("maint {}", self.uid())
    }

    fn delete_short_pod(&mut self, pod: &Pod) {
        if pod.metadata.deletion_timestamp.is_none() {
            self.act(Act::DeleteSentinelPod { name: pod.metadata.name.clone(), uid: pod.metadata.uid.clone() });
        }
    }
}

/// Why kured cannot be made to reboot by hand, if so.
fn impossible(run: &Run<'_>, place: &Place) -> Option<String> {
    if run.input.settings.kured.sentinel.image.is_empty() {
        return Some(
            "kured can be asked only by its sentinel file, and there is no image for the pod that makes it: set \
             [kured.sentinel] image, or choose another action"
                .to_owned(),
        );
    }
    let command = place.sentinel_command.as_ref()?;
    Some(format!(
        "kured asks the command `{command}` (--reboot-sentinel-command of {}) and looks at no file: make that command \
         want a reboot, or choose another action",
        place.object()
    ))
}

/// Pending: why a reboot by kured cannot be begun, if so.
pub(super) fn refuses(run: &Run<'_>, node: &Node) -> Option<String> {
    if run.action() != Ok(Action::Kured) {
        return None;
    }
    match run.locks() {
        Places::NotInstalled => Some("kured is not installed: no DaemonSet runs it".to_owned()),
        // Gates speak of what cannot be read.
        Places::Unreadable(_) => None,
        Places::Found(_) if run.trigger() == Trigger::Unattended || wishes_itself(run, Some(node)) => None,
        Places::Found(_) => impossible(run, &run.kured_place()?),
    }
}

/// Acting, and kured has not asked since the cordon: true where the sentinel is there, or is none of our business.
pub(super) fn is_there(run: &mut Run<'_>, node: &Node, place: &Place) -> bool {
    let Some(sentinel) = run.status.kured.as_ref().and_then(|kured| kured.sentinel.clone()) else {
        if run.trigger() == Trigger::Unattended || wishes_itself(run, None) {
            return true;
        }
        if let Some(why) = impossible(run, place) {
            // It was begun on the word of kured's annotation: then its question comes, or the deadline.
            if wishes_itself(run, Some(node)) {
                return true;
            }
            run.back_out(Outcome::ActionNotStarted, Phase::Failed, why);
            return false;
        }
        let asked_at = stamp(run.input.now);
        run.kured_mut().sentinel = Some(Sentinel { path: place.sentinel.clone(), asked_at, removed_at: String::new() });
        run.note(format!("kured's sentinel {} is put on the node", place.sentinel));
        run.look_again_in(0);
        return false;
    };
    match run.sentinel_pod(false) {
        ShortPod::Unreadable => run.look_again_in(SOON_SECONDS),
        ShortPod::There(pod) if pod.phase == "Succeeded" => return true,
        ShortPod::There(pod) if pod.phase == "Failed" => {
            let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
            let why = format!("kured's sentinel could not be made: kubectl -n {namespace} logs {name}");
            run.back_out(Outcome::ActionNotStarted, Phase::Failed, why);
        }
        ShortPod::There(_) => {
            run.status.message = format!("kured's sentinel {} is being put on the node", sentinel.path);
            run.look_again_in(SOON_SECONDS);
        }
        ShortPod::Missing => {
            run.act(Act::CreateSentinelPod {
                name: run.sentinel_pod_name(false),
                node: run.node_name().to_owned(),
                path: sentinel.path,
                mark: run.mark(),
                wanted_on: Some(node.boot_id.clone()),
            });
            run.look_again_in(SOON_SECONDS);
        }
    }
    false
}

/// A record that is over: true once nothing of ours is left of the sentinel, the pods neither.
pub(super) fn is_gone(run: &mut Run<'_>, node: Option<&Node>) -> bool {
    let Some(sentinel) = run.status.kured.as_ref().and_then(|kured| kured.sentinel.clone()) else { return true };
    let (make, take) = (run.sentinel_pod(false), run.sentinel_pod(true));
    if matches!(make, ShortPod::Unreadable) || matches!(take, ShortPod::Unreadable) {
        run.look_again_in(SOON_SECONDS);
        return false;
    }
    if sentinel.removed_at.is_empty() {
        // Another Node object may be the same machine.
        match node.or_else(|| run.node_of_that_name()) {
            Some(node) if !(run.has_new_boot(node) && VOLATILE.iter().any(|at| sentinel.path.starts_with(at))) => {
                take_away(run, &sentinel, &make, &take);
                return false;
            }
            // The node is gone, or a boot took the file away; a pod that comes late compares the boot.
            _ => run.status.kured.iter_mut().for_each(|kured| {
                if let Some(sentinel) = &mut kured.sentinel {
                    sentinel.removed_at = stamp(run.input.now);
                }
            }),
        }
    }
    let mut left = false;
    for pod in [make, take] {
        if let ShortPod::There(pod) = pod {
            run.delete_short_pod(pod);
            left = true;
        }
    }
    if left {
        run.look_again_in(SOON_SECONDS);
    }
    !left
}

fn take_away(run: &mut Run<'_>, sentinel: &Sentinel, make: &ShortPod<'_>, take: &ShortPod<'_>) {
    run.still(&format!("kured's sentinel {} is taken off the node", sentinel.path));
    run.look_again_in(SOON_SECONDS);
    if let ShortPod::There(pod) = make {
        // Else it could make the file anew.
        return run.delete_short_pod(pod);
    }
    match take {
        ShortPod::There(pod) if pod.is_finished() => {
            if pod.phase == "Failed" {
                let (node, name) = (run.node_name(), &pod.metadata.name);
                let text = format!(
                    "kured's sentinel {} could not be taken off {node} (pod {name} failed): remove it by hand, else kured \
                     goes on asking for a reboot",
                    sentinel.path
                );
                run.warn(text.clone());
                run.tell(MessageKind::BackedOut, "warning", text);
            }
            let removed_at = stamp(run.input.now);
            if let Some(sentinel) = run.kured_mut().sentinel.as_mut() {
                sentinel.removed_at = removed_at;
            }
            run.still("");
        }
        ShortPod::There(_) | ShortPod::Unreadable => {}
        ShortPod::Missing => {
            let since = parse_time(run.status.step_started_at.as_ref());
            if since.is_some_and(|since| run.input.now < after(since, LATE_CREATE_SECONDS)) {
                // The pod that makes it may still come.
                return run.look_again_in(LOOK_SECONDS);
            }
            run.act(Act::CreateSentinelPod {
                name: run.sentinel_pod_name(true),
                node: run.node_name().to_owned(),
                path: sentinel.path.clone(),
                mark: run.mark(),
                wanted_on: None,
            });
        }
    }
}
