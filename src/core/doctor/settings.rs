//! Family `kured-settings`: what the running kureds were told, and which flag to change.

use std::collections::BTreeMap;

use super::{Answer, Family, FamilyId, Input, View, named};
use crate::api::{Evidence, Reason, SourceId, Status};
use crate::facts::KuredPod;
use crate::kured::{Advice, Flag, Flags, Places, installations, judge, places_of, strips_the_lock};

/// The row of this family.
pub(super) const FAMILY: Family = Family {
    id: FamilyId::Settings,
    doc: "what the running kureds were told",
    reads: &[SourceId::Nodes, SourceId::DaemonSets, SourceId::KuredPods],
    check,
};

fn check(input: &Input<'_>) -> Vec<Answer> {
    let mut answers = Vec::new();
    let View { daemon_sets, pods, .. } = View::of(input, &mut answers);
    let Some(daemon_sets) = daemon_sets else { return answers };
    if installations(&daemon_sets).is_empty() {
        if answers.is_empty() {
            answers.push(Answer::not_applicable("kured is not installed"));
        }
        return answers;
    }
    if let Some(pods) = pods {
        of_pods(input, &pods, &mut answers);
    }
    if let Places::Found(places) = places_of(&daemon_sets) {
        for place in places {
            let of = |one: &&&crate::facts::DaemonSet| {
                one.metadata.namespace == place.namespace && one.metadata.name == place.name
            };
            let Some((label, manager)) = daemon_sets.iter().find(of).and_then(|one| strips_the_lock(one, &place.key))
            else {
                continue;
            };
            let message = format!(
                "Flux will take the lock off {} at its next reconciliation: `{manager}` set it",
                place.object()
            );
            answers.push(
                Answer::new(Status::Warn, Some(Reason::KuredLockStripped), message)
                    .with(Evidence::new(
                        place.object(),
                        format!("managedFields of {}", place.key),
                        manager,
                        "kured or maint",
                    ))
                    .with(Evidence::new(place.object(), "metadata.labels", label, "an object that Flux does not apply"))
                    .help("hold nodes with `maint halt` or `maint hold NODE`, never with kubectl annotate"),
            );
        }
    }
    answers
}

/// The same advice for several nodes is one answer.
fn of_pods(input: &Input<'_>, pods: &[&KuredPod], answers: &mut Vec<Answer>) {
    let mut by_advice: BTreeMap<Advice, Vec<&str>> = BTreeMap::new();
    let mut by_period: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut commands: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| !pod.is_finished()) {
        let (Some(node), Some(flags)) = (pod.node_name.as_deref(), pod.flags()) else { continue };
        let advice = judge(&flags, node, input.settings, input.now);
        if !advice.iter().any(|one| matches!(one.status, Status::Block | Status::Unknown)) {
            by_period.entry(flags.shown(Flag::Period)).or_default().push(node);
        }
        if let Some(command) = sentinel_command(&flags) {
            commands.entry(command).or_default().push(node);
        }
        for one in advice {
            by_advice.entry(one).or_default().push(node);
        }
    }
    for (period, nodes) in &by_period {
        let message = format!("kured on {} asks maint every {period} before it reboots", named(nodes.iter().copied()));
        answers.push(Answer::pass(message));
    }
    let mut told: Vec<_> = by_advice.into_iter().collect();
    told.sort_by(|a, b| b.0.status.cmp(&a.0.status).then_with(|| a.0.cmp(&b.0)));
    answers.extend(told.into_iter().map(|(advice, nodes)| answer(advice, &nodes)));
    for (command, nodes) in commands {
        let message = format!(
            "kured on {} looks at a command instead of a file ({command}): `maint reboot` cannot make it act",
            named(nodes.iter().copied())
        );
        answers.push(
            Answer::new(Status::Warn, Some(Reason::KuredSettingRisky), message)
                .with(Evidence::new("kured", "--reboot-sentinel-command", &command, "a sentinel file"))
                .help(format!("take {} away, and set --reboot-sentinel", Flag::RebootSentinelCommand.told())),
        );
    }
    if by_period.is_empty() && answers.is_empty() {
        answers.push(Answer::new(
            Status::Unknown,
            Some(Reason::KuredPodNotReady),
            "no pod runs kured: nothing is known of its flags",
        ));
    }
}

fn sentinel_command(flags: &Flags) -> Option<String> {
    flags.text(Flag::RebootSentinelCommand).ok().filter(|command| !command.is_empty())
}

fn answer(advice: Advice, nodes: &[&str]) -> Answer {
    let Advice { status, reason, does, flag, value, wanted } = advice;
    let field = flag.map_or_else(|| "image".to_owned(), |flag| format!("--{flag}"));
    let object = format!("kured on {}", named(nodes.iter().copied()));
    let remedy = match flag {
        Some(_) if reason == Reason::KuredWindowTooNarrow => format!(
            "take {}, {} and {} away, or make the window wider than maint's own",
            Flag::RebootDays.told(),
            Flag::StartTime.told(),
            Flag::EndTime.told()
        ),
        Some(flag) => format!("set {}: {wanted}", flag.told()),
        None => format!("set the image (chart: image.tag): {wanted}"),
    };
    Answer::new(status, Some(reason), format!("{object} {does}"))
        .with(Evidence::new(object, field, value, wanted))
        .help(remedy)
}
