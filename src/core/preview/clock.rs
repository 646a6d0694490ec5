//! Another time for what goes by the clock. Facts of the cluster stay those of now.

use jiff::{SignedDuration, Timestamp};

use crate::api::{Finding, GateId};
use crate::facts::{Facts, Item, Lease, Listed, Observation};
use crate::gates::{GateInput, spec_of};

/// The gates that are asked for another time: windows, halts and holds. What the others see is the cluster, and of that
/// nobody knows how it will be.
pub const BY_THE_CLOCK: &[GateId] = &[GateId::Control, GateId::Window];

/// Asks these gates as if it were `at`, and puts their answers in place.
pub(super) fn ask_anew(findings: &mut [Finding], question: &GateInput<'_>, at: Timestamp) {
    let by = at.duration_since(question.now);
    let facts = moved(question.facts, by);
    let then = GateInput { facts: &facts, now: at, ..*question };
    for mut answer in BY_THE_CLOCK.iter().filter_map(|gate| spec_of(*gate)?.ask(&then)) {
        // It rests on what was seen now.
        answer.observed_at = answer.observed_at.and_then(|seen| seen.checked_sub(by).ok());
        if let Some(old) = findings.iter_mut().find(|old| old.gate == answer.gate) {
            *old = answer;
        }
    }
}

/// What these gates read, as if all of it had been seen, and every heartbeat had come, so much later: that nodes went on
/// renewing their Leases says nothing about windows.
fn moved(facts: &Facts, by: SignedDuration) -> Facts {
    let mut leases = later(&facts.leases, by);
    if let Observation::Known { value, .. } = &mut leases {
        for item in value {
            if let Item::Good(Lease { renew_time: Some(renewed), .. }) = item {
                *renewed = renewed.saturating_add(by).unwrap_or(*renewed);
            }
        }
    }
    Facts {
        leases,
        nodes: later(&facts.nodes, by),
        config_maps: later(&facts.config_maps, by),
        maintenances: later(&facts.maintenances, by),
        maintenance_reports: later(&facts.maintenance_reports, by),
        ..Facts::default()
    }
}

fn later<T: Clone>(listed: &Listed<T>, by: SignedDuration) -> Listed<T> {
    let mut listed = listed.clone();
    match &mut listed {
        Observation::NotAsked => {}
        Observation::Known { at, .. } | Observation::Absent { at } | Observation::Failed { at, .. } => {
            *at = at.saturating_add(by).unwrap_or(*at);
        }
    }
    listed
}
