//! Jobs (`batch/v1`): what installs charts and upgrades nodes.

use jiff::Timestamp;

use super::source::{Namespaces, Source, SourceSpec};
use super::{Condition, Fields, Malformed, Metadata, TriState};
use crate::api::SourceId;

/// A Job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Name, namespace, labels, deletion.
    pub metadata: Metadata,
    /// `spec.suspend`; unset means false (JobSpec, batch/v1).
    pub suspended: bool,
    /// `status.active`: pods that are pending or running; the API leaves zero out.
    pub active: i64,
    /// `status.startTime`; reset when it is suspended.
    pub started: Option<Timestamp>,
    /// `status.conditions`
    pub conditions: Vec<Condition>,
}

impl Job {
    /// It has ended, in whatever way: condition `Complete` or `Failed` is True, and neither is ever taken back (job
    /// controller, batch/v1).
    #[must_use]
    pub fn is_finished(&self) -> bool {
        let ends = |one: &Condition| matches!(one.kind.as_str(), "Complete" | "Failed") && one.status == TriState::True;
        self.conditions.iter().any(ends)
    }

    /// It has a pod, or will have one without anybody's doing: also before its first pod, and between two tries.
    #[must_use]
    pub fn is_at_work(&self) -> bool {
        !self.is_finished() && (!self.suspended || self.active > 0)
    }
}

impl Source for Job {
    const SPEC: SourceSpec = SourceSpec {
        id: SourceId::Jobs,
        group: "batch",
        version: "v1",
        kind: "Job",
        resource: "jobs",
        namespaces: Namespaces::All,
        label_selector: None,
        max_age_seconds: 30,
        built_in: true,
    };

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let (spec, status) = (root.object("spec")?, root.object("status")?);
        Ok(Self {
            metadata: Metadata::of(root)?,
            suspended: spec.optional_bool("suspend")?.unwrap_or(false),
            active: status.optional_i64("active")?.unwrap_or(0),
            started: status.optional_time("startTime")?,
            conditions: Condition::list(&status)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::facts::Item;

    #[test]
    fn only_what_ended_or_is_suspended_is_not_at_work() {
        let condition = |kind: &str, status: &str| json!([{"type": kind, "status": status}]);
        let rows: [(&str, Value, Value, bool); 9] = [
            ("just created", json!({}), json!({}), true),
            ("running", json!({}), json!({"active": 1, "ready": 1}), true),
            ("between two tries", json!({}), json!({"failed": 3}), true),
            ("complete", json!({}), json!({"succeeded": 1, "conditions": condition("Complete", "True")}), false),
            ("failed", json!({}), json!({"failed": 7, "conditions": condition("Failed", "True")}), false),
            ("about to fail", json!({}), json!({"active": 1, "conditions": condition("FailureTarget", "True")}), true),
            ("not complete", json!({}), json!({"conditions": condition("Complete", "False")}), true),
            ("suspended", json!({"suspend": true}), json!({"conditions": condition("Suspended", "True")}), false),
            ("suspended, with a pod left", json!({"suspend": true}), json!({"active": 1}), true),
        ];
        for (row, spec, status, at_work) in rows {
            let document = json!({"metadata": {"name": "j", "namespace": "n"}, "spec": spec, "status": status});
            let Item::Good(job) = Job::item(&document) else { panic!("{row}") };
            assert_eq!(job.is_at_work(), at_work, "{row}");
        }
    }
}
