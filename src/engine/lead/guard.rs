//! What guarded work carries: proof that this process leads, for long enough.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use maint_core::election::Term;
use tokio_util::sync::CancellationToken;

use crate::runtime::{Clock, Instant};

/// Proof of a tenure. Clones are one guard; it ends with the tenure and is never valid again.
#[derive(Debug, Clone)]
pub struct LeaseGuard(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    term: Term,
    clock: Clock,
    token: CancellationToken,
    validity: Mutex<Validity>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Validity {
    /// End on the monotonic clock.
    pub(super) until: Instant,
    /// End on our own wall clock, counted from the same instant. It can only shorten: the monotonic clock stands still
    /// while a machine is suspended, the wall clock mostly does not.
    pub(super) wall_until: Timestamp,
}

/// The call must not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotLeading {
    /// The tenure is over.
    #[error("this replica does not lead any more (term {term})")]
    Over {
        /// The term that is over.
        term: Term,
    },
    /// The tenure may be over before the call is.
    #[error("the Lease (term {term}) is valid for {left:?}, but the call may take {needed:?}")]
    TooShort {
        /// The term.
        term: Term,
        /// How long the call may take.
        needed: Duration,
        /// How long the tenure is sure to last.
        left: Duration,
    },
}

impl NotLeading {
    /// Label of metrics and Events.
    #[must_use]
    pub const fn category(&self) -> &'static str {
        match self {
            Self::Over { .. } => "not-leading",
            Self::TooShort { .. } => "lease-too-short",
        }
    }
}

impl LeaseGuard {
    pub(super) fn new(term: Term, clock: Clock, validity: Validity) -> Self {
        let token = CancellationToken::new();
        Self(Arc::new(Shared { term, clock, token, validity: Mutex::new(validity) }))
    }

    /// A guard of term 1 that is valid for so long.
    #[cfg(test)]
    pub(crate) fn of_test(clock: &Clock, lasts: Duration) -> Self {
        let wall = SignedDuration::try_from(lasts).unwrap_or_default();
        let validity = Validity { until: clock.instant() + lasts, wall_until: clock.now() + wall };
        Self::new(Term(1), clock.clone(), validity)
    }

    /// Asked right before each guarded call: does the tenure last longer than the call may take?
    ///
    /// # Errors
    /// If it is over, or may be before the call is.
    pub fn check(&self, needed: Duration) -> Result<Term, NotLeading> {
        let term = self.0.term;
        if self.0.token.is_cancelled() {
            return Err(NotLeading::Over { term });
        }
        let left = self.left();
        if left.is_zero() {
            return Err(NotLeading::Over { term });
        }
        if left <= needed {
            return Err(NotLeading::TooShort { term, needed, left });
        }
        Ok(term)
    }

    /// The fencing number that guarded writes carry.
    #[must_use]
    pub fn term(&self) -> Term {
        self.0.term
    }

    /// Cancelled at once when the tenure ends. Guarded tasks run under it or a child of it; cancelling a child ends
    /// that task alone.
    #[must_use]
    pub fn child_token(&self) -> CancellationToken {
        self.0.token.child_token()
    }

    /// Waits for the end of the tenure.
    pub async fn ended(&self) {
        self.0.token.cancelled().await;
    }

    fn left(&self) -> Duration {
        let validity = *self.0.validity.lock().unwrap_or_else(PoisonError::into_inner);
        let steady = validity.until.duration_since(self.0.clock.instant());
        let wall: SignedDuration = validity.wall_until.duration_since(self.0.clock.now());
        steady.min(Duration::try_from(wall).unwrap_or(Duration::ZERO))
    }

    pub(super) fn renew(&self, validity: Validity) {
        *self.0.validity.lock().unwrap_or_else(PoisonError::into_inner) = validity;
    }

    pub(super) fn end(&self) {
        self.0.token.cancel();
    }
}

impl PartialEq for LeaseGuard {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
