//! The table of kinds that the API server serves. A kind that is not in it is an unknown path.

use std::collections::BTreeMap;

use serde_json::Value;

/// One kind in one version.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "four independent properties of a kind")]
pub struct Kind {
    /// API group; empty for core.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Plural resource name.
    pub resource: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether `/status` exists.
    pub status: bool,
    /// Whether a change of the specification raises `metadata.generation`.
    pub generation: bool,
    /// Whether it comes from a CustomResourceDefinition.
    pub custom: bool,
}

/// Group and resource: what a kind's objects are stored under.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    /// API group; empty for core.
    pub group: String,
    /// Plural resource name.
    pub resource: String,
}

impl Resource {
    /// From its parts.
    #[must_use]
    pub fn new(group: &str, resource: &str) -> Self {
        Self { group: group.to_owned(), resource: resource.to_owned() }
    }
}

impl Kind {
    /// `resource.group`, or the bare resource for core, as messages write it.
    #[must_use]
    pub fn qualified(&self) -> String {
        if self.group.is_empty() { self.resource.clone() } else { format!("{}.{}", self.resource, self.group) }
    }

    /// `Kind.group`, as messages about invalid objects write it.
    #[must_use]
    pub fn qualified_kind(&self) -> String {
        if self.group.is_empty() { self.kind.clone() } else { format!("{}.{}", self.kind, self.group) }
    }

    /// `group/version`
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// What its objects are stored under.
    #[must_use]
    pub fn stored_as(&self) -> Resource {
        Resource::new(&self.group, &self.resource)
    }
}

/// (group, version, kind, resource, flags): n = namespaced, s = status subresource, g = generation.
const BUILT_IN: &[(&str, &str, &str, &str, &str)] = &[
    ("", "v1", "Namespace", "namespaces", "s"),
    ("", "v1", "Node", "nodes", "s"),
    ("", "v1", "Pod", "pods", "nsg"),
    ("", "v1", "ConfigMap", "configmaps", "n"),
    ("", "v1", "Secret", "secrets", "n"),
    ("", "v1", "Service", "services", "ns"),
    ("", "v1", "ServiceAccount", "serviceaccounts", "n"),
    ("", "v1", "Event", "events", "n"),
    ("", "v1", "PersistentVolume", "persistentvolumes", "s"),
    ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "ns"),
    ("apps", "v1", "Deployment", "deployments", "nsg"),
    ("apps", "v1", "ReplicaSet", "replicasets", "nsg"),
    ("apps", "v1", "StatefulSet", "statefulsets", "nsg"),
    ("apps", "v1", "DaemonSet", "daemonsets", "nsg"),
    ("apps", "v1", "ControllerRevision", "controllerrevisions", "n"),
    ("batch", "v1", "Job", "jobs", "nsg"),
    ("batch", "v1", "CronJob", "cronjobs", "nsg"),
    ("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "ns"),
    ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", "nsg"),
    ("coordination.k8s.io", "v1", "Lease", "leases", "n"),
    ("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", "ng"),
    ("events.k8s.io", "v1", "Event", "events", "n"),
    ("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", "s"),
    ("storage.k8s.io", "v1", "CSINode", "csinodes", ""),
    ("storage.k8s.io", "v1", "CSIDriver", "csidrivers", ""),
    ("storage.k8s.io", "v1", "StorageClass", "storageclasses", ""),
    ("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", "g"),
    ("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "g"),
    ("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "g"),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", "sg"),
];

/// The kinds that are served now.
#[derive(Debug, Clone)]
pub struct Kinds(BTreeMap<(String, String, String), Kind>);

impl Default for Kinds {
    fn default() -> Self {
        let mut kinds = Self(BTreeMap::new());
        for (group, version, kind, resource, flags) in BUILT_IN {
            kinds.register(Kind {
                group: (*group).to_owned(),
                version: (*version).to_owned(),
                kind: (*kind).to_owned(),
                resource: (*resource).to_owned(),
                namespaced: flags.contains('n'),
                status: flags.contains('s'),
                generation: flags.contains('g'),
                custom: false,
            });
        }
        kinds
    }
}

impl Kinds {
    /// Adds or replaces a kind.
    pub fn register(&mut self, kind: Kind) {
        self.0.insert((kind.group.clone(), kind.version.clone(), kind.resource.clone()), kind);
    }

    /// Serves no version of a custom resource any more.
    pub fn forget(&mut self, group: &str, resource: &str) {
        self.0.retain(|_, kind| !(kind.custom && kind.group == group && kind.resource == resource));
    }

    /// The kind of a path.
    #[must_use]
    pub fn find(&self, group: &str, version: &str, resource: &str) -> Option<&Kind> {
        self.0.get(&(group.to_owned(), version.to_owned(), resource.to_owned()))
    }

    /// Whether a group and version is built in: an unknown resource below it is answered as JSON (measured).
    #[must_use]
    pub fn is_built_in(&self, group: &str, version: &str) -> bool {
        self.0.values().any(|kind| !kind.custom && kind.group == group && kind.version == version)
    }

    /// Any version of a resource, for messages and for writes that bypass the API.
    #[must_use]
    pub fn any_version(&self, resource: &Resource) -> Option<&Kind> {
        self.0.values().find(|kind| kind.group == resource.group && kind.resource == resource.resource)
    }

    /// The kind that an object names by `apiVersion` and `kind`.
    #[must_use]
    pub fn of_object(&self, object: &Value) -> Option<&Kind> {
        let api_version = object.get("apiVersion")?.as_str()?;
        let name = object.get("kind")?.as_str()?;
        self.0.values().find(|kind| kind.kind == name && kind.api_version() == api_version)
    }

    /// All of them, by group, version and resource.
    pub fn iter(&self) -> impl Iterator<Item = &Kind> {
        self.0.values()
    }
}

/// The kinds that a CustomResourceDefinition serves; parts that are missing serve nothing.
#[must_use]
pub fn of_definition(definition: &Value) -> Vec<Kind> {
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let (Some(group), Some(kind), Some(resource)) =
        (text("/spec/group"), text("/spec/names/kind"), text("/spec/names/plural"))
    else {
        return Vec::new();
    };
    let namespaced = text("/spec/scope").as_deref() == Some("Namespaced");
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    versions
        .into_iter()
        .flatten()
        .filter(|version| version.get("served").and_then(Value::as_bool) == Some(true))
        .filter_map(|version| {
            Some(Kind {
                group: group.clone(),
                version: version.get("name")?.as_str()?.to_owned(),
                kind: kind.clone(),
                resource: resource.clone(),
                namespaced,
                status: version.pointer("/subresources/status").is_some(),
                generation: true,
                custom: true,
            })
        })
        .collect()
}
