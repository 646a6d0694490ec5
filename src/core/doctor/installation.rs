//! Family `kured-installation`: where kured runs, and where it does not.

use std::collections::BTreeMap;

use super::{Answer, Family, FamilyId, Input, View, named};
use crate::api::{Evidence, Reason, SourceId, Status};
use crate::facts::{KuredPod, Node};
use crate::kured::{Installation, container_of, installations, pods_of};

/// The row of this family.
pub(super) const FAMILY: Family = Family {
    id: FamilyId::Installation,
    doc: "where kured runs, and where it does not",
    reads: &[SourceId::Nodes, SourceId::DaemonSets, SourceId::KuredPods],
    check,
};

/// What follows where there is no kured.
pub(super) const NOT_INSTALLED: &str =
    "kured is not installed: nodes are rebooted by action pod or by a person, and no wish comes by itself";

fn check(input: &Input<'_>) -> Vec<Answer> {
    let mut answers = Vec::new();
    let View { daemon_sets, pods, nodes } = View::of(input, &mut answers);
    let Some(daemon_sets) = daemon_sets else { return answers };
    let installations = installations(&daemon_sets);
    if installations.is_empty() {
        if answers.is_empty() {
            answers.push(Answer::not_applicable(NOT_INSTALLED));
        }
        return answers;
    }
    for installation in &installations {
        runs(installation, pods.as_deref(), &mut answers);
    }
    if let Some(pods) = &pods {
        ready(pods, &mut answers);
        if let Some(nodes) = &nodes {
            covered(pods, nodes, &mut answers);
        }
    }
    answers
}

fn runs(installation: &Installation<'_>, pods: Option<&[&KuredPod]>, answers: &mut Vec<Answer>) {
    let (daemon_set, object) = (installation.daemon_set, installation.object());
    let version = match &installation.template.version {
        Ok(version) => version.to_string(),
        Err(_) => "of an unknown version".to_owned(),
    };
    let (updated, desired) = (daemon_set.updated, daemon_set.desired);
    let mut revisions: Vec<_> =
        pods.map_or_else(Vec::new, |pods| pods_of(daemon_set, pods).map(|pod| &pod.revision).collect());
    revisions.sort_unstable();
    revisions.dedup();
    if daemon_set.is_rolled_out() && revisions.len() <= 1 {
        answers.push(Answer::pass(format!(
            "{object} runs kured {version} on {desired} {}",
            if desired == 1 { "node" } else { "nodes" }
        )));
        return;
    }
    let seen = format!("{updated} of {desired} pods updated, {} revisions", revisions.len());
    answers.push(
        Answer::new(Status::Block, Some(Reason::KuredRollingOut), format!("{object} is being rolled out: {seen}"))
            .with(Evidence::new(&object, "status", &seen, "all pods updated, one revision"))
            .help(format!(
                "kubectl -n {} rollout status daemonset {}",
                daemon_set.metadata.namespace, daemon_set.metadata.name
            )),
    );
}

/// Pods that run kured, those that have ended left out.
fn running<'a>(pods: &'a [&'a KuredPod]) -> impl Iterator<Item = &'a KuredPod> {
    pods.iter().copied().filter(|pod| !pod.is_finished() && container_of(&pod.containers).is_some())
}

fn ready(pods: &[&KuredPod], answers: &mut Vec<Answer>) {
    for pod in running(pods).filter(|pod| !pod.is_ready()) {
        let object = format!("Pod {}", pod.metadata.full_name());
        let node = pod.node_name.as_deref().unwrap_or("no node");
        let message = format!("{object} on {node} is not Ready: kured will not come there");
        answers.push(
            Answer::new(Status::Block, Some(Reason::KuredPodNotReady), message)
                .with(Evidence::new(&object, "status.conditions[Ready]", "not True", "True"))
                .help(format!("kubectl -n {} logs {}", pod.metadata.namespace, pod.metadata.name)),
        );
    }
}

fn covered(pods: &[&KuredPod], nodes: &[&Node], answers: &mut Vec<Answer>) {
    let mut on: BTreeMap<&str, Vec<&str>> = nodes.iter().map(|node| (node.metadata.name.as_str(), vec![])).collect();
    for pod in running(pods).filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
        if let Some(node) = &pod.node_name {
            on.entry(node).or_default().push(&pod.metadata.name);
        }
    }
    let without: Vec<&str> = on.iter().filter(|(_, pods)| pods.is_empty()).map(|(node, _)| *node).collect();
    if !without.is_empty() {
        let message = format!(
            "no kured runs on {}: a reboot of these is a person's or action pod's",
            named(without.iter().copied())
        );
        answers.push(
            Answer::new(Status::Warn, Some(Reason::KuredPodNotReady), message)
                .with(Evidence::new("Nodes", "pods of kured", without.join(", "), "one on each node"))
                .help("if kured should run there: look at tolerations and nodeSelector (chart: tolerations, nodeSelector)"),
        );
    }
    for (node, pods) in on.iter().filter(|(_, pods)| pods.len() > 1) {
        let message = format!("{} kureds run on {node}: {}", pods.len(), pods.join(", "));
        answers.push(
            Answer::new(Status::Block, Some(Reason::KuredTwiceOnNode), message)
                .with(Evidence::new(format!("Node {node}"), "pods of kured", pods.join(", "), "one"))
                .help("delete the one too many, or give the DaemonSets disjoint nodeSelectors"),
        );
    }
}
