//! What ties a pod to its node, and what of it is lost when it goes.

use crate::facts::{Fields, Malformed};

/// What ties a pod to its node, and what of it is lost when it goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// Its `emptyDir` volumes: their contents go with the pod.
    pub empty_dirs: Vec<EmptyDir>,
    /// Names of its PersistentVolumeClaims, those of `ephemeral` volumes by the name of the volume.
    pub claims: Vec<String>,
    /// Names of the only nodes it may run on, by `nodeSelector` or required node affinity on the host name or the node's
    /// name; empty where it may run on others.
    pub pinned_to: Vec<String>,
    /// It tolerates the taint of a cordoned node (`node.kubernetes.io/unschedulable`) and may come back to it.
    pub tolerates_cordon: bool,
}

/// An `emptyDir` volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmptyDir {
    /// Name of the volume.
    pub name: String,
    /// `medium: Memory`; else it is on the node's disk.
    pub in_memory: bool,
}

const HOST_NAME: &str = "kubernetes.io/hostname";
const CORDONED: &str = "node.kubernetes.io/unschedulable";

impl Place {
    /// Reads a pod's `spec`.
    ///
    /// # Errors
    /// If a field has the wrong type.
    pub(super) fn of(spec: &Fields<'_>) -> Result<Self, Malformed> {
        let (mut empty_dirs, mut claims) = (Vec::new(), Vec::new());
        for volume in spec.objects("volumes")? {
            let name = volume.optional_str("name")?.unwrap_or_default();
            if let Some(empty_dir) = volume.optional_object("emptyDir")? {
                let in_memory = empty_dir.optional_str("medium")? == Some("Memory");
                empty_dirs.push(EmptyDir { name: name.to_owned(), in_memory });
            }
            if let Some(claim) = volume.optional_object("persistentVolumeClaim")? {
                claims.push(claim.optional_str("claimName")?.unwrap_or_default().to_owned());
            }
            if volume.optional_object("ephemeral")?.is_some() {
                claims.push(name.to_owned());
            }
        }
        Ok(Self { empty_dirs, claims, pinned_to: pins(spec)?, tolerates_cordon: tolerates_cordon(spec)? })
    }
}

fn pins(spec: &Fields<'_>) -> Result<Vec<String>, Malformed> {
    if let Some(name) = spec.string_map("nodeSelector")?.remove(HOST_NAME) {
        return Ok(vec![name]);
    }
    let Some(affinity) = spec.optional_object("affinity")? else { return Ok(Vec::new()) };
    let Some(node) = affinity.optional_object("nodeAffinity")? else { return Ok(Vec::new()) };
    let Some(required) = node.optional_object("requiredDuringSchedulingIgnoredDuringExecution")? else {
        return Ok(Vec::new());
    };
    let mut names = Vec::new();
    // One of the terms is enough: a term that names no node opens all of them.
    for term in required.objects("nodeSelectorTerms")? {
        let by_label = named(&term, "matchExpressions", HOST_NAME)?;
        let by_field = named(&term, "matchFields", "metadata.name")?;
        match by_field.or(by_label) {
            Some(found) => names.extend(found),
            None => return Ok(Vec::new()),
        }
    }
    Ok(names)
}

fn named(term: &Fields<'_>, list: &str, key: &str) -> Result<Option<Vec<String>>, Malformed> {
    for entry in term.objects(list)? {
        if entry.optional_str("key")? == Some(key) && entry.optional_str("operator")? == Some("In") {
            return entry.strings("values").map(Some);
        }
    }
    Ok(None)
}

fn tolerates_cordon(spec: &Fields<'_>) -> Result<bool, Malformed> {
    for toleration in spec.objects("tolerations")? {
        let effect = toleration.optional_str("effect")?.unwrap_or_default();
        let key = toleration.optional_str("key")?.unwrap_or_default();
        let exists = toleration.optional_str("operator")? == Some("Exists");
        // An empty key with Exists tolerates every taint; the cordon's taint has no value (Toleration, core/v1).
        let key_fits = key == CORDONED || (key.is_empty() && exists);
        let value_fits = exists || toleration.optional_str("value")?.unwrap_or_default().is_empty();
        if key_fits && value_fits && matches!(effect, "" | "NoSchedule") {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn place(spec: Value) -> Place {
        let document = json!({"spec": spec});
        let root = Fields::root("Pod shop/web-0", &document).expect("an object");
        Place::of(&root.object("spec").expect("a spec")).expect("it can be understood")
    }

    #[test]
    fn volumes_are_told_apart() {
        let found = place(json!({"volumes": [
            {"name": "tmp", "emptyDir": {}}, {"name": "shm", "emptyDir": {"medium": "Memory"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}, {"name": "config", "configMap": {"name": "c"}},
        ]}));
        let dirs: Vec<_> = found.empty_dirs.iter().map(|dir| (dir.name.as_str(), dir.in_memory)).collect();
        assert_eq!(dirs, [("tmp", false), ("shm", true)]);
        assert_eq!(found.claims, ["data-web-0", "scratch"]);
    }

    #[test]
    fn a_pin_is_where_no_other_node_is_allowed() {
        let affinity = |terms: Value| json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}});
        let host = |name: &str| json!({"matchExpressions": [{"key": HOST_NAME, "operator": "In", "values": [name]}]});
        let field = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]});
        let zone = json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]});
        let not = json!({"matchExpressions": [{"key": HOST_NAME, "operator": "NotIn", "values": ["n2"]}]});
        let rows = [
            ("free", json!({}), vec![]),
            ("selector", json!({"nodeSelector": {HOST_NAME: "n1"}}), vec!["n1"]),
            ("other selector", json!({"nodeSelector": {"disk": "ssd"}}), vec![]),
            ("affinity", affinity(json!([host("n1")])), vec!["n1"]),
            ("two nodes", affinity(json!([host("n1"), host("n2")])), vec!["n1", "n2"]),
            ("one term opens all", affinity(json!([host("n1"), zone])), vec![]),
            ("by field", affinity(json!([field])), vec!["n1"]),
            ("not there", affinity(json!([not])), vec![]),
        ];
        for (row, spec, wanted) in rows {
            assert_eq!(place(spec).pinned_to, wanted, "{row}");
        }
    }

    #[test]
    fn who_tolerates_a_cordon() {
        let rows = [
            ("none", json!([]), false),
            ("all taints", json!([{"operator": "Exists"}]), true),
            ("all of NoExecute", json!([{"operator": "Exists", "effect": "NoExecute"}]), false),
            ("the cordon", json!([{"key": CORDONED, "operator": "Exists", "effect": "NoSchedule"}]), true),
            ("the cordon by its empty value", json!([{"key": CORDONED, "effect": "NoSchedule"}]), true),
            ("another taint", json!([{"key": "dedicated", "operator": "Exists"}]), false),
        ];
        for (row, tolerations, wanted) in rows {
            assert_eq!(place(json!({"tolerations": tolerations})).tolerates_cordon, wanted, "{row}");
        }
    }
}
