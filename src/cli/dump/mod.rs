//! A dump: files of `kubectl get KIND -A -o yaml|json` output instead of a live cluster.
//!
//! A dump tells less than a cluster, and nothing that it does not tell is taken for fine:
//! - a kind that is built in, or in the dump's CRD list, and has no file is *unknown*, and the message names the
//!   command that is missing; a kind whose group the CRD list lacks is *absent*;
//! - `kubectl get -o yaml` writes an empty `List` both for "there are none" and for "you may not see them" (the error
//!   goes to stderr only), so an empty `List` is unknown unless `--complete` says otherwise. The typed lists of
//!   `kubectl get --raw` do not have this flaw;
//! - objects that are there one by one (`kubectl get KIND NAME`) do not tell whether there are others: a kind without
//!   a list is unknown unless `--complete` says otherwise;
//! - an object that is there twice with different contents is an error: the files are of different moments, and
//!   which of them is newer cannot be told (resourceVersions are not comparable by their contract).

mod documents;
mod files;
mod objects;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use maint_core::api::SourceId;
use maint_core::config::Settings;
use maint_core::facts::{
    DaemonSet, Facts, FailureKind, Fill, Item, Lease, Listed, Malformed, Namespaces, Observation, PodSelector, Source,
    SourceSpec,
};
use maint_core::jiff::Timestamp;
use maint_core::{kured, network};
use serde_json::Value;

use objects::{Object, Objects, Said};

pub use files::Limits;

/// Why a dump cannot be judged: file, line, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct DumpError {
    /// The file or folder.
    pub path: PathBuf,
    /// Line, from 1, where one can be named.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub help: String,
}

impl DumpError {
    fn new(path: &Path, line: Option<usize>, problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, problem: problem.into(), help: help.into() }
    }
}

impl fmt::Display for DumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}\n  help: {}", self.problem, self.help)
    }
}

/// A dump that was read completely.
#[derive(Debug)]
pub struct Dump {
    objects: Objects,
    complete: bool,
}

impl Dump {
    /// Reads a file, or all files of a folder.
    ///
    /// # Errors
    /// If anything in it is empty, cut, foreign, contradictory or beyond the limits: then nothing is judged.
    pub fn read(path: &Path, complete: bool, limits: Limits) -> Result<Self, DumpError> {
        let mut objects = Objects::default();
        for file in files::list(path, limits)? {
            let bytes = files::read(&file, limits)?;
            for document in documents::parse(&file, &bytes)? {
                objects.take(&file, document, limits)?;
            }
        }
        Ok(Self { objects, complete })
    }

    /// The newest `renewTime` of all Leases: a kubelet renews its own every ten seconds, so this is when the dump was
    /// taken, by the clock of the node that is ahead.
    #[must_use]
    pub fn newest_lease(&self) -> Option<Timestamp> {
        self.objects.of(SourceId::Leases).iter().filter_map(renew_time).max()
    }

    /// What the dump says, as a live list would: with the namespaces of the settings, observed at the dump's clock.
    #[must_use]
    pub fn facts(&self, settings: &Settings, at: Timestamp) -> Facts {
        let mut facts = Facts::default();
        facts.fill(&mut Reader { dump: self, settings, at });
        facts
    }
}

struct Reader<'a> {
    dump: &'a Dump,
    settings: &'a Settings,
    at: Timestamp,
}

impl Fill for Reader<'_> {
    fn list<S: Source>(&mut self, row: &SourceSpec) -> Listed<S> {
        let (spec, at) = (*row, self.at);
        let failed = |kind, detail| Observation::Failed { kind, detail, at };
        // Where the fact is not decoded yet: a kind is kept once, whatever rows read it.
        let kind = objects::row_of(&spec);
        match self.dump.objects.said(kind) {
            Said::Refused { kind, detail } => return failed(*kind, detail.clone()),
            Said::Nothing => return self.without_file(&spec),
            Said::Singles { file } if !self.dump.complete => {
                let detail = format!(
                    "the dump has single objects of kind {} ({}) and no list, so there may be others; save `kubectl get {} -A -o \
                     yaml`, or say --complete",
                    spec.kind,
                    file.display(),
                    full_resource(&spec)
                );
                return failed(FailureKind::Partial, detail);
            }
            Said::EmptyList { file } if !self.dump.complete => {
                let detail = format!(
                    "{} holds an empty List, which kubectl writes for \"none\" and for \"forbidden\" alike; save `kubectl \
                     get --raw {}` instead, or say --complete",
                    file.display(),
                    raw_path(&spec)
                );
                return failed(FailureKind::Partial, detail);
            }
            Said::EmptyList { .. } | Said::Singles { .. } | Said::Listed => {}
        }
        let objects = self.dump.objects.of(kind.id);
        let selected = match spec.namespaces {
            Namespaces::OfKured => Some(("kured runs", kured::pod_selectors(&self.list(&DaemonSet::SPEC)))),
            Namespaces::OfNetworkAgents => {
                Some(("network agents run", network::pod_selectors(&self.list(&DaemonSet::SPEC))))
            }
            _ => None,
        };
        let wanted: Vec<&Object> = match selected {
            Some((who, selectors)) => match selectors.and_then(|selectors| selected_by(who, &selectors, objects)) {
                Ok(wanted) => wanted,
                Err((kind, detail)) => return failed(kind, detail),
            },
            None => objects.iter().filter(|object| self.is_wanted(&spec, object)).collect(),
        };
        if let Some(detail) = self.misses_its_namespace(&spec, objects, &wanted) {
            return failed(FailureKind::Partial, detail);
        }
        if let Some(detail) = self.misses_a_node(&spec, objects) {
            return failed(FailureKind::Partial, detail);
        }
        let value = wanted.into_iter().map(|object| item::<S>(object)).collect();
        Observation::Known { value, at }
    }
}

/// Seconds before the newest renewal within which a kubelet's Lease proves that its node is there: four renewals.
const ALIVE_SECONDS: i64 = 40;

impl Reader<'_> {
    /// A kind without a file: absent only where the dump's CRD list lacks its whole group.
    fn without_file<T>(&self, spec: &SourceSpec) -> Observation<T> {
        let at = self.at;
        let kind = if spec.group.is_empty() { spec.kind.to_owned() } else { format!("{} ({})", spec.kind, spec.group) };
        let add = format!("add the output of `kubectl get {} -A -o yaml`", full_resource(spec));
        let detail = if spec.built_in {
            format!("no file in the dump has kind {kind}; {add}")
        } else {
            match self.dump.objects.crd_groups() {
                None => format!(
                    "no file in the dump has kind {kind}, and no CRD list tells whether it exists; add the output of \
                     `kubectl get crd -o yaml`"
                ),
                Some(groups) if !groups.contains(spec.group) => return Observation::Absent { at },
                Some(_) => format!("no file in the dump has kind {kind}, whose group is in the CRD list; {add}"),
            }
        };
        Observation::Failed { kind: FailureKind::Partial, detail, at }
    }

    fn is_wanted(&self, spec: &SourceSpec, object: &Object) -> bool {
        let namespace = object.part("namespace").unwrap_or_default();
        // An object without a namespace where its kind has one is odd; the gate shall see it.
        let in_namespace = namespace.is_empty() || self.namespaces(spec).is_none_or(|names| names.contains(&namespace));
        in_namespace && spec.label_selector.is_none_or(|selector| has_label(&object.value, selector))
    }

    /// A kubelet that renews its Lease without a Node in the dump: only some of the nodes were saved, by name or label.
    fn misses_a_node(&self, spec: &SourceSpec, nodes: &[Object]) -> Option<String> {
        if spec.id != SourceId::Nodes {
            return None;
        }
        let newest = self.dump.newest_lease()?;
        let known: BTreeSet<&str> = nodes.iter().filter_map(|node| node.part("name")).collect();
        let is_alive = |lease: &&Object| {
            let renewed = renew_time(lease).map(|renewed| newest.duration_since(renewed).as_secs());
            lease.part("namespace") == Some(Lease::NODE_NAMESPACE) && renewed.is_some_and(|age| age <= ALIVE_SECONDS)
        };
        let leases = self.dump.objects.of(SourceId::Leases).iter();
        let missing =
            leases.filter(is_alive).filter_map(|lease| lease.part("name")).find(|name| !known.contains(name))?;
        Some(format!(
            "the kubelet of {missing} renews its Lease, and the dump has no Node {missing}; save `kubectl get nodes -A -o yaml`, \
             without names and labels"
        ))
    }

    /// The namespaces of a live list; none for all.
    fn namespaces(&self, spec: &SourceSpec) -> Option<Vec<&str>> {
        let settings = self.settings;
        match spec.namespaces {
            Namespaces::All
            | Namespaces::OnTarget
            | Namespaces::Unscheduled
            | Namespaces::OfKured
            | Namespaces::OfNetworkAgents => None,
            Namespaces::These(names) => Some(names.to_vec()),
            Namespaces::Dns => Some(vec![&settings.coredns.namespace]),
            Namespaces::DnsAndDefault => Some(vec![&settings.coredns.namespace, "default"]),
            Namespaces::Longhorn => Some(vec![&settings.longhorn.namespace]),
            Namespaces::Own => Some(vec![&settings.namespace]),
            Namespaces::Actions => Some(vec![&settings.action.pod.namespace, &settings.kured.sentinel.namespace]),
        }
    }

    /// A list that has objects, and none where maint looks: Longhorn runs in another namespace than the settings say,
    /// or `-A` was forgotten. Taking that for an empty list would be taking it for fine.
    fn misses_its_namespace(&self, spec: &SourceSpec, all: &[Object], wanted: &[&Object]) -> Option<String> {
        if all.is_empty() || !wanted.is_empty() {
            return None;
        }
        let mut found: Vec<&str> = all.iter().filter_map(|object| object.part("namespace")).collect();
        found.sort_unstable();
        found.dedup();
        let looked_for = self.namespaces(spec)?.join(", ");
        let resource = full_resource(spec);
        match (spec.namespaces, found.as_slice()) {
            (Namespaces::Longhorn, found) => Some(format!(
                "all {resource} of the dump are in {}, none in {looked_for}; set [longhorn] namespace",
                found.join(", ")
            )),
            // Every namespace has a ConfigMap (kube-root-ca.crt), so a single namespace means a dump without -A.
            (Namespaces::Own, [only]) => Some(format!(
                "the dump has {resource} of namespace {only} only, none of {looked_for}; save `kubectl get {resource} -A \
                 -o yaml`"
            )),
            _ => None,
        }
    }
}

/// The pods that some DaemonSets select; `who` says whose these are and what they do.
fn selected_by<'o>(
    who: &str,
    selectors: &[PodSelector],
    pods: &'o [Object],
) -> Result<Vec<&'o Object>, (FailureKind, String)> {
    for PodSelector { namespace, .. } in selectors {
        if !pods.iter().any(|pod| pod.part("namespace") == Some(namespace)) {
            let detail =
                format!("{who} in {namespace}, and the dump has no pods of it; save `kubectl get pods -A -o yaml`");
            return Err((FailureKind::Partial, detail));
        }
    }
    let selects = |one: &PodSelector, pod: &Object| {
        let labels = pod.value.pointer("/metadata/labels");
        let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
        pod.part("namespace") == Some(&one.namespace) && one.labels.iter().all(|(key, value)| label(key) == Some(value))
    };
    Ok(pods.iter().filter(|pod| selectors.iter().any(|one| selects(one, pod))).collect())
}

/// Decodes an object, unless its version is another than the one that the decoder knows.
fn item<S: Source>(object: &Object) -> Item<S> {
    let version = object.api_version.rsplit('/').next().unwrap_or_default();
    if version == S::SPEC.version {
        return S::item(&object.value);
    }
    let wanted = if S::SPEC.group.is_empty() {
        S::SPEC.version.to_owned()
    } else {
        format!("{}/{}", S::SPEC.group, S::SPEC.version)
    };
    Item::Malformed(Malformed {
        object: object.name(S::SPEC.kind),
        path: "apiVersion".to_owned(),
        problem: format!("is {}, wanted {wanted}", object.api_version),
    })
}

fn renew_time(lease: &Object) -> Option<Timestamp> {
    lease.value.pointer("/spec/renewTime")?.as_str()?.parse().ok()
}

fn has_label(value: &Value, selector: &str) -> bool {
    let label = |key: &str| value.pointer("/metadata/labels").and_then(|labels| labels.get(key));
    match selector.split_once('=') {
        Some((key, wanted)) => label(key).and_then(Value::as_str) == Some(wanted),
        // A key alone: the label is there.
        None => label(selector).is_some(),
    }
}

/// `volumes.longhorn.io`, or `nodes` for the core group.
fn full_resource(spec: &SourceSpec) -> String {
    if spec.group.is_empty() || spec.built_in {
        spec.resource.to_owned()
    } else {
        format!("{}.{}", spec.resource, spec.group)
    }
}

fn raw_path(spec: &SourceSpec) -> String {
    if spec.group.is_empty() {
        format!("/api/{}/{}", spec.version, spec.resource)
    } else {
        format!("/apis/{}/{}/{}", spec.group, spec.version, spec.resource)
    }
}

#[cfg(test)]
mod tests;
