//! `maint demo`: one night of a cluster in memory, told while it happens. Asks no cluster and changes nothing.
//!
//! The night has a runtime of its own, whose time it moves on: so it is the same at every speed.

mod files;
mod screen;

use std::fmt::Write as _;

use anyhow::Context as _;
use clap::Args;
use clap::builder::PossibleValuesParser;
use maint_core::api::names;
use maint_core::jiff::Timestamp;
use maint_engine::client::install_crypto_provider;
use maint_engine::runtime::Clock;
use maint_sim::demo::door::Door;
use maint_sim::demo::pace::Pace;
use maint_sim::demo::{self, Demo as Night, Outcome, STORIES, Story};
use serde_json::json;

use super::interrupt::Interrupts;
use super::{Common, Exit, Failure, Output, terminal};
use files::Files;
use screen::Screen;

/// Seconds of the night in one second. The first story lasts 22 minutes: half a minute then.
const SPEED: &str = "45";
/// Half as fast as life, and as fast as any machine can.
const SPEEDS: (f64, f64) = (0.5, 100_000.0);

/// Arguments of `demo`.
#[derive(Debug, Args)]
#[command(after_long_help = stories())]
pub struct Demo {
    /// Which night; --help lists them
    #[arg(long, value_name = "NAME", default_value = STORIES[0].name, hide_possible_values = true,
        value_parser = PossibleValuesParser::new(STORIES.iter().map(|story| story.name)))]
    scenario: String,
    /// Seconds of the night in one second, 0.5 to 100000
    #[arg(long, value_name = "FACTOR", default_value = SPEED, value_parser = speed)]
    speed: f64,
    /// Open the cluster to kubectl and maint, and keep it until Ctrl-C. Its night ends now instead of beginning at two
    #[arg(long)]
    serve: bool,
}

/// A speed that makes sense.
fn speed(text: &str) -> Result<f64, String> {
    let (least, most) = SPEEDS;
    match text.parse::<f64>() {
        Ok(speed) if (least..=most).contains(&speed) => Ok(speed),
        _ => Err(format!("wanted a number from {least} to {most}")),
    }
}

/// The list of nights below `--help`.
fn stories() -> String {
    let width = STORIES.iter().map(|story| story.name.len()).max().unwrap_or_default();
    let mut text = "Scenarios:\n".to_owned();
    for story in STORIES {
        let _ = writeln!(text, "  {:width$}  {}", story.name, story.about);
    }
    text
}

impl Demo {
    /// Runs it: 0 if the night ends as it should.
    ///
    /// # Errors
    /// If it does not.
    pub async fn run(&self, common: &Common) -> anyhow::Result<Exit> {
        install_crypto_provider();
        let story = Story::named(&self.scenario).context("a scenario that clap knows is one")?;
        let now = Clock::real().now();
        let begin = if self.serve { whole_minute(now - story.lasts()) } else { last_two_o_clock(now) };
        let pace = Pace::Speed(self.speed);
        let door = if self.serve { Some(Door::new()?) } else { None };
        let mut screen = Screen::new(common);
        // Its time is its own, and so is its thread.
        let played = tokio::task::spawn_blocking(move || -> anyhow::Result<Outcome> {
            let runtime = demo::runtime().context("a runtime for the night cannot be had")?;
            let outcome = runtime.block_on(async {
                let night = Night::new(story, begin, pace, door.as_ref());
                screen.opening(story, begin)?;
                let _files = match &door {
                    Some(door) => Some(screen.invite(Files::write(door, night.settings())?)?),
                    None => None,
                };
                let mut interrupts = Interrupts::listen()?;
                tokio::select! {
                    biased;
                    // A Ctrl-C after the story ends the stay, and the story has come out already.
                    outcome = night.play(&mut screen) => Ok::<_, anyhow::Error>(Some(outcome?)),
                    () = interrupts.next() => Ok(None),
                }
            })?;
            screen.clear()?;
            let failure = || Failure { exit: Exit::Interrupted, text: "interrupted: the night is not over".to_owned() };
            Ok(outcome.ok_or_else(failure)?)
        });
        let outcome = played.await??;
        conclude(common, story, &outcome)
    }
}

/// Tells the document where one is wanted, and what is not as it must be.
fn conclude(common: &Common, story: &Story, outcome: &Outcome) -> anyhow::Result<Exit> {
    if common.output == Output::Json {
        terminal::json(&json!({
            "apiVersion": names::OUTPUT_API_VERSION,
            "kind": "Demo",
            "scenario": story.name,
            "endedAsItShould": outcome.differences.is_empty(),
            "differences": outcome.differences,
            "report": outcome.report,
        }))?;
    }
    if outcome.differences.is_empty() {
        return Ok(Exit::Fine);
    }
    let mut text = format!("the night did not end as scenario `{}` must:", story.name);
    for difference in &outcome.differences {
        let _ = write!(text, "\n  {difference}");
    }
    anyhow::bail!(text)
}

/// Without its seconds.
fn whole_minute(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second().div_euclid(60) * 60).unwrap_or(at)
}

/// The last 02:00 UTC that has passed.
fn last_two_o_clock(now: Timestamp) -> Timestamp {
    let day = 86_400;
    let second = (now.as_second() - 7_200).div_euclid(day) * day + 7_200;
    Timestamp::from_second(second).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_night_begins_at_two() {
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        let rows = [
            ("2026-11-30T14:37:12.5Z", "2026-11-30T02:00:00Z"),
            ("2026-11-30T02:00:00Z", "2026-11-30T02:00:00Z"),
            ("2026-11-30T01:59:59Z", "2026-11-29T02:00:00Z"),
        ];
        for (now, wanted) in rows {
            assert_eq!(last_two_o_clock(at(now)), at(wanted), "{now}");
        }
    }

    #[test]
    fn only_a_speed_that_makes_sense_is_taken() {
        for (text, fine) in [
            ("45", true),
            ("0.5", true),
            ("100000", true),
            ("0", false),
            ("-1", false),
            ("NaN", false),
            ("fast", false),
        ] {
            assert_eq!(speed(text).is_ok(), fine, "{text}");
        }
        assert!(speed(SPEED).is_ok());
    }

    #[test]
    fn the_help_lists_every_night() {
        let text = stories();
        assert!(STORIES.iter().all(|story| text.contains(story.name) && text.contains(story.about)), "{text}");
    }
}
