//! kured as it is installed: each DaemonSet that runs it, with its pods.

use super::flags::Flags;
use super::place::{container_of, kured_container};
use crate::facts::{DaemonSet, KuredPod};

/// One DaemonSet that runs kured.
#[derive(Debug)]
pub struct Installation<'a> {
    /// The DaemonSet.
    pub daemon_set: &'a DaemonSet,
    /// What its template says; what runs may be older.
    pub template: Flags,
}

/// Every DaemonSet that runs kured, in the order given.
#[must_use]
pub fn installations<'a>(daemon_sets: &[&'a DaemonSet]) -> Vec<Installation<'a>> {
    let of = |daemon_set: &&'a DaemonSet| {
        let container = kured_container(daemon_set)?;
        Some(Installation { daemon_set, template: Flags::of(container, None) })
    };
    daemon_sets.iter().filter_map(of).collect()
}

impl Installation<'_> {
    /// `DaemonSet namespace/name`
    #[must_use]
    pub fn object(&self) -> String {
        format!("DaemonSet {}", self.daemon_set.metadata.full_name())
    }
}

/// The pods of a DaemonSet that have not ended, in the order given.
pub fn pods_of<'a>(daemon_set: &'a DaemonSet, pods: &'a [&'a KuredPod]) -> impl Iterator<Item = &'a KuredPod> {
    let (namespace, name) = (&daemon_set.metadata.namespace, &daemon_set.metadata.name);
    pods.iter().copied().filter(move |pod| {
        !pod.is_finished()
            && pod.metadata.namespace == *namespace
            && pod.daemon_set.as_ref().is_some_and(|owner| owner == name)
    })
}

impl KuredPod {
    /// What its kured was started with; none if no container of it runs kured.
    #[must_use]
    pub fn flags(&self) -> Option<Flags> {
        container_of(&self.containers).map(|container| Flags::of(container, self.node_name.as_deref()))
    }
}
