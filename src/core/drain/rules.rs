//! What the configuration, a label or an annotation says about a pod.

use crate::api::names;
use crate::config::{DrainRule, DrainSettings, Then};
use crate::facts::Pod;

/// Who said what is done with a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SaidBy {
    /// Nobody: it is as any pod.
    Nobody,
    /// A rule of the configuration, by its name.
    Rule(String),
    /// The pod's own label `cluster.x-k8s.io/drain`.
    Label,
}

impl std::fmt::Display for SaidBy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nobody => f.write_str("nobody"),
            Self::Rule(name) => write!(f, "rule {name}"),
            Self::Label => write!(f, "label {}", names::LABEL_DRAIN),
        }
    }
}

/// How one pod is treated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Treatment {
    /// Whether it is evicted.
    pub then: Then,
    /// Who said so.
    pub said_by: SaidBy,
    /// Lower ones go first.
    pub order: i32,
    /// Seconds to end in, where the configuration says.
    pub grace_seconds: Option<i64>,
    /// It goes although nothing would bring it back, by a rule or its annotation `maint.dev/evict`.
    pub force: bool,
}

impl Treatment {
    /// How the pod is treated: by the first rule that selects it; its label counts more than the rule's `then`.
    #[must_use]
    pub fn of(pod: &Pod, settings: &DrainSettings) -> Self {
        let rule = settings.rules.iter().find(|rule| selects(rule, pod));
        let label = pod.metadata.labels.get(names::LABEL_DRAIN).and_then(|value| said(value));
        let (then, said_by) = match (label, rule) {
            (Some(then), _) => (then, SaidBy::Label),
            (None, Some(rule)) => (rule.then, SaidBy::Rule(rule.name.clone())),
            (None, None) => (Then::Evict, SaidBy::Nobody),
        };
        let annotated = pod.metadata.annotations.get(names::ANNOTATION_EVICT).is_some_and(|value| value == "true");
        Self {
            then,
            said_by,
            order: rule.map_or(0, |rule| rule.order),
            grace_seconds: rule.and_then(|rule| rule.grace_seconds),
            force: annotated || rule.is_some_and(|rule| rule.force),
        }
    }
}

fn selects(rule: &DrainRule, pod: &Pod) -> bool {
    (rule.namespaces.is_empty() || rule.namespaces.contains(&pod.metadata.namespace))
        && rule.pods.selector().matches(&pod.metadata.labels)
}

/// Cluster API's two words, in any case; another value says nothing (its own reading).
fn said(value: &str) -> Option<Then> {
    if value.eq_ignore_ascii_case("skip") {
        Some(Then::Skip)
    } else if value.eq_ignore_ascii_case("wait-completed") {
        Some(Then::WaitForCompletion)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{pod, settings};
    use super::*;

    #[test]
    fn the_first_rule_counts_and_the_label_counts_more() {
        let settings = settings(
            "[[drain.rules]]\nname = \"builds\"\nnamespaces = [\"shop\"]\npods = \"app=build\"\nthen = \"wait-for-completion\"\n\
             [[drain.rules]]\nname = \"last\"\npods = \"app in (build,store)\"\norder = 9\ngrace_seconds = 5\nforce = true\n",
        );
        let rows = [
            ("none", json!({"app": "web"}), "evict nobody 0 None false"),
            ("first", json!({"app": "build"}), "wait-for-completion rule builds 0 None false"),
            ("second", json!({"app": "store"}), "evict rule last 9 Some(5) true"),
            (
                "label",
                json!({"app": "web", "cluster.x-k8s.io/drain": "skip"}),
                "skip label cluster.x-k8s.io/drain 0 None false",
            ),
            (
                "label over a rule",
                json!({"app": "store", "cluster.x-k8s.io/drain": "Wait-Completed"}),
                "wait-for-completion label cluster.x-k8s.io/drain 9 Some(5) true",
            ),
            ("another label", json!({"cluster.x-k8s.io/drain": "later"}), "evict nobody 0 None false"),
        ];
        for (row, labels, wanted) in rows {
            let found = Treatment::of(&pod("web-0", json!({"metadata": {"labels": labels}})), &settings.drain);
            let told =
                format!("{} {} {} {:?} {}", found.then, found.said_by, found.order, found.grace_seconds, found.force);
            assert_eq!(told, wanted, "{row}");
        }
        let elsewhere = pod("web-0", json!({"metadata": {"namespace": "ci", "labels": {"app": "build"}}}));
        assert_eq!(Treatment::of(&elsewhere, &settings.drain).said_by, SaidBy::Rule("last".to_owned()));
    }

    #[test]
    fn only_the_word_true_lets_a_bare_pod_go() {
        for (value, wanted) in [("true", true), ("True", false), ("yes", false), ("", false)] {
            let found = pod("web-0", json!({"metadata": {"annotations": {"maint.dev/evict": value}}}));
            assert_eq!(Treatment::of(&found, &DrainSettings::default()).force, wanted, "{value}");
        }
    }
}
