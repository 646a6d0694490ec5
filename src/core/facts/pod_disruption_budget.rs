//! PodDisruptionBudgets of all namespaces: what a drain may take, and what can hold the floor of CoreDNS.

use super::source::{Namespaces, Source, SourceSpec};
use super::{Condition, Fields, LabelSelector, Malformed, Metadata, OwnerReference, TriState};
use crate::api::SourceId;

/// A PodDisruptionBudget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodDisruptionBudget {
    /// Name, namespace, generation.
    pub metadata: Metadata,
    /// `metadata.ownerReferences`: operators own the budgets that they make.
    pub owners: Vec<OwnerReference>,
    /// `spec.selector`; none selects nothing (policy/v1).
    pub selector: Option<LabelSelector>,
    /// `spec.minAvailable`, a number or a percentage.
    pub min_available: Option<String>,
    /// `spec.maxUnavailable`, a number or a percentage.
    pub max_unavailable: Option<String>,
    /// `spec.unhealthyPodEvictionPolicy`
    pub unhealthy_policy: UnhealthyPolicy,
    /// `status.disruptionsAllowed`
    pub disruptions_allowed: i64,
    /// `status.currentHealthy`
    pub current_healthy: i64,
    /// `status.desiredHealthy`
    pub desired_healthy: i64,
    /// `status.expectedPods`
    pub expected_pods: i64,
    /// `status.observedGeneration`
    pub observed_generation: Option<i64>,
    /// Names in `status.disruptedPods`: evicted, and not yet seen to end.
    pub disrupted_pods: Vec<String>,
    /// `status.conditions`
    pub conditions: Vec<Condition>,
}

/// `spec.unhealthyPodEvictionPolicy`: whether a pod that runs and is not Ready may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnhealthyPolicy {
    /// While the budget's healthy pods are enough; the API's default.
    IfHealthyBudget,
    /// Always.
    AlwaysAllow,
    /// A value that this version does not know: the API's text says not to evict unhealthy pods then.
    Unknown(String),
}

impl PodDisruptionBudget {
    /// Whether its selector matches a pod of this namespace with these labels.
    #[must_use]
    pub fn covers(&self, pod: &Metadata) -> bool {
        self.metadata.namespace == pod.namespace
            && self.selector.as_ref().is_some_and(|selector| selector.matches(&pod.labels))
    }

    /// The status is that of the present spec. The API server refuses with "still being processed" while it is not.
    #[must_use]
    pub fn is_observed(&self) -> bool {
        match (self.metadata.generation, self.observed_generation) {
            (Some(generation), Some(observed)) => observed >= generation,
            _ => false,
        }
    }

    /// The failure of [`Self::sync_failure`] is one of the present spec. A controller that fails leaves
    /// `status.observedGeneration` as it was (`failSafe`, kubernetes/kubernetes `disruption.go`), so that a budget that was
    /// never computed has none for ever: while its spec was never changed either, the failure is that of this spec.
    #[must_use]
    pub fn fails_as_it_is(&self) -> bool {
        self.is_observed() || self.metadata.generation == Some(1)
    }

    /// Why the controller cannot compute it (condition `DisruptionAllowed` False with reason `SyncFailed`): it then
    /// allows nothing, and "needs 1 healthy pods and has 1 currently" would mislead (kubernetes/kubernetes issue 106286).
    #[must_use]
    pub fn sync_failure(&self) -> Option<&str> {
        let failed = |one: &&Condition| {
            one.kind == "DisruptionAllowed" && one.status == TriState::False && one.reason == "SyncFailed"
        };
        self.conditions.iter().find(failed).map(|one| one.message.as_str())
    }
}

impl Source for PodDisruptionBudget {
    const SPEC: SourceSpec = SourceSpec {
        id: SourceId::PodDisruptionBudgets,
        group: "policy",
        version: "v1",
        kind: "PodDisruptionBudget",
        resource: "poddisruptionbudgets",
        namespaces: Namespaces::All,
        label_selector: None,
        max_age_seconds: 30,
        built_in: true,
    };

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let (spec, status) = (root.object("spec")?, root.object("status")?);
        let selector = spec.optional_object("selector")?;
        Ok(Self {
            metadata: Metadata::of(root)?,
            owners: OwnerReference::list(&root.object("metadata")?)?,
            selector: selector.as_ref().map(LabelSelector::of).transpose()?,
            min_available: spec.optional_number_or_text("minAvailable")?,
            max_unavailable: spec.optional_number_or_text("maxUnavailable")?,
            unhealthy_policy: match spec.optional_str("unhealthyPodEvictionPolicy")? {
                // Unset means IfHealthyBudget (KEP-3017).
                None | Some("" | "IfHealthyBudget") => UnhealthyPolicy::IfHealthyBudget,
                Some("AlwaysAllow") => UnhealthyPolicy::AlwaysAllow,
                Some(other) => UnhealthyPolicy::Unknown(other.to_owned()),
            },
            disruptions_allowed: status.i64("disruptionsAllowed")?,
            current_healthy: status.i64("currentHealthy")?,
            desired_healthy: status.i64("desiredHealthy")?,
            expected_pods: status.i64("expectedPods")?,
            observed_generation: status.optional_i64("observedGeneration")?,
            disrupted_pods: status.string_map("disruptedPods")?.into_keys().collect(),
            conditions: Condition::list(&status)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::facts::Item;

    fn budget(spec: Value) -> PodDisruptionBudget {
        let document = json!({
            "metadata": {"name": "web", "namespace": "shop", "generation": 3},
            "spec": spec,
            "status": {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1,
                "observedGeneration": 3, "disruptedPods": {"web-1": "2026-11-30T01:00:00Z"},
                "conditions": [{"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed",
                    "message": "foos.example.com does not implement the scale subresource"}]},
        });
        match PodDisruptionBudget::item(&document) {
            Item::Good(budget) => budget,
            Item::Malformed(bad) => panic!("{bad}"),
        }
    }

    #[test]
    fn a_null_selector_matches_nothing_and_an_empty_one_its_whole_namespace() {
        let labels = json!({"app": "web", "tier": "front"});
        let rows = [
            ("null", json!({"selector": null}), false),
            ("none", json!({}), false),
            ("empty", json!({"selector": {}}), true),
            ("labels", json!({"selector": {"matchLabels": {"app": "web"}}}), true),
            ("other labels", json!({"selector": {"matchLabels": {"app": "db"}}}), false),
            (
                "In",
                json!({"selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}}),
                true,
            ),
            (
                "NotIn",
                json!({"selector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}}),
                false,
            ),
            (
                "NotIn, no such label",
                json!({"selector": {"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["web"]}]}}),
                true,
            ),
            ("Exists", json!({"selector": {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}}), true),
            (
                "DoesNotExist",
                json!({"selector": {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}}),
                false,
            ),
            (
                "both must hold",
                json!({"selector": {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "In", "values": ["back"]}]}}),
                false,
            ),
        ];
        for (row, spec, wanted) in rows {
            let budget = budget(spec);
            let pod = |namespace: &str| Metadata {
                namespace: namespace.to_owned(),
                labels: serde_json::from_value(labels.clone()).expect("labels"),
                ..Metadata::default()
            };
            assert_eq!(budget.covers(&pod("shop")), wanted, "{row}");
            assert!(!budget.covers(&pod("other")), "{row}: another namespace");
        }
    }

    #[test]
    fn what_a_drain_needs_of_a_budget_is_read() {
        let found = budget(json!({"minAvailable": "50%", "maxUnavailable": 1, "unhealthyPodEvictionPolicy": "Later"}));
        assert_eq!(found.min_available.as_deref(), Some("50%"));
        assert_eq!(found.max_unavailable.as_deref(), Some("1"));
        assert_eq!(found.unhealthy_policy, UnhealthyPolicy::Unknown("Later".to_owned()));
        assert_eq!(found.disrupted_pods, ["web-1"]);
        assert_eq!(found.sync_failure(), Some("foos.example.com does not implement the scale subresource"));
        assert!(found.is_observed());
        let stale = PodDisruptionBudget { observed_generation: Some(2), ..found.clone() };
        let never = PodDisruptionBudget { observed_generation: None, ..found };
        assert!(!stale.is_observed() && !never.is_observed());
        assert!(!stale.fails_as_it_is() && !never.fails_as_it_is(), "the failure may be that of another spec");
        let first = Metadata { generation: Some(1), ..never.metadata.clone() };
        let first = PodDisruptionBudget { metadata: first, ..never };
        assert!(!first.is_observed() && first.fails_as_it_is(), "there was no other spec");
    }
}
