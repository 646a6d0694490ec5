//! kured's lock: a JSON patch that tests the value as read, so that nobody's lock is ever written over.
//!
//! Measured on kube-apiserver 1.34.4: a failed `test` answers 422 with one generic text; `test` with null passes while
//! the annotation is absent. A merge patch with a resourceVersion would conflict with every change of the DaemonSet's
//! status, of which there are many while a node reboots.

use maint_core::plan::SetLock;
use serde_json::{Value, json};

/// Path of the DaemonSet.
pub(super) fn path(set: &SetLock) -> String {
    format!("/apis/apps/v1/namespaces/{}/daemonsets/{}?fieldManager=maint", set.namespace, set.name)
}

/// The patch.
pub(crate) fn patch(set: &SetLock) -> Value {
    // RFC 6901: `~` and `/` are escaped in a pointer.
    let key = set.key.replace('~', "~0").replace('/', "~1");
    let path = format!("/metadata/annotations/{key}");
    let test = json!({"op": "test", "path": path, "value": set.before});
    match (&set.before, &set.after) {
        (_, Some(after)) => json!([test, {"op": "add", "path": path, "value": after}]),
        (Some(_), None) => json!([test, {"op": "remove", "path": path}]),
        (None, None) => json!([test]),
    }
}

#[cfg(test)]
mod tests {
    use maint_core::plan::LockChange;

    use super::*;

    #[test]
    fn it_tests_what_was_read_and_changes_nothing_else() {
        let path = "/metadata/annotations/weave.works~1kured-node-lock";
        let rows = [
            (
                "take a free lock",
                None,
                Some("a"),
                json!([{"op": "test", "path": path, "value": null}, {"op": "add", "path": path, "value": "a"}]),
            ),
            (
                "replace",
                Some("a"),
                Some("b"),
                json!([{"op": "test", "path": path, "value": "a"}, {"op": "add", "path": path, "value": "b"}]),
            ),
            (
                "give back",
                Some("a"),
                None,
                json!([{"op": "test", "path": path, "value": "a"}, {"op": "remove", "path": path}]),
            ),
        ];
        for (row, before, after, wanted) in rows {
            let set = SetLock {
                namespace: "kube-system".into(),
                name: "kured".into(),
                key: "weave.works/kured-node-lock".into(),
                before: before.map(str::to_owned),
                after: after.map(str::to_owned),
                why: LockChange::Take,
            };
            assert_eq!(patch(&set), wanted, "{row}");
        }
    }
}
