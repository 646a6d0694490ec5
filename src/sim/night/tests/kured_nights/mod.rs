//! Nights in which kured reboots.

mod scenarios;
mod seeds;

use super::super::kured::{Chaos, KuredNight, SCENARIOS, Scenario, play, play_by_chance};
use super::*;

/// Plays a night in a runtime of its own.
fn night(scenario: &Scenario, plan: &Plan) -> KuredNight {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(play(Shell::Typed, scenario, plan))
}
