//! One source: all its namespaces, all their pages, decoded object by object.

use std::time::Duration;

use jiff::Timestamp;
use maint_core::api::SourceId;
use maint_core::config::Settings;
use maint_core::facts::{FailureKind, Item, Listed, Namespaces, Observation, Source, SourceSpec};

use crate::ports::{PageRequest, ReadError, Reader};
use crate::runtime::Clock;

/// Objects a page.
const PAGE_LIMIT: u32 = 500;
/// Pages of one namespace at most: a server that never ends its list must not hold us.
const MAX_PAGES: usize = 1_000;
/// Limit of one source with all its pages, in seconds.
const SOURCE_SECONDS: u64 = 60;
/// How often a list whose continue token expired is begun again.
const MAX_RESTARTS: usize = 1;

/// The node that a reading is about.
#[derive(Clone, Copy, Default)]
pub(super) struct About<'a> {
    /// The node whose objects are wanted where a row asks for one.
    pub(super) target: Option<&'a str>,
    /// Of nodes only this one is read.
    pub(super) this_node_only: bool,
}

/// One source to be read.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    /// Its row of the table.
    pub(super) spec: &'a SourceSpec,
    /// The node.
    pub(super) about: About<'a>,
}

/// Reads a source.
pub(super) async fn read<S: Source>(
    reader: &impl Reader,
    clock: &Clock,
    settings: &Settings,
    row: Row<'_>,
) -> Listed<S> {
    let at = clock.now();
    let limit = Duration::from_secs(SOURCE_SECONDS);
    match clock.timeout(limit, all_namespaces(reader, settings, row)).await {
        Ok(Ok(value)) => Observation::Known { value, at },
        Ok(Err(failure)) => failure.observation(at),
        Err(late) => {
            let detail = format!("listing {}: {late}", row.spec.resource);
            Observation::Failed { kind: FailureKind::Timeout, detail, at }
        }
    }
}

/// One namespace and the labels of what is wanted there.
pub(super) type Selected = (String, String);

/// Reads a source in these namespaces with these selectors only. What two of them find is one object.
pub(super) async fn read_selected<S: Source>(
    reader: &impl Reader,
    clock: &Clock,
    spec: &SourceSpec,
    selected: &[Selected],
) -> Listed<S> {
    let at = clock.now();
    let all = async {
        let mut items = Vec::new();
        for (index, (namespace, labels)) in selected.iter().enumerate() {
            let selectors = Selectors { labels: (!labels.is_empty()).then_some(labels), fields: None };
            let read = one_namespace(reader, spec, Some(namespace), selectors, &mut items).await;
            read.map_err(|(error, pages)| Failure {
                error,
                place: format!("listing {} in {namespace}", spec.resource),
                read_before: (pages > 0 || index > 0).then_some(items.len()),
            })?;
        }
        Ok::<Vec<Item<S>>, Failure>(items)
    };
    match clock.timeout(Duration::from_secs(SOURCE_SECONDS), all).await {
        Ok(Ok(value)) => Observation::Known { value, at },
        Ok(Err(failure)) => failure.observation(at),
        Err(late) => {
            let detail = format!("listing {}: {late}", spec.resource);
            Observation::Failed { kind: FailureKind::Timeout, detail, at }
        }
    }
}

/// What narrows a list.
#[derive(Debug, Clone, Copy, Default)]
struct Selectors<'a> {
    labels: Option<&'a str>,
    fields: Option<&'a str>,
}

/// Why a list is incomplete.
struct Failure {
    error: ReadError,
    /// Where it happened, for people.
    place: String,
    /// Objects that were read before.
    read_before: Option<usize>,
}

impl Failure {
    fn observation<T>(self, at: Timestamp) -> Observation<T> {
        let Self { error, place, read_before } = self;
        match (error.kind(), read_before) {
            (None, None) => Observation::Absent { at },
            (kind, Some(count)) => {
                let kind_text = kind.map_or("absent", FailureKind::as_str);
                let detail = format!("{place}: {kind_text} after {count} objects: {error}");
                Observation::Failed { kind: FailureKind::Partial, detail, at }
            }
            (Some(kind), None) => Observation::Failed { kind, detail: format!("{place}: {error}"), at },
        }
    }
}

/// The namespaces to list; one `None` lists cluster-wide.
fn namespaces<'a>(spec: &SourceSpec, settings: &'a Settings) -> Vec<Option<&'a str>> {
    let mut names: Vec<Option<&'a str>> = match spec.namespaces {
        Namespaces::All | Namespaces::OnTarget | Namespaces::Unscheduled => vec![None],
        // Only their DaemonSets tell; see `read_selected`.
        Namespaces::OfKured | Namespaces::OfNetworkAgents => vec![],
        Namespaces::Actions => {
            vec![Some(&settings.action.pod.namespace), Some(&settings.kured.sentinel.namespace)]
        }
        Namespaces::These(names) => names.iter().copied().map(Some).collect(),
        Namespaces::Dns => vec![Some(&settings.coredns.namespace)],
        Namespaces::DnsAndDefault => vec![Some(&settings.coredns.namespace), Some("default")],
        Namespaces::Longhorn => vec![Some(&settings.longhorn.namespace)],
        Namespaces::Own => vec![Some(&settings.namespace)],
    };
    // Two settings may name the same namespace; each object is wanted once.
    let mut seen = Vec::new();
    names.retain(|name| {
        let new = !seen.contains(name);
        seen.push(*name);
        new
    });
    names
}

async fn all_namespaces<S: Source>(
    reader: &impl Reader,
    settings: &Settings,
    row: Row<'_>,
) -> Result<Vec<Item<S>>, Failure> {
    let mut items = Vec::new();
    let spec = row.spec;
    let on_target = matches!(spec.namespaces, Namespaces::OnTarget);
    let is_node = spec.id == SourceId::Nodes && row.about.this_node_only;
    let selector = match row.about.target {
        Some(node) if on_target => Some(format!("spec.nodeName={node}")),
        Some(node) if is_node => Some(format!("metadata.name={node}")),
        _ if matches!(spec.namespaces, Namespaces::Unscheduled) => {
            Some("spec.nodeName=,status.phase=Pending".to_owned())
        }
        _ => None,
    };
    for (index, namespace) in namespaces(spec, settings).into_iter().enumerate() {
        let before = items.len();
        let place = match namespace {
            None => format!("listing {}", spec.resource),
            Some(namespace) => format!("listing {} in {namespace}", spec.resource),
        };
        let selectors = Selectors { labels: None, fields: selector.as_deref() };
        one_namespace(reader, spec, namespace, selectors, &mut items).await.map_err(|(error, pages)| {
            Failure {
                error,
                place,
                // The second namespace failing is partial even if the first was empty.
                read_before: (pages > 0 || index > 0).then_some(items.len().max(before)),
            }
        })?;
    }
    Ok(items)
}

/// Appends the objects of one namespace. The error comes with the number of pages that were read before.
async fn one_namespace<S: Source>(
    reader: &impl Reader,
    spec: &SourceSpec,
    namespace: Option<&str>,
    selectors: Selectors<'_>,
    items: &mut Vec<Item<S>>,
) -> Result<(), (ReadError, usize)> {
    let first = items.len();
    let mut token: Option<String> = None;
    let mut restarts = 0;
    let mut pages = 0;
    loop {
        let continue_token = token.as_deref();
        let Selectors { labels: label_selector, fields: field_selector } = selectors;
        let request =
            PageRequest { spec, namespace, label_selector, field_selector, continue_token, limit: PAGE_LIMIT };
        let page = match reader.list_page::<S>(&request).await {
            Ok(page) => page,
            // What was read is of an older state: begin again, but not for ever.
            Err(ReadError::Expired(_)) if token.is_some() && restarts < MAX_RESTARTS => {
                restarts += 1;
                token = None;
                items.truncate(first);
                continue;
            }
            Err(error) => return Err((error, pages)),
        };
        pages += 1;
        items.extend(page.items);
        match page.continue_token {
            None => return Ok(()),
            Some(next) if token.as_ref() == Some(&next) || pages >= MAX_PAGES => {
                return Err((ReadError::Server(format!("the list does not end after {pages} pages")), pages));
            }
            Some(next) => token = Some(next),
        }
    }
}
