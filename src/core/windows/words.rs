//! Instants as people read them: by the clock of the window, and in UTC.

use jiff::Timestamp;

use crate::config::Zone;

/// `Mon 2026-11-30 23:00 CET (2026-11-30T22:00Z)`; in UTC once only. Seconds are shown where there are some.
#[must_use]
pub fn told(at: Timestamp, zone: &Zone) -> String {
    let whole = at.as_second() % 60 == 0;
    let local = at.to_zoned(zone.rules().clone());
    let local = local.strftime(if whole { "%a %Y-%m-%d %H:%M %Z" } else { "%a %Y-%m-%d %H:%M:%S %Z" });
    if *zone == Zone::UTC {
        return local.to_string();
    }
    let universal = at.strftime(if whole { "%Y-%m-%dT%H:%MZ" } else { "%Y-%m-%dT%H:%M:%SZ" });
    format!("{local} ({universal})")
}
