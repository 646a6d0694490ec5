//! Patches of nodes: one merge patch each, guarded by resourceVersion, the annotation in the same write as the cordon.

use maint_core::api::names;
use maint_core::plan::{Act, stamp};
use serde_json::{Value, json};

/// The merge patch of a node act; none for acts that are no node's.
pub(super) fn patch(act: &Act) -> Option<Value> {
    match act {
        Act::Cordon { resource_version, owner, .. } => {
            let owner = serde_json::to_string(owner).ok()?;
            Some(json!({
                "metadata": {"resourceVersion": resource_version, "annotations": {names::ANNOTATION_OWNER: owner}},
                "spec": {"unschedulable": true},
            }))
        }
        Act::Uncordon { resource_version, .. } => Some(json!({
            "metadata": {"resourceVersion": resource_version, "annotations": {
                names::ANNOTATION_OWNER: null, names::ANNOTATION_REBOOT_REQUESTED: null,
            }},
            "spec": {"unschedulable": null},
        })),
        Act::DropOwner { resource_version, .. } => Some(json!({
            "metadata": {"resourceVersion": resource_version, "annotations": {names::ANNOTATION_OWNER: null}},
        })),
        Act::MarkProven { resource_version, boot_id, at, .. } => {
            let proven = json!({"bootID": boot_id, "at": stamp(*at)}).to_string();
            Some(json!({
                "metadata": {"resourceVersion": resource_version, "annotations": {names::ANNOTATION_PROVEN: proven}},
            }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use maint_core::api::Owner;

    #[test]
    fn cordon_and_owner_are_one_guarded_write() {
        let act = Act::Cordon {
            node: "worker2".into(),
            resource_version: "7".into(),
            owner: Owner { maintenance: "u".into(), term: 3 },
        };
        let body = patch(&act).expect("a node act");
        assert_eq!(body["metadata"]["resourceVersion"], "7");
        assert_eq!(body["metadata"]["annotations"]["maint.dev/owner"], r#"{"maintenance":"u","term":3}"#);
        assert_eq!(body["spec"]["unschedulable"], true);
    }

    #[test]
    fn an_uncordon_takes_the_wish_with_it() {
        let act = Act::Uncordon { node: "worker2".into(), resource_version: "8".into() };
        let body = patch(&act).expect("a node act");
        assert!(body["spec"]["unschedulable"].is_null());
        assert!(body["metadata"]["annotations"]["maint.dev/reboot-requested"].is_null());
    }
}
