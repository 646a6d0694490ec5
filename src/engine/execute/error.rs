//! Why a write did not happen, or may not have.

use std::time::Duration;

/// Why a write did not happen, or may not have. Nothing here is retried by itself: the driver looks at the world
/// again and decides anew.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// We no longer lead, or not for long enough: nothing was sent.
    #[error("not leading: {0}")]
    NotLeading(String),
    /// 409: somebody wrote first.
    #[error("somebody else wrote first: {0}")]
    Conflict(String),
    /// 404: it is gone.
    #[error("it is gone: {0}")]
    NotFound(String),
    /// 429 by a budget, 500 by two budgets, a webhook that denies: not now.
    #[error("refused: {0}")]
    Refused(String),
    /// 401 or 403.
    #[error("not allowed: {0}")]
    Forbidden(String),
    /// 400, 415, 422: a mistake of ours.
    #[error("the API server does not accept it: {0}")]
    Invalid(String),
    /// No answer in time: it may have happened.
    #[error("no answer within {} s; it may have happened", limit.as_secs())]
    TimedOut {
        /// The limit.
        limit: Duration,
    },
    /// No connection, or one that was cut: it may have happened.
    #[error("no answer ({0}); it may have happened")]
    Transport(String),
    /// A read without an answer: nothing can have happened.
    #[error("could not be read: {0}")]
    NotRead(String),
    /// Any other answer.
    #[error("the API server failed: {0}")]
    Server(String),
}

impl WriteError {
    /// Label of metrics and Events.
    #[must_use]
    pub const fn category(&self) -> &'static str {
        match self {
            Self::NotLeading(_) => "not-leading",
            Self::Conflict(_) => "conflict",
            Self::NotFound(_) => "not-found",
            Self::Refused(_) => "refused",
            Self::Forbidden(_) => "forbidden",
            Self::Invalid(_) => "invalid",
            Self::TimedOut { .. } => "timeout",
            Self::Transport(_) | Self::NotRead(_) => "transport",
            Self::Server(_) => "server",
        }
    }

    /// The same of a request that changes nothing.
    #[must_use]
    pub fn of_read(self) -> Self {
        match self {
            Self::TimedOut { limit } => Self::NotRead(format!("no answer within {} s", limit.as_secs())),
            Self::Transport(why) => Self::NotRead(why),
            other => other,
        }
    }

    /// From an answer's code and message.
    #[must_use]
    pub fn of_answer(code: u16, message: String) -> Self {
        match code {
            401 | 403 => Self::Forbidden(message),
            404 => Self::NotFound(message),
            409 => Self::Conflict(message),
            429 => Self::Refused(message),
            500 if message.contains("more than one PodDisruptionBudget") => Self::Refused(message),
            _ if message.contains("denied the request") => Self::Refused(message),
            400 | 415 | 422 => Self::Invalid(message),
            _ => Self::Server(format!("{code}: {message}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart() {
        let rows = [
            (409, "the object has been modified", "conflict"),
            (404, "pods \"a\" not found", "not-found"),
            (429, "Cannot evict pod as it would violate the pod's disruption budget.", "refused"),
            (
                500,
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
                "refused",
            ),
            (500, "etcdserver: request timed out", "server"),
            (403, "nodes \"a\" is forbidden", "forbidden"),
            (400, "admission webhook \"x\" denied the request: no", "refused"),
            (422, "the server rejected our request", "invalid"),
        ];
        for (code, message, category) in rows {
            assert_eq!(WriteError::of_answer(code, message.to_owned()).category(), category, "{code} {message}");
        }
    }
}
