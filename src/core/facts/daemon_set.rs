//! DaemonSets: kured's carries its lock as an annotation, and its flags in the pod template.

use std::collections::BTreeMap;

use super::source::{Namespaces, Source, SourceSpec};
use super::{Fields, Malformed, Metadata};
use crate::api::SourceId;

/// A DaemonSet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonSet {
    /// Name, namespace and the annotations that maint reads, kured's lock among them.
    pub metadata: Metadata,
    /// `status.desiredNumberScheduled`
    pub desired: i64,
    /// `status.numberReady`
    pub ready: i64,
    /// `status.updatedNumberScheduled`: pods of the present template; 0 where it is not there, as the field is left out
    /// when it is 0.
    pub updated: i64,
    /// `status.observedGeneration`
    pub observed_generation: i64,
    /// `spec.updateStrategy.type` is `OnDelete`: pods of an older template stay until somebody deletes them. Unset means
    /// RollingUpdate (DaemonSetUpdateStrategy, apps/v1).
    pub on_delete: bool,
    /// `spec.selector.matchLabels`
    pub selector: BTreeMap<String, String>,
    /// `spec.template.spec.containers`
    pub containers: Vec<Container>,
    /// Field managers of the annotations that one is known for (`metadata.managedFields`), by the annotation's key.
    pub annotation_managers: BTreeMap<String, String>,
}

impl DaemonSet {
    /// The copy of the whole object that `kubectl apply` keeps: large, and read by nobody here.
    const LAST_APPLIED: &'static str = "kubectl.kubernetes.io/last-applied-configuration";

    /// No pod of another template, and the status is that of the present generation.
    #[must_use]
    pub fn is_rolled_out(&self) -> bool {
        self.metadata.generation == Some(self.observed_generation) && self.updated == self.desired
    }
}

/// A container of a template or a pod, as far as its command line goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Container {
    /// `name`
    pub name: String,
    /// `image`
    pub image: String,
    /// `command`
    pub command: Vec<String>,
    /// `args`
    pub args: Vec<String>,
    /// `env` in order; none where the value comes from elsewhere (`valueFrom`).
    pub env: Vec<(String, Option<String>)>,
    /// Names of the variables of `env` whose value is the node's name (`fieldRef` of `spec.nodeName`).
    pub node_name_env: Vec<String>,
    /// Names of what `envFrom` takes variables from, as `ConfigMap x` and `Secret y`: maint reads neither.
    pub env_from: Vec<String>,
}

impl Container {
    /// Reads `containers` of a pod's or template's `spec`.
    ///
    /// # Errors
    /// If a field has the wrong type.
    pub fn list(spec: &Fields<'_>) -> Result<Vec<Self>, Malformed> {
        spec.objects("containers")?.iter().map(Self::of).collect()
    }

    fn of(container: &Fields<'_>) -> Result<Self, Malformed> {
        let (mut env, mut node_name_env) = (Vec::new(), Vec::new());
        for variable in container.objects("env")? {
            let name = variable.str("name")?;
            let elsewhere = variable.optional_object("valueFrom")?;
            let field = elsewhere.as_ref().map_or(Ok(None), |from| from.optional_object("fieldRef"))?;
            if field.map_or(Ok(None), |field| field.optional_str("fieldPath"))? == Some("spec.nodeName") {
                node_name_env.push(name.to_owned());
            }
            // An `env` without `value` is the empty string (EnvVar.value: "Defaults to \"\"").
            let value = variable.optional_str("value")?.unwrap_or_default().to_owned();
            env.push((name.to_owned(), elsewhere.is_none().then_some(value)));
        }
        let mut env_from = Vec::new();
        for source in container.objects("envFrom")? {
            for (key, kind) in [("configMapRef", "ConfigMap"), ("secretRef", "Secret")] {
                if let Some(reference) = source.optional_object(key)? {
                    env_from.push(format!("{kind} {}", reference.optional_str("name")?.unwrap_or_default()));
                }
            }
        }
        Ok(Self {
            name: container.optional_str("name")?.unwrap_or_default().to_owned(),
            image: container.optional_str("image")?.unwrap_or_default().to_owned(),
            command: container.strings("command")?,
            args: container.strings("args")?,
            env,
            node_name_env,
            env_from,
        })
    }
}

impl Source for DaemonSet {
    const SPEC: SourceSpec = SourceSpec {
        id: SourceId::DaemonSets,
        group: "apps",
        version: "v1",
        kind: "DaemonSet",
        resource: "daemonsets",
        namespaces: Namespaces::All,
        label_selector: None,
        max_age_seconds: 30,
        built_in: true,
    };

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let status = root.object("status")?;
        let template = root.object("spec")?.object("template")?.object("spec")?;
        let selector = root.object("spec")?.optional_object("selector")?;
        let strategy = root.object("spec")?.optional_object("updateStrategy")?;
        let strategy = strategy.map_or(Ok(None), |strategy| strategy.optional_str("type"))?;
        let mut metadata = Metadata::of(root)?;
        // All of them: a flag of kured says under which key its lock is, and a lock that was left out would look free.
        metadata.annotations = root.object("metadata")?.string_map("annotations")?;
        metadata.annotations.remove(Self::LAST_APPLIED);
        Ok(Self {
            metadata,
            desired: status.i64("desiredNumberScheduled")?,
            ready: status.i64("numberReady")?,
            updated: status.optional_i64("updatedNumberScheduled")?.unwrap_or_default(),
            observed_generation: status.optional_i64("observedGeneration")?.unwrap_or_default(),
            on_delete: strategy == Some("OnDelete"),
            selector: selector.map_or_else(|| Ok(BTreeMap::new()), |selector| selector.string_map("matchLabels"))?,
            containers: Container::list(&template)?,
            annotation_managers: annotation_managers(&root.object("metadata")?)?,
        })
    }
}

/// Walks `metadata.managedFields` for the entries that own single annotations (`f:metadata.f:annotations.f:KEY`).
fn annotation_managers(metadata: &Fields<'_>) -> Result<BTreeMap<String, String>, Malformed> {
    let mut managers = BTreeMap::new();
    for entry in metadata.objects("managedFields")? {
        let Some(fields) = entry.optional_object("fieldsV1")? else { continue };
        let Some(owned) = fields.optional_object("f:metadata")? else { continue };
        let manager = entry.optional_str("manager")?.unwrap_or_default();
        for (key, _) in owned.optional_object("f:annotations")?.map_or(Ok(Vec::new()), |all| all.all_members())? {
            if let Some(key) = key.strip_prefix("f:") {
                managers.insert(key.to_owned(), manager.to_owned());
            }
        }
    }
    Ok(managers)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::facts::Item;

    #[test]
    fn what_kureds_flags_come_from_is_read() {
        let document = json!({
            "metadata": {
                "name": "kured", "namespace": "kube-system", "generation": 4,
                "annotations": {"example.com/lock": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
                "managedFields": [{"manager": "kubectl-annotate", "operation": "Update",
                    "fieldsV1": {"f:metadata": {"f:annotations": {".": {}, "f:example.com/lock": {}}}}}],
            },
            "spec": {"selector": {"matchLabels": {"name": "kured"}}, "template": {"spec": {"containers": [{
                "name": "kured", "image": "ghcr.io/kubereboot/kured:1.23.0",
                "env": [
                    {"name": "KURED_NODE_ID", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                    {"name": "KURED_NOTIFY_URL", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                    {"name": "KURED_PERIOD", "value": "1m"},
                ],
                "envFrom": [{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}],
            }]}}},
            "status": {"desiredNumberScheduled": 3, "numberReady": 3, "updatedNumberScheduled": 2, "observedGeneration": 4},
        });
        let Item::Good(found) = DaemonSet::item(&document) else { panic!("it can be understood") };
        assert_eq!(found.metadata.annotations, BTreeMap::from([("example.com/lock".to_owned(), "x".to_owned())]));
        assert_eq!(found.annotation_managers.get("example.com/lock").map(String::as_str), Some("kubectl-annotate"));
        assert_eq!((found.updated, found.is_rolled_out()), (2, false));
        let container = found.containers.first().expect("one");
        assert_eq!(container.node_name_env, ["KURED_NODE_ID"]);
        assert_eq!(container.env_from, ["ConfigMap c", "Secret s"]);
        assert_eq!(container.env[1], ("KURED_NOTIFY_URL".to_owned(), None));
        assert_eq!(container.env[2], ("KURED_PERIOD".to_owned(), Some("1m".to_owned())));
    }
}
