//! Sorts the documents of a dump by kind: lists are opened, statuses and empty lists remembered, the rest dropped.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use maint_core::api::SourceId;
use maint_core::facts::{FailureKind, SOURCES, SourceSpec};
use serde_json::Value;

use super::documents::Document;
use super::{DumpError, Limits, full_resource};

/// One object of a kind that maint reads.
#[derive(Debug)]
pub struct Object {
    /// `apiVersion`, its own or that of its list.
    pub api_version: String,
    /// The document.
    pub value: Value,
    /// Where it was read: `file:line` of its document.
    place: (PathBuf, usize),
}

impl Object {
    /// A text of `metadata`.
    pub fn part(&self, key: &str) -> Option<&str> {
        part(&self.value, key)
    }

    /// `Kind namespace/name`
    pub fn name(&self, kind: &str) -> String {
        let name = self.part("name").unwrap_or("without a name");
        match self.part("namespace") {
            Some(namespace) if !namespace.is_empty() => format!("{kind} {namespace}/{name}"),
            _ => format!("{kind} {name}"),
        }
    }
}

/// What the dump says of a kind as a whole.
#[derive(Debug)]
pub enum Said {
    /// Nothing.
    Nothing,
    /// There are objects of it, each by itself, and no list that tells whether there are others.
    Singles {
        /// The first of their files.
        file: PathBuf,
    },
    /// There is a list of it.
    Listed,
    /// A `List` without items, in a file that is named after the kind.
    EmptyList {
        /// The file.
        file: PathBuf,
    },
    /// The API refused or failed, or the list is cut.
    Refused {
        /// How.
        kind: FailureKind,
        /// With the file's name.
        detail: String,
    },
}

/// The objects of a dump by kind.
#[derive(Debug, Default)]
pub struct Objects {
    by_source: BTreeMap<SourceId, Vec<Object>>,
    said: BTreeMap<SourceId, Said>,
    /// Index of an object by its kind, namespace and name.
    known: HashMap<(SourceId, String, String), usize>,
    /// API groups of the CRD list; none if the dump has no CRD list.
    crd_groups: Option<BTreeSet<String>>,
    count: usize,
}

/// Where a document stands.
struct Place<'a> {
    file: &'a Path,
    line: usize,
}

impl Place<'_> {
    fn error(&self, problem: impl Into<String>, help: impl Into<String>) -> DumpError {
        DumpError::new(self.file, Some(self.line), problem, help)
    }
}

impl Objects {
    /// The objects of a kind, in the order of reading.
    pub fn of(&self, source: SourceId) -> &[Object] {
        self.by_source.get(&source).map_or(&[], Vec::as_slice)
    }

    /// What is said of a kind as a whole.
    pub fn said(&self, spec: &SourceSpec) -> &Said {
        self.said.get(&spec.id).unwrap_or(&Said::Nothing)
    }

    /// API groups of the dump's CRD list, if it has one.
    pub const fn crd_groups(&self) -> Option<&BTreeSet<String>> {
        self.crd_groups.as_ref()
    }

    /// Takes one document.
    pub fn take(&mut self, file: &Path, document: Document, limits: Limits) -> Result<(), DumpError> {
        let place = Place { file, line: document.line };
        self.take_value(&place, document.value, false, limits)
    }

    /// Takes a document, or an item of a list.
    fn take_value(
        &mut self,
        place: &Place<'_>,
        mut value: Value,
        listed: bool,
        limits: Limits,
    ) -> Result<(), DumpError> {
        let (api_version, kind) = match (text(&value, "apiVersion"), text(&value, "kind")) {
            (Some(api_version), Some(kind)) => (api_version.to_owned(), kind.to_owned()),
            _ if value.get("items").is_some() => {
                let problem = "has items and no kind";
                return Err(
                    place.error(problem, "the file is cut (kubectl writes the kind after the items): save it again")
                );
            }
            _ => {
                let help =
                    "save the output of `kubectl get KIND -A -o yaml` (or `-o json`) instead, or remove the file";
                return Err(place.error("is no Kubernetes object: apiVersion and kind are missing", help));
            }
        };
        if kind == "Status" && value.get("items").is_none() {
            return self.take_status(place, &value);
        }
        let items = value.get_mut("items").map(Value::take);
        match (kind.strip_suffix("List"), items) {
            (Some(of), Some(items)) => self.take_list(place, &api_version, of, &value, items, limits),
            (Some(_), None) => Err(place.error(format!("is a {kind} without items"), "the file is cut: save it again")),
            (None, _) => self.take_object(place, api_version, &kind, value, listed, limits),
        }
    }

    /// Opens a list. `of` is empty for kubectl's own `List`, whose items name their kinds.
    fn take_list(
        &mut self,
        place: &Place<'_>,
        api_version: &str,
        of: &str,
        list: &Value,
        items: Value,
        limits: Limits,
    ) -> Result<(), DumpError> {
        let items = match items {
            Value::Array(items) => items,
            // Go writes a list without items as null.
            Value::Null => Vec::new(),
            _ => return Err(place.error("has items that are no list", "save the output of kubectl again")),
        };
        let typed = (!of.is_empty()).then(|| find(api_version, of)).flatten();
        let named = find_by_file(place.file);
        if let Some(spec) = typed {
            self.mark(spec.id, Said::Listed);
        } else if items.is_empty()
            && of.is_empty()
            && let Some(spec) = named
        {
            self.mark(spec.id, Said::EmptyList { file: place.file.to_owned() });
        }
        // A page of a longer list: what follows is not in the dump.
        let is_page = list.pointer("/metadata/continue").and_then(Value::as_str).is_some_and(|next| !next.is_empty());
        if is_page && let Some(spec) = typed.or(named) {
            let detail = format!("{} holds a page of a longer list (metadata.continue is set)", place.file.display());
            self.mark(spec.id, Said::Refused { kind: FailureKind::Partial, detail });
        }
        let is_crd = |api_version: &str, kind: &str| group_of(api_version) == CRD_GROUP && kind == CRD_KIND;
        if !items.is_empty() && (is_crd(api_version, of) || items.iter().all(|item| is_crd_item(item, is_crd))) {
            if !is_page {
                self.take_crds(&items);
            }
            return Ok(());
        }
        for item in items {
            if !item.is_object() {
                return Err(place.error("has an item that is no object", "save the output of kubectl again"));
            }
            match (text(&item, "apiVersion"), text(&item, "kind")) {
                // Items of a typed list do not repeat what the list says.
                (None, None) if !of.is_empty() => {
                    self.take_object(place, api_version.to_owned(), of, item, true, limits)?;
                }
                _ => self.take_value(place, item, true, limits)?,
            }
        }
        Ok(())
    }

    /// Only a list tells which CRDs there are: a single CRD says nothing of the others.
    fn take_crds(&mut self, items: &[Value]) {
        let groups = items.iter().filter_map(|item| item.pointer("/spec/group")?.as_str()).map(str::to_owned);
        self.crd_groups.get_or_insert_default().extend(groups);
    }

    fn take_object(
        &mut self,
        place: &Place<'_>,
        api_version: String,
        kind: &str,
        value: Value,
        listed: bool,
        limits: Limits,
    ) -> Result<(), DumpError> {
        let Some(spec) = find(&api_version, kind) else { return Ok(()) };
        self.count += 1;
        if self.count > limits.objects {
            let problem = format!("brings the dump to more than {} objects", limits.objects);
            return Err(place.error(problem, "dump one cluster only, and only the kinds that maint reads"));
        }
        self.mark(spec.id, if listed { Said::Listed } else { Said::Singles { file: place.file.to_owned() } });
        let object = Object { api_version, value, place: (place.file.to_owned(), place.line) };
        let objects = self.by_source.entry(spec.id).or_default();
        if let Some(name) = object.part("name") {
            let key = (spec.id, object.part("namespace").unwrap_or_default().to_owned(), name.to_owned());
            if let Some(first) = self.known.get(&key).and_then(|index| objects.get(*index)) {
                return if first.value == object.value { Ok(()) } else { Err(twice(place, spec, first, &object)) };
            }
            self.known.insert(key, objects.len());
        }
        objects.push(object);
        Ok(())
    }

    /// A `Status` in place of a list: what the API said instead of an answer.
    fn take_status(&mut self, place: &Place<'_>, status: &Value) -> Result<(), DumpError> {
        let named = status.pointer("/details/kind").and_then(Value::as_str);
        let group = status.pointer("/details/group").and_then(Value::as_str).unwrap_or_default();
        // `details.kind` holds the plural resource name as a rule, the kind at times.
        let by_details = named.and_then(|name| {
            let is_named = |spec: &&SourceSpec| spec.resource == name || spec.kind.eq_ignore_ascii_case(name);
            SOURCES.iter().filter(|spec| spec.group == group).find(is_named)
        });
        let Some(spec) = by_details.or_else(|| if named.is_none() { find_by_file(place.file) } else { None }) else {
            // A refusal of a kind that maint does not read is no loss.
            return if named.is_some() {
                Ok(())
            } else {
                let help = "name the file after the resource, such as nodes.json or volumes.longhorn.io.json";
                Err(place.error("is a Status that names no kind", help))
            };
        };
        let reason = text(status, "reason").unwrap_or("no reason");
        let code = status.get("code").and_then(Value::as_i64).unwrap_or_default();
        let kind = match (reason, code) {
            ("Forbidden" | "Unauthorized", _) | (_, 401 | 403) => FailureKind::Forbidden,
            ("Timeout" | "ServerTimeout", _) | (_, 504) => FailureKind::Timeout,
            _ => FailureKind::Server,
        };
        let message = text(status, "message").unwrap_or("no message");
        let detail = format!("{} holds a Status {reason}: {message}", place.file.display());
        self.mark(spec.id, Said::Refused { kind, detail });
        Ok(())
    }

    /// A refusal outlasts everything, a list outlasts what proves less.
    fn mark(&mut self, source: SourceId, said: Said) {
        let rank = |said: &Said| match said {
            Said::Nothing => 0,
            Said::EmptyList { .. } => 1,
            Said::Singles { .. } => 2,
            Said::Listed => 3,
            Said::Refused { .. } => 4,
        };
        let known = self.said.entry(source).or_insert(Said::Nothing);
        if rank(&said) > rank(known) {
            *known = said;
        }
    }
}

const CRD_GROUP: &str = "apiextensions.k8s.io";
const CRD_KIND: &str = "CustomResourceDefinition";

fn is_crd_item(item: &Value, is_crd: impl Fn(&str, &str) -> bool) -> bool {
    matches!((text(item, "apiVersion"), text(item, "kind")), (Some(version), Some(kind)) if is_crd(version, kind))
}

fn twice(place: &Place<'_>, spec: &SourceSpec, first: &Object, second: &Object) -> DumpError {
    let version = |object: &Object| object.part("resourceVersion").unwrap_or("none").to_owned();
    let problem = format!(
        "{} differs from the one in {}:{} (resourceVersion {} and {})",
        second.name(spec.kind),
        first.place.0.display(),
        first.place.1,
        version(second),
        version(first)
    );
    place.error(problem, "the files are of different moments: keep those of one")
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn part<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get("metadata").and_then(|metadata| metadata.get(key)).and_then(Value::as_str)
}

fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// The row under which a kind is kept: the first of those that read it.
pub fn row_of(spec: &SourceSpec) -> &'static SourceSpec {
    let same = |one: &&'static SourceSpec| one.kind == spec.kind && one.group == spec.group;
    SOURCES.iter().find(same).unwrap_or(&SOURCES[0])
}

/// The row of a kind: group and kind decide, so that `nodes.longhorn.io` is not taken for a Node.
fn find(api_version: &str, kind: &str) -> Option<&'static SourceSpec> {
    SOURCES.iter().find(|spec| spec.kind == kind && spec.group == group_of(api_version))
}

/// kubectl's short names of what is read.
const SHORT_NAMES: [(&str, &str); 11] = [
    ("cm", "configmaps"),
    ("crd", "customresourcedefinitions"),
    ("crds", "customresourcedefinitions"),
    ("deploy", "deployments"),
    ("ds", "daemonsets"),
    ("hpa", "horizontalpodautoscalers"),
    ("no", "nodes"),
    ("pdb", "poddisruptionbudgets"),
    ("po", "pods"),
    ("rs", "replicasets"),
    ("sts", "statefulsets"),
];

/// The row that a file is named after: `nodes.json`, `pdb.yaml`, `volumes.longhorn.io.yaml`.
fn find_by_file(file: &Path) -> Option<&'static SourceSpec> {
    let stem = file.file_stem()?.to_str()?.to_ascii_lowercase();
    let stem = SHORT_NAMES.iter().find(|(short, _)| *short == stem).map_or(stem, |(_, name)| (*name).to_owned());
    SOURCES.iter().find(|spec| full_resource(spec) == stem || format!("{}.{}", spec.resource, spec.group) == stem)
}
