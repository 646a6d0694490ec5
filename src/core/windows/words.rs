//! Instants as people read them: by the clock of the window, and in UTC. Seconds are shown where there are some.

use jiff::Timestamp;

use crate::config::Zone;

/// `Mon 2026-11-30 23:00 CET (2026-11-30T22:00Z)`; in UTC once only.
#[must_use]
pub fn told(at: Timestamp, zone: &Zone) -> String {
    if *zone == Zone::UTC { local(at, zone) } else { format!("{} ({})", local(at, zone), universal(at)) }
}

/// `Mon 2026-11-30 23:00 CET`
#[must_use]
pub fn local(at: Timestamp, zone: &Zone) -> String {
    let format = if whole(at) { "%a %Y-%m-%d %H:%M %Z" } else { "%a %Y-%m-%d %H:%M:%S %Z" };
    at.to_zoned(zone.rules().clone()).strftime(format).to_string()
}

/// `Mon 23:00 CET`, beside a date.
#[must_use]
pub fn local_time(at: Timestamp, zone: &Zone) -> String {
    let format = if whole(at) { "%a %H:%M %Z" } else { "%a %H:%M:%S %Z" };
    at.to_zoned(zone.rules().clone()).strftime(format).to_string()
}

/// `2026-11-30T22:00Z`
#[must_use]
pub fn universal(at: Timestamp) -> String {
    at.strftime(if whole(at) { "%Y-%m-%dT%H:%MZ" } else { "%Y-%m-%dT%H:%M:%SZ" }).to_string()
}

fn whole(at: Timestamp) -> bool {
    at.as_second() % 60 == 0
}
