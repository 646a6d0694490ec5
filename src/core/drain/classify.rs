//! What becomes of a pod when its node is drained.

use super::rules::{SaidBy, Treatment};
use super::waves::Wave;
use crate::api::Reason;
use crate::config::Then;
use crate::facts::{Item, Listed, Pod};
use crate::planted::{self, Bug};

/// What becomes of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Class {
    /// It stays, and the node counts as drained with it.
    Stays(Stay),
    /// It goes in this wave.
    Goes(Wave),
    /// It would have to go and is not evicted.
    Never(Never),
}

/// Why a pod stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stay {
    /// A static pod's mirror: the API cannot end it.
    Mirror,
    /// Its DaemonSet would put it back at once.
    DaemonSet,
    /// It runs no more; left so that its logs survive.
    Finished,
    /// A rule or a label says so.
    Skipped(SaidBy),
}

impl std::fmt::Display for Stay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Mirror => f.write_str("static pod"),
            Self::DaemonSet => f.write_str("DaemonSet"),
            Self::Finished => f.write_str("finished"),
            Self::Skipped(by) => write!(f, "skipped by {by}"),
        }
    }
}

/// Why a pod is not evicted although it would have to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Never {
    /// No controller would bring it back: it would be lost.
    NoController,
    /// Its DaemonSet is gone, so that nothing would bring it back.
    DaemonSetGone(String),
    /// It is to be skipped, and kured, which drains by itself, skips nothing.
    SkippedWithKured(SaidBy),
    /// More than one budget covers it: the API server refuses every eviction.
    TwoBudgets(Vec<String>),
    /// Its budget never allows one.
    Budget(String),
}

impl std::fmt::Display for Never {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoController => f.write_str("has no controller, so nothing would bring it back"),
            Self::DaemonSetGone(name) => {
                write!(f, "belongs to DaemonSet {name}, which is gone, so nothing would bring it back")
            }
            Self::SkippedWithKured(by) => write!(f, "is skipped by {by}, and kured would drain it all the same"),
            Self::TwoBudgets(names) => {
                write!(f, "has more than one budget ({}), so every eviction is refused", names.join(", "))
            }
            Self::Budget(why) => f.write_str(why),
        }
    }
}

impl Never {
    /// Why, as gates name it.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        match self {
            Self::NoController | Self::DaemonSetGone(_) => Reason::PodWithoutController,
            Self::SkippedWithKured(_) => Reason::PodSkippedWithKured,
            Self::TwoBudgets(_) => Reason::DisruptionBudgetsOverlap,
            Self::Budget(_) => Reason::DisruptionBudgetPermanent,
        }
    }

    /// What helps.
    #[must_use]
    pub fn remedy(&self, namespace: &str, name: &str) -> String {
        match self {
            Self::NoController | Self::DaemonSetGone(_) => format!(
                "delete it, or let it go: kubectl -n {namespace} annotate pod {name} {}=true",
                crate::api::names::ANNOTATION_EVICT
            ),
            Self::SkippedWithKured(_) => {
                "take the rule or label away, or act by `[action.pod]` instead of kured".to_owned()
            }
            Self::TwoBudgets(_) => "change the selectors so that one budget covers it".to_owned(),
            Self::Budget(_) => "see its budget".to_owned(),
        }
    }
}

/// Which DaemonSets there are: an orphan is only one where all of them are known.
#[derive(Debug, Clone, Default)]
pub(super) struct DaemonSets(Option<std::collections::BTreeSet<String>>);

impl DaemonSets {
    pub(super) fn of(listed: &Listed<crate::facts::DaemonSet>) -> Self {
        let Some(items) = listed.known() else { return Self(None) };
        let mut uids = std::collections::BTreeSet::new();
        for item in items {
            match item {
                // Without its uid (a dump) it may be anybody's.
                Item::Good(found) if !found.metadata.uid.is_empty() => drop(uids.insert(found.metadata.uid.clone())),
                _ => return Self(None),
            }
        }
        Self(Some(uids))
    }

    /// Whether the DaemonSet that controls the pod is gone. Of another group, such as OpenKruise's, they are not listed.
    fn are_without(&self, pod: &Pod) -> bool {
        let (Some(uids), Some(owner)) = (&self.0, &pod.controller) else { return false };
        owner.group() == "apps" && !owner.uid.is_empty() && !uids.contains(&owner.uid)
    }
}

/// What becomes of a pod, budgets apart.
pub(super) fn classify(
    pod: &Pod,
    treatment: &Treatment,
    daemon_sets: &DaemonSets,
    own_namespace: &str,
    by_kured: bool,
) -> Class {
    if pod.mirror {
        return Class::Stays(Stay::Mirror);
    }
    if pod.is_finished() {
        return Class::Stays(Stay::Finished);
    }
    let daemon = pod.is_of("DaemonSet");
    let orphan = daemon && daemon_sets.are_without(pod);
    if daemon && !orphan && !planted::is(Bug::EvictsDaemonSets) {
        return Class::Stays(Stay::DaemonSet);
    }
    let wave = Wave::of(pod, treatment, own_namespace);
    if treatment.then == Then::Skip {
        let by = treatment.said_by.clone();
        return if by_kured { Class::Never(Never::SkippedWithKured(by)) } else { Class::Stays(Stay::Skipped(by)) };
    }
    // What ends already ends, whoever wanted it; our own pod is evicted by ourselves.
    if pod.is_ending() || treatment.force || wave.own {
        return Class::Goes(wave);
    }
    match &pod.controller {
        Some(owner) if orphan => Class::Never(Never::DaemonSetGone(owner.name.clone())),
        None => Class::Never(Never::NoController),
        Some(_) => Class::Goes(wave),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{TIME, bare, pod, settings};
    use super::*;
    use crate::facts::{DaemonSet, FailureKind, Observation, Source as _};

    fn daemon_sets(uids: &[&str]) -> DaemonSets {
        let documents = uids.iter().map(|uid| {
            json!({"metadata": {"name": "agent", "namespace": "kube-system", "uid": uid}, "spec": {"template": {"spec": {}}},
                "status": {"desiredNumberScheduled": 1, "numberReady": 1}})
        });
        let value = documents.map(|document| DaemonSet::item(&document)).collect();
        DaemonSets::of(&Observation::Known { value, at: TIME.parse().expect("a time") })
    }

    fn owned(kind: &str, group: &str) -> Value {
        json!([{"apiVersion": format!("{group}/v1"), "kind": kind, "name": "agent", "uid": "uid-agent", "controller": true}])
    }

    #[test]
    fn what_stays_what_goes_and_what_never_goes() {
        let settings = settings(
            "[[drain.rules]]\nname = \"keep\"\npods = \"app=keep\"\nthen = \"skip\"\n[[drain.rules]]\nname = \"bare\"\npods = \"app=bare\"\nforce = true\n",
        );
        let known = daemon_sets(&["uid-agent"]);
        let other = daemon_sets(&["uid-other"]);
        let nameless = daemon_sets(&["uid-other", ""]);
        let failed = DaemonSets::of(&Observation::Failed {
            kind: FailureKind::Timeout,
            detail: String::new(),
            at: TIME.parse().expect("a time"),
        });
        let of = |owners: Value| pod("a", json!({"metadata": {"ownerReferences": owners}}));
        let rows: Vec<(&str, Pod, &DaemonSets, bool, &str)> = vec![
            ("a Deployment's", pod("a", json!({})), &known, false, "goes: ordinary"),
            ("bare", bare("a", json!({})), &known, false, "never: has no controller, so nothing would bring it back"),
            (
                "an owner that is no controller",
                of(json!([{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}])),
                &known,
                false,
                "never: has no controller, so nothing would bring it back",
            ),
            (
                "bare, annotated",
                bare("a", json!({"metadata": {"annotations": {"maint.dev/evict": "true"}}})),
                &known,
                false,
                "goes: ordinary",
            ),
            (
                "bare, by rule",
                bare("a", json!({"metadata": {"labels": {"app": "bare"}}})),
                &known,
                false,
                "goes: ordinary",
            ),
            (
                "bare, ending",
                bare("a", json!({"metadata": {"deletionTimestamp": TIME}})),
                &known,
                false,
                "goes: ordinary",
            ),
            (
                "bare, pending",
                bare("a", json!({"status": {"phase": "Pending"}})),
                &known,
                false,
                "never: has no controller, so nothing would bring it back",
            ),
            ("bare, finished", bare("a", json!({"status": {"phase": "Succeeded"}})), &known, false, "stays: finished"),
            ("failed", pod("a", json!({"status": {"phase": "Failed"}})), &known, false, "stays: finished"),
            (
                "mirror",
                bare("a", json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}})),
                &known,
                false,
                "stays: static pod",
            ),
            ("DaemonSet", of(owned("DaemonSet", "apps")), &known, false, "stays: DaemonSet"),
            (
                "DaemonSet, ending",
                pod(
                    "a",
                    json!({"metadata": {"deletionTimestamp": TIME, "ownerReferences": owned("DaemonSet", "apps")}}),
                ),
                &known,
                false,
                "stays: DaemonSet",
            ),
            (
                "orphan of a DaemonSet",
                of(owned("DaemonSet", "apps")),
                &other,
                false,
                "never: belongs to DaemonSet agent, which is gone, so nothing would bring it back",
            ),
            (
                "orphan, annotated",
                pod(
                    "a",
                    json!({"metadata": {"annotations": {"maint.dev/evict": "true"}, "ownerReferences": owned("DaemonSet", "apps")}}),
                ),
                &other,
                false,
                "goes: ordinary",
            ),
            ("DaemonSets unknown", of(owned("DaemonSet", "apps")), &failed, false, "stays: DaemonSet"),
            (
                "a DaemonSet without a uid in the list",
                of(owned("DaemonSet", "apps")),
                &nameless,
                false,
                "stays: DaemonSet",
            ),
            ("OpenKruise's DaemonSet", of(owned("DaemonSet", "apps.kruise.io")), &other, false, "stays: DaemonSet"),
            (
                "skipped",
                pod("a", json!({"metadata": {"labels": {"app": "keep"}}})),
                &known,
                false,
                "stays: skipped by rule keep",
            ),
            (
                "skipped by label",
                pod("a", json!({"metadata": {"labels": {"cluster.x-k8s.io/drain": "skip"}}})),
                &known,
                false,
                "stays: skipped by label cluster.x-k8s.io/drain",
            ),
            (
                "skipped, bare",
                bare("a", json!({"metadata": {"labels": {"app": "keep"}}})),
                &known,
                false,
                "stays: skipped by rule keep",
            ),
            (
                "skipped, and kured drains",
                pod("a", json!({"metadata": {"labels": {"app": "keep"}}})),
                &known,
                true,
                "never: is skipped by rule keep, and kured would drain it all the same",
            ),
            (
                "maint's own, bare",
                bare("a", json!({"metadata": {"namespace": "maint", "labels": {"app.kubernetes.io/name": "maint"}}})),
                &known,
                false,
                "goes: own",
            ),
        ];
        for (row, pod, daemon_sets, by_kured, wanted) in rows {
            let treatment = Treatment::of(&pod, &settings.drain);
            let told = match classify(&pod, &treatment, daemon_sets, "maint", by_kured) {
                Class::Stays(why) => format!("stays: {why}"),
                Class::Goes(wave) => format!("goes: {wave}"),
                Class::Never(why) => format!("never: {why}"),
            };
            assert_eq!(told, wanted, "{row}");
        }
    }

    #[test]
    fn a_bare_pod_is_told_how_to_go() {
        let remedy = Never::NoController.remedy("shop", "web-0");
        assert_eq!(remedy, "delete it, or let it go: kubectl -n shop annotate pod web-0 maint.dev/evict=true");
    }
}
