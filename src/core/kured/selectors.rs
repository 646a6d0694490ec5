//! Where kured's pods are: only the DaemonSets that run it tell.

use super::place::kured_container;
use crate::facts::{DaemonSet, FailureKind, Listed, PodSelector};

/// The selectors of all DaemonSets that run kured, each once.
///
/// # Errors
/// If the DaemonSets are not known, or one of them cannot be understood: it may be kured's.
pub fn pod_selectors(daemon_sets: &Listed<DaemonSet>) -> Result<Vec<PodSelector>, (FailureKind, String)> {
    PodSelector::of_daemon_sets(daemon_sets, "kured's", |one| kured_container(one).is_some())
}
