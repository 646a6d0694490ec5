//! Where the pods of DaemonSets are, for those of which only the DaemonSet tells.

use std::collections::{BTreeMap, BTreeSet};

use super::{DaemonSet, FailureKind, Item, Listed, Observation};

/// Pods of one DaemonSet.
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

    /// The selectors of all DaemonSets that `is` says, each once; `whose` names them in errors.
    ///
    /// # Errors
    /// If the DaemonSets are not known, or one of them cannot be understood: it may be one of those.
    pub fn of_daemon_sets(
        daemon_sets: &Listed<DaemonSet>,
        whose: &str,
        is: impl Fn(&DaemonSet) -> bool,
    ) -> Result<Vec<Self>, (FailureKind, String)> {
        let items = match daemon_sets {
            Observation::Known { value, .. } => value,
            Observation::Failed { kind, detail, .. } => {
                let text = format!("the DaemonSets that tell where {whose} pods are could not be read: {detail}");
                return Err((*kind, text));
            }
            Observation::Absent { .. } | Observation::NotAsked => {
                let text = format!("the DaemonSets that tell where {whose} pods are were not read");
                return Err((FailureKind::Server, text));
            }
        };
        let mut found = BTreeSet::new();
        for item in items {
            match item {
                Item::Good(daemon_set) if is(daemon_set) => {
                    let namespace = daemon_set.metadata.namespace.clone();
                    found.insert(Self { namespace, labels: daemon_set.selector.clone() });
                }
                Item::Good(_) => {}
                Item::Malformed(bad) => {
                    let text = format!("{bad}: it may be {whose}, and would tell where its pods are");
                    return Err((FailureKind::Partial, text));
                }
            }
        }
        Ok(found.into_iter().collect())
    }
}
