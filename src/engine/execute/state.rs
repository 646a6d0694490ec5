//! ConfigMap `maint-state`: created if it is not there, else only the keys that changed, guarded by resourceVersion.

use std::collections::BTreeMap;

use maint_core::api::names;
use serde_json::{Value, json};

/// What is written to `maint-state`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateWrite {
    /// The resourceVersion that was read; none where there is no ConfigMap.
    pub resource_version: Option<String>,
    /// Keys and their new text.
    pub data: BTreeMap<&'static str, String>,
}

/// The body: a merge patch, or the whole object where there is none.
pub(super) fn body(write: &StateWrite, namespace: &str) -> Value {
    match &write.resource_version {
        Some(version) => json!({"metadata": {"resourceVersion": version}, "data": write.data}),
        None => json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": names::STATE_CONFIG_MAP, "namespace": namespace},
            "data": write.data,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_names_what_it_changes_and_what_it_was_decided_on() {
        let mut write = StateWrite {
            resource_version: Some("7".into()),
            data: BTreeMap::from([(names::STATE_TERM_KEY, "3".to_owned())]),
        };
        assert_eq!(body(&write, "maint"), json!({"metadata": {"resourceVersion": "7"}, "data": {"term": "3"}}));
        write.resource_version = None;
        let whole = body(&write, "maint");
        assert_eq!((&whole["kind"], &whole["metadata"]["name"]), (&json!("ConfigMap"), &json!("maint-state")));
        assert_eq!(whole["metadata"]["namespace"], "maint");
    }
}
