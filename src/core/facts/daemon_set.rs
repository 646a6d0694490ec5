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
    /// `spec.selector.matchLabels`
    pub selector: BTreeMap<String, String>,
    /// `spec.template.spec.containers`
    pub containers: Vec<Container>,
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
        let mut env = Vec::new();
        for variable in container.objects("env")? {
            let from_elsewhere = variable.optional_object("valueFrom")?.is_some();
            // An `env` without `value` is the empty string (EnvVar.value: "Defaults to \"\"").
            let value = variable.optional_str("value")?.unwrap_or_default().to_owned();
            env.push((variable.str("name")?.to_owned(), (!from_elsewhere).then_some(value)));
        }
        Ok(Self {
            name: container.optional_str("name")?.unwrap_or_default().to_owned(),
            image: container.optional_str("image")?.unwrap_or_default().to_owned(),
            command: container.strings("command")?,
            args: container.strings("args")?,
            env,
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
        Ok(Self {
            metadata: Metadata::of(root)?,
            desired: status.i64("desiredNumberScheduled")?,
            ready: status.i64("numberReady")?,
            updated: status.optional_i64("updatedNumberScheduled")?.unwrap_or_default(),
            observed_generation: status.optional_i64("observedGeneration")?.unwrap_or_default(),
            selector: selector.map_or_else(|| Ok(BTreeMap::new()), |selector| selector.string_map("matchLabels"))?,
            containers: Container::list(&template)?,
        })
    }
}
