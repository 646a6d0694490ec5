//! Nights whose drain is hard.

use std::time::Duration;

use jiff::Timestamp;

use super::scenario::{Scenario, WELL};
use super::troubles::{self, Trouble};
use super::{Person, Stage};
use crate::clock::sleep;
use crate::faults::EvictionChances;
use crate::store::http::Inner;

const BACK_OUT: Scenario = Scenario {
    ends: ("Failed", "DrainDeadline"),
    boots: 0,
    phases: &["Pending", "Cordoning", "Draining", "BackingOut", "Failed"],
    ..WELL
};

/// A drain that has its time.
const PATIENT: Scenario = Scenario {
    configure: |settings| settings.run.drain_timeout_seconds = 600,
    script: |stage| Box::pin(drain(stage)),
    ..WELL
};

/// Nights whose drain is hard.
pub const DRAINS: &[Scenario] = &[
    Scenario {
        name: "slow-budgets",
        prepare: |inner, now| all(inner, now, &[CROWD]),
        script: |stage| Box::pin(slowly(stage)),
        ..PATIENT
    },
    Scenario { name: "slow-successors", prepare: |inner, now| all(inner, now, &[CROWD]), ..PATIENT },
    Scenario {
        name: "finalizer-taken-off",
        prepare: |inner, now| all(inner, now, &[Trouble::Finalizer(Some(20))]),
        ..PATIENT
    },
    Scenario {
        name: "finalizer-that-stays",
        prepare: |inner, now| all(inner, now, &[Trouble::Finalizer(None)]),
        script: |stage| Box::pin(drain(stage)),
        ..BACK_OUT
    },
    Scenario {
        name: "stuck-terminating",
        prepare: |inner, now| all(inner, now, &[Trouble::Stuck]),
        script: |stage| Box::pin(drain(stage)),
        ..BACK_OUT
    },
    Scenario { name: "switchover", prepare: |inner, now| all(inner, now, &[Trouble::Primary(20)]), ..PATIENT },
    Scenario { name: "same-name-elsewhere", prepare: |inner, now| all(inner, now, &[Trouble::Successors]), ..PATIENT },
    Scenario {
        name: "webhook-refuses-twice",
        prepare: |inner, now| all(inner, now, &[Trouble::Webhook(Some(2))]),
        ..PATIENT
    },
    Scenario {
        name: "webhook-refuses-always",
        prepare: |inner, now| all(inner, now, &[Trouble::Webhook(None)]),
        script: |stage| Box::pin(drain(stage)),
        ..BACK_OUT
    },
    Scenario {
        name: "namespace-that-ends",
        prepare: |inner, now| all(inner, now, &[Trouble::EndingNamespace]),
        script: |stage| Box::pin(leaving(stage)),
        ..PATIENT
    },
    Scenario { name: "throttled", script: |stage| Box::pin(throttled(stage)), ..PATIENT },
    Scenario { name: "lost-answers", script: |stage| Box::pin(lost_answers(stage)), ..PATIENT },
];

const CROWD: Trouble = Trouble::Crowd { replicas: 6, start: 8 };

fn all(inner: &mut Inner, now: Timestamp, list: &[Trouble]) {
    for trouble in list {
        trouble.prepare(inner, now);
    }
}

async fn drain(stage: &Stage) {
    Person::new(stage, "person").asks("reboot", "pod", false).await;
}

async fn slowly(stage: &Stage) {
    stage.with(|world, _, _| Trouble::SlowBudgets(6).pace(world.settings()));
    drain(stage).await;
}

async fn leaving(stage: &Stage) {
    drain(stage).await;
    stage.until_phase(&["Draining"]).await;
    stage.with(|_, inner, now| troubles::leave(inner, now));
    sleep(Duration::from_secs(30)).await;
    stage.with(|_, inner, now| troubles::relent(inner, now));
}

/// Every eviction meets this for so long from the beginning of the drain.
async fn under(stage: &Stage, chances: EvictionChances, seconds: u64) {
    stage.cluster.lock().faults.on_evictions(chances);
    drain(stage).await;
    stage.until_phase(&["Draining"]).await;
    sleep(Duration::from_secs(seconds)).await;
    stage.cluster.lock().faults.on_evictions(EvictionChances::default());
}

async fn throttled(stage: &Stage) {
    under(stage, EvictionChances { throttled: 1000, ..EvictionChances::default() }, 15).await;
}

async fn lost_answers(stage: &Stage) {
    under(stage, EvictionChances { hang_after: 1000, ..EvictionChances::default() }, 60).await;
}
