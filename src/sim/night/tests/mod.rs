//! Nights.

mod crashes;
mod drains;
mod frozen;
mod kured_nights;
mod pace;
mod questions;
mod rate;
mod scenarios;
mod seeds;
mod shells;

pub(crate) use rate::on_the_core;

use super::*;

/// Plays a night with the real client, in a runtime of its own.
fn night(scenario: &Scenario, plan: &Plan) -> Night {
    night_in(Shell::Api, scenario, plan)
}

/// Plays a night in a shell.
fn night_in(shell: Shell, scenario: &Scenario, plan: &Plan) -> Night {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(play(shell, scenario, plan))
}

/// What a person asks for by an environment variable; what is no number is an error, or another night would be played.
fn asked_for(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// What a person would read of the record.
fn story(night: &Night) -> String {
    night.story()
}
