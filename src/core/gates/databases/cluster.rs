//! One PostgreSQL cluster at one moment.

use crate::api::{Evidence, GateId, Moment, Reason, Status, Strategy};
use crate::facts::cnpg::Cluster;
use crate::facts::{Pod, TriState};
use crate::gates::storage::NodeIndex;
use crate::gates::{Draft, GateInput};

/// A cluster, its instances, and where they are.
pub(super) struct Judge<'a> {
    input: &'a GateInput<'a>,
    nodes: &'a NodeIndex<'a>,
    cluster: &'a Cluster,
    instances: Vec<&'a Pod>,
    object: String,
}

impl<'a> Judge<'a> {
    pub(super) fn new(
        input: &'a GateInput<'a>,
        nodes: &'a NodeIndex<'a>,
        pods: &[&'a Pod],
        cluster: &'a Cluster,
    ) -> Self {
        let instances = pods.iter().copied().filter(|pod| is_instance(pod, cluster)).collect();
        Self { input, nodes, cluster, instances, object: format!("Cluster {}", cluster.metadata.full_name()) }
    }

    fn name(&self) -> String {
        self.cluster.metadata.full_name()
    }

    pub(super) fn judge(&self, draft: &mut Draft<'_>) {
        if self.cluster.hibernated && self.instances.is_empty() {
            return;
        }
        let ready = self.cluster.ready_instances;
        if i64::try_from(self.instances.len()).is_ok_and(|found| found < ready) {
            let found = self.instances.len();
            let message =
                format!("PostgreSQL cluster {} says {ready} ready instances and has {found} pods", self.name());
            let evidence = Evidence::new(&self.object, "status.readyInstances", ready.to_string(), found.to_string());
            draft.unknown(Reason::ObservationMalformed, message, evidence);
        }
        match self.input.moment {
            Moment::Start => self.start(draft),
            Moment::Handover => self.handover(draft),
            _ => {
                self.transition(draft, Status::Block);
                self.complete(draft, self.cluster.instances, Status::Block);
            }
        }
    }

    fn start(&self, draft: &mut Draft<'_>) {
        let here = self.instances.iter().any(|pod| self.may_be_on_target(pod));
        let status = if here { Status::Block } else { Status::Warn };
        self.transition(draft, status);
        self.complete(draft, self.cluster.instances, status);
        if self.instances.iter().any(|pod| self.may_be_on_target(pod) && self.is_primary(pod)) {
            self.primary_can_move(draft);
        }
    }

    fn handover(&self, draft: &mut Draft<'_>) {
        self.transition(draft, Status::Block);
        let single = self.cluster.instances == 1 && !self.cluster.budget;
        if self.input.strategy == Strategy::CordonOnly || single {
            return;
        }
        if let Some(pod) = self.instances.iter().find(|pod| self.may_be_on_target(pod) && self.is_primary(pod)) {
            let message = format!(
                "{}, the primary of PostgreSQL cluster {}, is still on {}",
                pod.metadata.name,
                self.name(),
                self.input.target
            );
            let evidence = Evidence::new(&self.object, "status.currentPrimary", &pod.metadata.name, "on another node");
            draft.block(Reason::DatabasePrimaryOnTarget, message, evidence);
        }
        self.complete(draft, self.cluster.instances - 1, Status::Block);
    }

    /// Whether somebody is at work on who is the primary.
    fn transition(&self, draft: &mut Draft<'_>, status: Status) {
        let (cluster, name) = (self.cluster, self.name());
        let problem = if cluster.current_primary.is_empty() || cluster.current_primary != cluster.target_primary {
            let (now, wanted) = (told(&cluster.current_primary), told(&cluster.target_primary));
            let message = format!("PostgreSQL cluster {name} is switching over from {now} to {wanted}");
            Some((message, Evidence::new(&self.object, "status.currentPrimary", now, wanted)))
        } else if cluster.fenced {
            let field = "metadata.annotations.cnpg.io/fencedInstances";
            let message = format!("PostgreSQL cluster {name} has fenced instances");
            Some((message, Evidence::new(&self.object, field, "set", "not set")))
        } else if cluster.hibernated {
            let field = "metadata.annotations.cnpg.io/hibernation";
            let message = format!("PostgreSQL cluster {name} is being hibernated and still has pods");
            Some((message, Evidence::new(&self.object, field, "on, with pods", "off, or no pods")))
        } else {
            None
        };
        if let Some((message, evidence)) = problem {
            self.add(draft, status, Reason::DatabaseInTransition, message, evidence);
        }
    }

    /// Whether that many instances are ready. Condition Ready is asked where all must be.
    fn complete(&self, draft: &mut Draft<'_>, wanted: i64, status: Status) {
        let (cluster, name) = (self.cluster, self.name());
        if cluster.ready_instances < wanted {
            let (ready, phase) = (cluster.ready_instances, told(&cluster.phase));
            let message = format!("PostgreSQL cluster {name} has {ready} of {wanted} instances ready ({phase})");
            let evidence = Evidence::new(&self.object, "status.readyInstances", ready.to_string(), wanted.to_string());
            self.add(draft, status, Reason::DatabaseIncomplete, message, evidence);
        }
        if wanted < cluster.instances || cluster.ready() == Some(TriState::True) {
            return;
        }
        let says = cluster.ready().map_or("missing", TriState::as_str);
        let message = format!("PostgreSQL cluster {name} is not Ready: {} ({says})", told(&cluster.phase));
        let evidence = Evidence::new(&self.object, "status.conditions[Ready]", says, "True");
        self.add(draft, status, Reason::DatabaseIncomplete, message, evidence);
    }

    fn add(&self, draft: &mut Draft<'_>, status: Status, reason: Reason, message: String, evidence: Evidence) {
        let known = self.no_worse(&evidence);
        let (status, message) =
            if known { (Status::Warn, format!("{message} (as at the start)")) } else { (status, message) };
        draft.add(status, reason, message, None, vec![evidence]);
    }

    /// Whether it was so, or worse, when the run began: at handover too, for a cluster that has nothing on the target
    /// and was only warned of.
    fn no_worse(&self, evidence: &Evidence) -> bool {
        let Some(run) = self.input.run else { return false };
        if self.input.moment == Moment::Start {
            return false;
        }
        let mut then = run.baseline.iter().filter(|finding| finding.gate == GateId::Databases);
        then.any(|finding| {
            let mut same =
                finding.evidence.iter().filter(|old| old.object == evidence.object && old.field == evidence.field);
            same.any(|old| match (old.value.parse::<i64>(), evidence.value.parse::<i64>()) {
                (Ok(then), Ok(now)) => now >= then,
                _ => old.value == evidence.value,
            })
        })
    }

    fn primary_can_move(&self, draft: &mut Draft<'_>) {
        let (cluster, name, target) = (self.cluster, self.name(), &self.input.target);
        let candidate = self.instances.iter().any(|pod| self.may_take_over(pod));
        let why = if cluster.instances == 1 {
            "it has one instance".to_owned()
        } else if cluster.replica_cluster {
            "it is a replica cluster, whose designated primary is not switched over".to_owned()
        } else if candidate {
            return;
        } else {
            "no other instance is Ready on another Ready, schedulable node".to_owned()
        };
        let primary = &cluster.current_primary;
        let wanted = "able to move: a Ready instance elsewhere";
        let evidence = Evidence::new(&self.object, "status.currentPrimary", format!("{primary} on {target}"), wanted);
        if !cluster.budget || self.input.strategy == Strategy::CordonOnly {
            let message = format!("PostgreSQL cluster {name} is down while {target} is away: {why}");
            draft.warn(Reason::DatabaseGoesDown, message, evidence);
            return;
        }
        let remedy = format!(
            "kubectl -n {} patch clusters.postgresql.cnpg.io {} --type merge -p '{{\"spec\":{{\"enablePDB\":false}}}}'",
            cluster.metadata.namespace, cluster.metadata.name
        );
        let message = format!(
            "{primary}, the primary of PostgreSQL cluster {name}, cannot leave {target}: {why}; or accept that it is down: {remedy}"
        );
        draft.block(Reason::DatabasePrimaryCannotMove, message, evidence);
    }

    fn is_primary(&self, pod: &Pod) -> bool {
        pod.metadata.name == self.cluster.current_primary
    }

    /// On the target; one that is Ready by its own word or by the cluster's, and says no node, may be there too.
    fn may_be_on_target(&self, pod: &Pod) -> bool {
        match pod.node_name.as_deref() {
            Some(node) => node == self.input.target,
            None => pod.says_ready() || self.cluster.ready_instances >= self.cluster.instances,
        }
    }

    fn may_take_over(&self, pod: &Pod) -> bool {
        let elsewhere = pod.node_name.as_deref().filter(|node| *node != self.input.target);
        let fit = |node: &str| self.nodes.is_ready(node) && self.nodes.is_schedulable(node);
        !self.is_primary(pod) && pod.is_ready() && elsewhere.is_some_and(fit)
    }
}

/// An instance of the cluster: not the pod of a pooler, nor of a job that makes one. Where the label is missing the
/// primary's name tells; one that does not tell its namespace may be of any.
fn is_instance(pod: &Pod, cluster: &Cluster) -> bool {
    let labels = &pod.metadata.labels;
    let of = labels.get("cnpg.io/cluster").is_some_and(|name| *name == cluster.metadata.name)
        || pod.metadata.name == cluster.current_primary;
    let other = ["cnpg.io/jobRole", "cnpg.io/poolerName"].iter().any(|label| labels.contains_key(*label));
    let here = [cluster.metadata.namespace.as_str(), ""].contains(&pod.metadata.namespace.as_str());
    here && of && !other && !pod.is_finished()
}

const fn told(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}
