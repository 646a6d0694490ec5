//! How long a post-check waits: until everything is well and stayed so, or until its time is over.

use std::time::Duration;

use crate::gates::Verdict;

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It is well, and stayed so.
    Done,
    /// Look again.
    Again,
    /// The time is over.
    GaveUp,
}

/// A wait. Times are counted from its beginning, on a clock that nobody sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// How long it waits at most; zero looks once.
    pub timeout: Duration,
    /// How long it must be well without a break; zero takes the first look for an answer.
    pub settle: Duration,
    clear_since: Option<Duration>,
}

impl Wait {
    /// A wait that begins now.
    #[must_use]
    pub const fn new(timeout: Duration, settle: Duration) -> Self {
        Self { timeout, settle, clear_since: None }
    }

    /// Since when it is well.
    #[must_use]
    pub const fn clear_since(&self) -> Option<Duration> {
        self.clear_since
    }

    /// It was looked, and this is what was seen; none if nobody answered. A break begins anew.
    pub fn look(&mut self, verdict: Option<Verdict>, elapsed: Duration) -> Next {
        if verdict == Some(Verdict::Clear) {
            let since = *self.clear_since.get_or_insert(elapsed);
            let once = self.timeout.is_zero();
            if once || elapsed.saturating_sub(since) >= self.settle {
                return Next::Done;
            }
        } else {
            self.clear_since = None;
        }
        if elapsed >= self.timeout { Next::GaveUp } else { Next::Again }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_well_only_after_an_unbroken_time() {
        const CLEAR: Option<Verdict> = Some(Verdict::Clear);
        const RED: Option<Verdict> = Some(Verdict::Blocked);
        // Name, timeout, settle, looks at seconds, what the last one says.
        type Row = (&'static str, u64, u64, &'static [(u64, Option<Verdict>)], Next);
        let rows: [Row; 12] = [
            ("well at once, no settling", 60, 0, &[(0, CLEAR)], Next::Done),
            ("once and well, whatever settling asks", 0, 30, &[(0, CLEAR)], Next::Done),
            ("once and red", 0, 30, &[(0, RED)], Next::GaveUp),
            ("once and nobody answers", 0, 30, &[(0, None)], Next::GaveUp),
            ("well, not yet long enough", 60, 30, &[(0, CLEAR), (29, CLEAR)], Next::Again),
            ("well for long enough", 60, 30, &[(0, CLEAR), (30, CLEAR)], Next::Done),
            ("a break begins anew", 90, 30, &[(0, CLEAR), (20, RED), (25, CLEAR), (50, CLEAR)], Next::Again),
            ("silence is a break too", 90, 30, &[(0, CLEAR), (20, None), (25, CLEAR), (55, CLEAR)], Next::Done),
            ("unknown is a break", 90, 30, &[(0, CLEAR), (20, Some(Verdict::Unknown)), (40, CLEAR)], Next::Again),
            ("red until the end", 60, 30, &[(0, RED), (60, RED)], Next::GaveUp),
            ("well too late", 60, 30, &[(0, RED), (40, CLEAR), (61, CLEAR)], Next::GaveUp),
            ("silent until the end", 60, 30, &[(0, None), (60, None)], Next::GaveUp),
        ];
        for (row, timeout, settle, looks, wanted) in rows {
            let mut wait = Wait::new(Duration::from_secs(timeout), Duration::from_secs(settle));
            let mut last = Next::Again;
            for (seconds, verdict) in looks {
                assert_eq!(last, Next::Again, "{row}: it went on");
                last = wait.look(*verdict, Duration::from_secs(*seconds));
            }
            assert_eq!(last, wanted, "{row}");
        }
    }
}
