//! What the API does with an act: guards, managed fields, evictions, fixed names.

use serde_json::json;

use super::world::{Coming, Pods, Scene, UID, later};
use crate::api::{SourceId, names};
use crate::drain::{Answer, Answered, Eviction};
use crate::plan::{Act, FINALIZER, LockChange};

impl Scene {
    /// Does what the API would do.
    pub(super) fn perform(&mut self, act: &Act) -> Result<(), String> {
        match act {
            Act::AddFinalizer => {
                let record = self.record.as_mut().ok_or("no record")?;
                record.metadata.finalizers.get_or_insert_default().push(FINALIZER.to_owned());
            }
            Act::RemoveFinalizer => {
                let record = self.record.as_mut().ok_or("no record")?;
                record.metadata.finalizers = None;
                if record.metadata.deletion_timestamp.is_some() {
                    self.record = None;
                }
            }
            Act::Cordon { node, resource_version, owner } => {
                self.guard(node, resource_version)?;
                self.cordon(node, true, names::FIELD_MANAGER);
                self.annotate(node, names::ANNOTATION_OWNER, serde_json::to_string(owner).ok());
            }
            Act::Uncordon { node, resource_version } => {
                self.guard(node, resource_version)?;
                let line = self.node_line();
                assert_eq!(line, "cordoned by maint, owned", "uncordoned what is not ours");
                self.assert_nothing_is_under_way();
                assert_eq!(self.owner().expect("an owner")["maintenance"], UID);
                self.cordon(node, false, names::FIELD_MANAGER);
                self.annotate(node, names::ANNOTATION_OWNER, None);
            }
            Act::DropOwner { node, resource_version } => {
                self.guard(node, resource_version)?;
                assert_eq!(self.owner().expect("an owner")["maintenance"], UID);
                self.annotate(node, names::ANNOTATION_OWNER, None);
            }
            Act::MarkProven { node, resource_version, boot_id, at } => {
                self.guard(node, resource_version)?;
                let proven = json!({"bootID": boot_id, "at": at.to_string()}).to_string();
                self.annotate(node, names::ANNOTATION_PROVEN, Some(proven));
            }
            Act::Evict(evictions) => {
                for eviction in evictions {
                    self.evict(eviction);
                }
            }
            Act::CreateSentinelPod { name, path, wanted_on, .. } => {
                self.create_sentinel_pod(name, path, wanted_on.as_deref());
            }
            Act::DeleteSentinelPod { uid, .. } => {
                for source in [SourceId::ActionPods, SourceId::TargetPods] {
                    self.world.of(source).retain(|pod| pod["metadata"]["uid"] != json!(uid));
                }
            }
            Act::SetLock(set) => {
                Self::assert_lock_is_ours_to_change(set);
                let found = self.world.of(SourceId::DaemonSets).iter_mut().find(|one| {
                    (&one["metadata"]["namespace"], &one["metadata"]["name"])
                        == (&json!(set.namespace), &json!(set.name))
                });
                let annotations = &mut found.ok_or("404")?["metadata"]["annotations"];
                if annotations[&set.key] != json!(set.before) {
                    return Err("422".to_owned());
                }
                annotations[&set.key] = json!(set.after);
                if set.after.is_none() {
                    annotations.as_object_mut().ok_or("no annotations")?.remove(&set.key);
                }
            }
            Act::CreateActionPod { name, node, boot_id } => self.create_action_pod(name, node, boot_id),
            Act::DeleteActionPod { uid, .. } => {
                self.world.of(SourceId::ActionPods).retain(|pod| pod["metadata"]["uid"] != json!(uid));
            }
        }
        Ok(())
    }

    /// It is never written over while it is neither free nor ours; of kured's own entry one flag is changed.
    fn assert_lock_is_ours_to_change(set: &crate::plan::SetLock) {
        let read = |text: &Option<String>| -> Option<serde_json::Value> {
            text.as_ref().map(|text| serde_json::from_str(text).expect("a lock that can be read"))
        };
        let entries = |text: &Option<String>| -> Vec<serde_json::Value> {
            match read(text) {
                None => Vec::new(),
                Some(lock) => lock["locks"].as_array().cloned().unwrap_or_else(|| vec![lock]),
            }
        };
        let (before, after) = (entries(&set.before), entries(&set.after));
        let ours = |entry: &serde_json::Value| entry["maint"]["maintenance"] == UID;
        match set.why {
            LockChange::Take => {
                assert!(after.starts_with(&before) && after.len() > before.len(), "{set:?}");
                assert!(after.iter().skip(before.len()).all(ours), "{set:?}");
            }
            LockChange::Release => {
                assert!(before.iter().any(ours), "{set:?}");
                assert_eq!(after, before.into_iter().filter(|entry| !ours(entry)).collect::<Vec<_>>());
            }
            LockChange::KeepCordon => {
                let wanted = before.into_iter().map(|mut entry| {
                    if entry["nodeID"] == super::world::TARGET {
                        entry["metadata"]["unschedulable"] = json!(true);
                    }
                    entry
                });
                assert_eq!(after, wanted.collect::<Vec<_>>());
            }
        }
    }

    fn guard(&mut self, node: &str, version: &str) -> Result<(), String> {
        if self.cluster.writes_fail {
            return Err("403".to_owned());
        }
        let node = self.find(node).ok_or("404")?;
        if node["metadata"]["resourceVersion"] == version { Ok(()) } else { Err("409".to_owned()) }
    }

    fn evict(&mut self, eviction: &Eviction) {
        let now = self.now;
        let mode = self.cluster.pods;
        let pods = self.world.of(SourceId::TargetPods);
        let index = pods.iter().position(|pod| pod["metadata"]["uid"] == eviction.uid.as_str());
        let answer = match (mode, index) {
            (_, None) => Answer::Gone,
            (Pods::GoAtOnce, Some(index)) => {
                pods.remove(index);
                Answer::Accepted
            }
            (Pods::GoAfter(seconds), Some(index)) => {
                let due = later(now, seconds);
                pods[index]["metadata"]["deletionTimestamp"] = json!(due.to_string());
                let number = eviction.name.rsplit('-').next().and_then(|number| number.parse().ok());
                self.coming.push((due, Coming::PodGone(number.expect("a number"))));
                Answer::Accepted
            }
            (Pods::Stay, Some(_)) => {
                let message = "Cannot evict pod as it would violate the pod's disruption budget.".to_owned();
                Answer::RefusedByBudget { budget: None, message, retry_after_seconds: None }
            }
        };
        self.answers.note(Answered { eviction: eviction.clone(), answer, at: now });
    }

    fn create_action_pod(&mut self, name: &str, node: &str, boot_id: &str) {
        if !self.world.of(SourceId::ActionPods).is_empty() {
            return;
        }
        let boot = self.find(node).map(|node| node["status"]["nodeInfo"]["bootID"].clone());
        self.pods_created.push(boot_id.to_owned());
        self.world.of(SourceId::ActionPods).push(json!({
            "metadata": {"name": name, "namespace": "maint-actions", "uid": format!("uid-{name}")},
            "spec": {"nodeName": node}, "status": {"phase": "Running"},
        }));
        if boot == Some(json!(boot_id)) {
            self.acted();
        }
    }
}
