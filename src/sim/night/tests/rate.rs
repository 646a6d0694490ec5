//! How many nights a second of one core, in each shell.

use std::time::Duration;

use super::*;

/// Nights of every scenario in the typed shell for one with the real client: both take about as long then.
const ROUNDS: u64 = 4;

/// Plays every scenario so many times; answers how many nights that were, and how long they took.
fn nights(shell: Shell, rounds: u64) -> (u64, Duration) {
    let begun = on_the_core();
    let mut played = 0;
    for seed in 1..=rounds {
        for scenario in SCENARIOS {
            let night = night_in(shell, scenario, &Plan { seed, ..Plan::default() });
            assert_eq!((night.end.phase.as_str(), night.end.outcome.as_str()), scenario.ends, "{}", scenario.name);
            assert_eq!(night.violations, Vec::new(), "{}", scenario.name);
            played += 1;
        }
    }
    (played, on_the_core().checked_sub(begun).expect("it only grows"))
}

/// How long this thread has been at work: other work on the machine shall not look like a slow night. It is the first
/// number of Linux' schedstat, in nanoseconds; elsewhere there is no such figure.
pub(crate) fn on_the_core() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("the kernel's count of this thread");
    let nanoseconds = text.split_whitespace().next().and_then(|first| first.parse().ok());
    Duration::from_nanos(nanoseconds.expect("a number"))
}

/// One thread plays them: `cargo test --release -p maint-sim nights_a_second -- --nocapture`.
#[test]
fn nights_a_second_in_both_shells() {
    let count = u64::try_from(SCENARIOS.len()).expect("few");
    let (api, api_time) = nights(Shell::Api, 1);
    let (typed, typed_time) = nights(Shell::Typed, ROUNDS);
    assert_eq!((api, typed), (count, count * ROUNDS));
    let rate = |nights: u64, time: Duration| f64::from(u32::try_from(nights).expect("few")) / time.as_secs_f64();
    let (api, typed) = (rate(api, api_time), rate(typed, typed_time));
    println!("figure sim.nights_per_second.api {api:.1} 1/s");
    println!("figure sim.nights_per_second.typed {typed:.1} 1/s");
    println!("figure sim.typed_to_api {:.1} x", typed / api);
}
