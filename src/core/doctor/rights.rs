//! Family `rights`: what maint was refused.

use super::{Answer, Family, FamilyId, Input};
use crate::api::{Evidence, Reason, SourceId, Status};
use crate::facts::{FailureKind, Observation, spec_of};

/// The row of this family.
pub(super) const FAMILY: Family = Family {
    id: FamilyId::Rights,
    doc: "what maint itself may read",
    reads: &[SourceId::Nodes, SourceId::DaemonSets, SourceId::KuredPods, SourceId::Maintenances],
    check,
};

fn check(input: &Input<'_>) -> Vec<Answer> {
    let facts = input.facts;
    let mut answers = Vec::new();
    refused(SourceId::Nodes, &facts.nodes, &mut answers);
    refused(SourceId::DaemonSets, &facts.daemon_sets, &mut answers);
    refused(SourceId::KuredPods, &facts.kured_pods, &mut answers);
    refused(SourceId::Maintenances, &facts.maintenances, &mut answers);
    if answers.is_empty() {
        answers.push(Answer::pass("nothing that was asked for was refused"));
    }
    answers
}

fn refused<T>(source: SourceId, observation: &Observation<T>, answers: &mut Vec<Answer>) {
    let Observation::Failed { kind: FailureKind::Forbidden, detail, .. } = observation else { return };
    let resource = spec_of(source).map_or(source.as_str().to_owned(), |spec| {
        if spec.group.is_empty() { spec.resource.to_owned() } else { format!("{}.{}", spec.resource, spec.group) }
    });
    answers.push(
        Answer::new(
            Status::Unknown,
            Some(Reason::ObservationFailed),
            format!("the right to list {resource} is missing: {detail}"),
        )
        .with(Evidence::new(source.as_str(), "list", "forbidden", "a list"))
        .help(format!("kubectl auth can-i list {resource} -A   asks for it; ClusterRole maint-viewer has it")),
    );
}
