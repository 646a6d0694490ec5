//! Sources that do not answer.

use super::*;
use crate::facts::{FailureKind, Observation};

type Change = fn(&mut Case);

#[test]
fn sources_that_do_not_answer() {
    const ROWS: &[(&str, Change, Status, Reason)] = &[
        (
            "not installed",
            |c| {
                c.facts.longhorn_volumes = absent(c);
                c.facts.longhorn_replicas = absent(c);
                c.facts.longhorn_engines = absent(c);
                c.facts.longhorn_settings = absent(c);
            },
            Status::NotApplicable,
            Reason::NotInstalled,
        ),
        ("not asked", |c| c.facts.longhorn_volumes = Observation::NotAsked, Status::NotApplicable, Reason::NotAsked),
        (
            "replicas without volumes",
            |c| c.facts.longhorn_volumes = absent(c),
            Status::Unknown,
            Reason::ObservationFailed,
        ),
        ("volumes forbidden", |c| c.facts.longhorn_volumes = failed(c), Status::Unknown, Reason::ObservationFailed),
        ("replicas absent", |c| c.facts.longhorn_replicas = absent(c), Status::Unknown, Reason::ObservationFailed),
        ("engines absent", |c| c.facts.longhorn_engines = absent(c), Status::Unknown, Reason::ObservationFailed),
        ("settings absent", |c| c.facts.longhorn_settings = absent(c), Status::Unknown, Reason::ObservationFailed),
        (
            "replicas not asked",
            |c| c.facts.longhorn_replicas = Observation::NotAsked,
            Status::Unknown,
            Reason::ObservationFailed,
        ),
        ("engines forbidden", |c| c.facts.longhorn_engines = failed(c), Status::Unknown, Reason::ObservationFailed),
        ("settings forbidden", |c| c.facts.longhorn_settings = failed(c), Status::Unknown, Reason::ObservationFailed),
        ("nodes forbidden", |c| c.facts.nodes = failed(c), Status::Unknown, Reason::ObservationFailed),
        ("attachments only add a time", |c| c.facts.volume_attachments = failed(c), Status::Pass, Reason::Passed),
        ("too old", |c| c.now += jiff::SignedDuration::from_secs(31), Status::Unknown, Reason::ObservationStale),
    ];
    for (name, change, status, reason) in ROWS {
        let mut case = World::new().case();
        change(&mut case);
        let finding = case.ask(&GATE);
        assert_eq!((finding.status, finding.reason), (*status, *reason), "{name}: {}", finding.message);
    }
}

#[test]
fn blocks_win_over_what_could_not_be_read() {
    type Bend = fn(&mut World);
    const ROWS: &[(&str, Change, Bend, Reason)] = &[
        ("replicas", |c| c.facts.longhorn_replicas = failed(c), |w| w.fail("pvc-a", "worker3", 9), DEGRADED_REASON),
        ("nodes", |c| c.facts.nodes = failed(c), |w| w.fail("pvc-a", "worker3", 9), DEGRADED_REASON),
        ("settings", |c| c.facts.longhorn_settings = failed(c), |w| w.fail("pvc-a", "worker3", 9), DEGRADED_REASON),
        (
            "engines, and the last copy on the target",
            |c| c.facts.longhorn_engines = failed(c),
            |w| w.docs.attach("pvc-d", "worker1", &["worker2"]),
            Reason::LonghornLastReplicaOnTarget,
        ),
    ];
    for (name, change, bend, reason) in ROWS {
        let mut case = World::bent(*bend).case();
        change(&mut case);
        let finding = case.ask(&GATE);
        assert_eq!((finding.status, finding.reason), (Status::Block, *reason), "{name}: {}", finding.message);
    }
}

const DEGRADED_REASON: Reason = Reason::LonghornVolumeDegraded;

fn absent<T>(case: &Case) -> Observation<T> {
    Observation::Absent { at: case.now }
}

fn failed<T>(case: &Case) -> Observation<T> {
    Observation::Failed { kind: FailureKind::Forbidden, detail: "no".into(), at: case.now }
}
