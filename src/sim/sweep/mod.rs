//! Many nights by seed: each is drawn, played and judged, and a bad one is shrunk to the troubles that it takes.

mod draw;
mod judge;
mod shrink;
mod tally;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use draw::Drawn;
pub use judge::{Wrong, hot, kured_wrongs, wrongs};
pub use shrink::{Shrunk, shrink};
pub use tally::Tally;

use crate::kinds::{Family, FaultKind};
use crate::night::kured::play_by_chance;
use crate::night::{Night, Shell, kured};
use crate::trace::Step;

/// Steps of the service that a story shows before the step that broke a rule.
const STEPS_TOLD: usize = 25;

/// What came of a night.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What was played.
    pub drawn: Drawn,
    /// How each run ended.
    pub ends: Vec<String>,
    /// What is wrong; nothing as a rule.
    pub wrongs: Vec<Wrong>,
    /// How often each kind of trouble was hit.
    pub hits: BTreeMap<FaultKind, u64>,
    /// Hash over its trace: the same night has the same.
    pub hash: u64,
    /// Its steps.
    pub steps: usize,
    /// How long it was, in virtual seconds.
    pub seconds: i64,
    /// What a person would read of it; empty unless it was asked for, or something is wrong.
    pub story: String,
}

/// Plays a night, in a runtime of one thread whose time is paused. `tell` asks for its story.
///
/// # Errors
/// If such a runtime cannot be had.
pub fn play(shell: Shell, drawn: &Drawn, tell: bool) -> std::io::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    Ok(match drawn.plan().filter(|_| drawn.family != Family::Kured) {
        Some((scenario, plan)) => {
            let night = runtime.block_on(crate::night::play(shell, scenario, &plan));
            of_night(drawn, night, tell)
        }
        None => {
            let night = runtime.block_on(play_by_chance(shell, &drawn.chaos()));
            of_kured(drawn, night, tell)
        }
    })
}

fn of_night(drawn: &Drawn, night: Night, tell: bool) -> Outcome {
    let wrongs = judge::plain(&night);
    let story = story(tell, &wrongs, &night.history.steps, || night.story());
    Outcome {
        drawn: drawn.clone(),
        ends: vec![format!("{} {}", night.end.phase, night.end.outcome).trim().to_owned()],
        wrongs,
        hash: night.hash,
        steps: night.history.steps.len(),
        seconds: night.seconds,
        hits: night.kinds,
        story,
    }
}

fn of_kured(drawn: &Drawn, night: kured::KuredNight, tell: bool) -> Outcome {
    let wrongs = judge::kured(&night);
    let story = story(tell, &wrongs, &night.history.steps, || night.story());
    let ends = night.runs().into_iter().map(|run| format!("{} {}", run.phase, run.outcome).trim().to_owned());
    Outcome {
        drawn: drawn.clone(),
        ends: ends.collect(),
        wrongs,
        hash: night.hash,
        steps: night.history.steps.len(),
        seconds: night.seconds,
        hits: night.kinds,
        story,
    }
}

/// What a person reads of a night that he asked for, or that is bad.
fn story(tell: bool, wrongs: &[Wrong], steps: &[Step], of_records: impl FnOnce() -> String) -> String {
    if tell || !wrongs.is_empty() { format!("{}\n{}", of_records(), last_steps(steps, wrongs)) } else { String::new() }
}

/// What was written up to the first step that broke a rule, the last of it; nothing where none did.
fn last_steps(steps: &[Step], wrongs: &[Wrong]) -> String {
    let Some(broken) = wrongs.iter().filter_map(|wrong| wrong.step).min() else { return String::new() };
    let writes = |step: &&Step| step.number <= broken && !step.changes.is_empty() || step.number == broken;
    // Leases of nodes and of the service are renewed all the time.
    let matters = |step: &&Step| step.resource != "leases" && !step.path.starts_with("Kubelet(");
    let told: Vec<String> = steps.iter().filter(writes).filter(matters).map(Step::line).collect();
    let from = told.len().saturating_sub(STEPS_TOLD);
    told.get(from..).unwrap_or_default().join("\n")
}
