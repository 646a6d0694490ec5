//! `[drain]`: what is done differently with pods that a rule selects.

mod selector;

use serde::{Deserialize, Serialize};

pub use selector::PodSelection;

/// How nodes are drained.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DrainSettings {
    /// Rules; the first that selects a pod counts.
    pub rules: Vec<DrainRule>,
}

/// One `[[drain.rules]]`: which pods, and what is done differently with them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrainRule {
    /// Its name, kebab-case: `maint plan` and reports name it.
    pub name: String,
    /// Namespaces of the pods; none means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Labels of the pods, as `kubectl -l` takes them; empty means all.
    #[serde(default)]
    pub pods: PodSelection,
    /// Whether they are evicted at all.
    #[serde(default = "Then::unsaid")]
    pub then: Then,
    /// Lower ones go first; 0 is the order of pods without a rule. maint's own pod is last whatever this says.
    #[serde(default)]
    pub order: i32,
    /// Seconds that they have to end, instead of what each pod says itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_seconds: Option<i64>,
    /// Evict also what would not come back elsewhere (no controller), and pods of a StatefulSet without waiting for the
    /// one before to be Ready again. Budgets are respected all the same.
    #[serde(default)]
    pub force: bool,
}

crate::api::names! {
    /// What is done with the pods of a rule.
    Then, "treatment", {
        /// They are evicted.
        Evict = "evict",
        /// They stay, and the node counts as drained with them.
        Skip = "skip",
        /// They are not evicted; the drain waits until they have finished, within its deadline.
        WaitForCompletion = "wait-for-completion",
    }
}

impl Then {
    /// What is done where a rule does not say.
    const fn unsaid() -> Self {
        Self::Evict
    }
}
