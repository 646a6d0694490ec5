//! What is asked of the API to let a pod go, and what it can answer.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Evictions of one lane are sent one after the other, since they compete for one object: two at the same time would
/// fight over a budget's status, or take two pods of a StatefulSet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", content = "uid", rename_all = "camelCase")]
pub enum Lane {
    /// The pods of a PodDisruptionBudget, by its uid.
    Budget(String),
    /// The pods of a StatefulSet without a budget, by its uid.
    StatefulSet(String),
    /// The pod, by its own uid: nothing competes with it.
    Pod(String),
}

/// One eviction to be sent.
///
/// Those of the same lane are sent in the order in which they stand, each after the answer to the one before; after an
/// answer with [`Answer::ends_lane`] the rest of that lane is not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Eviction {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
    /// Its uid: a successor of the same name is never hit.
    pub uid: String,
    /// What tells the pods that its controller puts in its place here; none for a bare one.
    pub origin: Option<Origin>,
    /// Seconds that it has to end; none: what the pod says itself.
    pub grace_seconds: Option<i64>,
    /// What it competes for.
    pub lane: Lane,
    /// `resourceVersion` of the budget, or of the StatefulSet, that this was decided on; empty without one. After a
    /// refusal the lane waits until the budget has another.
    pub basis: String,
}

/// Whose pod it is, and which of its pods were on the node when it was asked to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Uid of its controller.
    pub controller: String,
    /// When the newest pod of that controller on the node was made (`metadata.creationTimestamp`): what was made later took
    /// its place. Both times are of the API server's clock.
    pub newest: Timestamp,
}

/// What came of one eviction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// What was asked.
    pub eviction: Eviction,
    /// What the API said.
    pub answer: Answer,
    /// When its answer was there, or the wait for it ended.
    pub at: Timestamp,
}

/// What the API said to one eviction. Measured with an API server of Kubernetes 1.36; nothing but [`Answer::Accepted`]
/// and [`Answer::Gone`] is ever a success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// 201 (or 200): the pod is ending, or was ending already. It is gone only once the list no longer has it.
    Accepted,
    /// 404: there is no such pod.
    Gone,
    /// 429 with a cause `DisruptionBudget`.
    RefusedByBudget {
        /// Name of the budget, from the cause's message; none where it does not say. Its namespace is the pod's.
        budget: Option<String>,
        /// Message of the cause, or of the answer where there is none.
        message: String,
        /// `Retry-After` or `details.retryAfterSeconds`: there only while the budget is being processed.
        retry_after_seconds: Option<i64>,
    },
    /// 429 without that cause: the API server sheds load, whatever the pod.
    Throttled {
        /// `Retry-After` or `details.retryAfterSeconds`.
        retry_after_seconds: Option<i64>,
    },
    /// 409: another pod has the name now, or somebody wrote the pod at the same time. The list tells which.
    UidConflict,
    /// 403 with the cause `NamespaceTerminating`: the pod's deletion is coming anyway.
    NamespaceTerminating,
    /// 500 "more than one PodDisruptionBudget": stays until a budget is changed.
    TwoBudgets {
        /// The answer's message; it does not name the budgets.
        message: String,
    },
    /// Whatever the code: "admission webhook ... denied the request".
    WebhookDenied {
        /// The answer's message.
        message: String,
    },
    /// 401, or 403 for another cause: a right is missing.
    Forbidden {
        /// The answer's message.
        message: String,
    },
    /// 400, 415, 422: a mistake of ours, the same at every try.
    Invalid {
        /// The answer's message.
        message: String,
    },
    /// Another 5xx, a time-out, a cut connection: it may have happened.
    Transient {
        /// What happened.
        message: String,
    },
    /// An answer that is none of these. It is taken for a refusal.
    Unknown {
        /// Code and message.
        message: String,
    },
}

impl Answer {
    /// Label of logs, metrics and Events.
    #[must_use]
    pub const fn category(&self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Gone => "gone",
            Self::RefusedByBudget { .. } => "refused-by-budget",
            Self::Throttled { .. } => "throttled",
            Self::UidConflict => "uid-conflict",
            Self::NamespaceTerminating => "namespace-terminating",
            Self::TwoBudgets { .. } => "two-budgets",
            Self::WebhookDenied { .. } => "webhook-denied",
            Self::Forbidden { .. } => "forbidden",
            Self::Invalid { .. } => "invalid",
            Self::Transient { .. } => "transient",
            Self::Unknown { .. } => "unknown",
        }
    }

    /// Whether the rest of the lane waits after it: only where this pod needs nothing more is the next one asked.
    #[must_use]
    pub const fn ends_lane(&self) -> bool {
        !matches!(self, Self::Accepted | Self::Gone)
    }
}
