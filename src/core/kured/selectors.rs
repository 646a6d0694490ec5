//! Where kured's pods are: only the DaemonSets that run it tell.

use std::collections::{BTreeMap, BTreeSet};

use super::place::kured_container;
use crate::facts::{DaemonSet, FailureKind, Item, Listed, Observation};

/// Pods of one DaemonSet that runs kured.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodSelector {
    /// Its namespace.
    pub namespace: String,
    /// Its `matchLabels`; empty where it selects by expressions only.
    pub labels: BTreeMap<String, String>,
}

impl PodSelector {
    /// As the API takes it: `a=b,c=d`.
    #[must_use]
    pub fn text(&self) -> String {
        self.labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
    }
}

/// The selectors of all DaemonSets that run kured, each once.
///
/// # Errors
/// If the DaemonSets are not known, or one of them cannot be understood: it may be kured's.
pub fn pod_selectors(daemon_sets: &Listed<DaemonSet>) -> Result<Vec<PodSelector>, (FailureKind, String)> {
    let items = match daemon_sets {
        Observation::Known { value, .. } => value,
        Observation::Failed { kind, detail, .. } => {
            let text = format!("the DaemonSets that tell where kured's pods are could not be read: {detail}");
            return Err((*kind, text));
        }
        Observation::Absent { .. } | Observation::NotAsked => {
            return Err((
                FailureKind::Server,
                "the DaemonSets that tell where kured's pods are were not read".to_owned(),
            ));
        }
    };
    let mut found = BTreeSet::new();
    for item in items {
        match item {
            Item::Good(daemon_set) if kured_container(daemon_set).is_some() => {
                let namespace = daemon_set.metadata.namespace.clone();
                found.insert(PodSelector { namespace, labels: daemon_set.selector.clone() });
            }
            Item::Good(_) => {}
            Item::Malformed(bad) => {
                let text = format!("{bad}: it may be kured's, and would tell where its pods are");
                return Err((FailureKind::Partial, text));
            }
        }
    }
    Ok(found.into_iter().collect())
}
