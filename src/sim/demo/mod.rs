//! A night for people: the same cluster, replicas and kureds as in every night, told while it happens.
//!
//! The service runs on the real client over the API server in memory, not over a socket: so the night is the same one
//! at every speed and on every machine. Sockets are there for people ([`door`]), who may look at the same cluster.

mod narrator;
pub mod pace;
pub mod stories;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::io;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use maint_core::api::record::MaintenanceReport;
use maint_core::config::{Settings, Window};

pub use narrator::{Line, Voice};
pub use stories::{STORIES, Story};

use crate::clock::sleep;
use crate::night::kured::{KuredNight, NODES, Scene, Setup};
use crate::night::{Plan, Shell};
use crate::trace::Step;
use narrator::{Narrator, STORY};
use pace::{Pace, Pacer};

/// From the beginning of a night to its window.
const BEFORE_THE_WINDOW: SignedDuration = SignedDuration::from_mins(4);
/// A night that is not over so long after its window has failed.
const AFTER_THE_WINDOW: SignedDuration = SignedDuration::from_mins(10);
/// How often the narrator looks.
const LOOK: Duration = Duration::from_millis(500);
/// The seed of every story.
const SEED: u64 = 1;

/// Who is told.
pub trait Audience {
    /// Something happened.
    ///
    /// # Errors
    /// If nobody hears it; the night ends with it.
    fn line(&mut self, line: &Line) -> io::Result<()>;

    /// Where the night is now; each one takes the place of the last.
    ///
    /// # Errors
    /// As [`Self::line`].
    fn live(&mut self, at: Timestamp, text: &str) -> io::Result<()>;
}

/// How a night came out.
#[derive(Debug)]
pub struct Outcome {
    /// What is not as the story must end; empty if it is.
    pub differences: Vec<String>,
    /// The report of the window.
    pub report: Option<MaintenanceReport>,
    /// When it was over.
    pub at: Timestamp,
    /// The night itself.
    pub night: KuredNight,
}

/// The runtime of a night: one thread, and time that stands still until everybody waits.
///
/// # Errors
/// If the operating system refuses what it needs.
pub fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()
}

/// A night that is told.
pub struct Demo<'a> {
    story: &'a Story,
    scene: Scene,
    begin: Timestamp,
    pacer: Pacer,
}

impl<'a> Demo<'a> {
    /// A night that begins at this time, whole minutes. Needs the runtime of [`runtime`].
    #[must_use]
    pub fn new(story: &'a Story, begin: Timestamp, pace: Pace) -> Self {
        let mut setup: Setup<'_> = story.scenario.setup();
        setup.begin = begin;
        setup.settings.windows = story.windows(begin);
        let scene = Scene::new(Shell::Api, setup, &plan());
        let pacer = Pacer::new(scene.stage.cluster.clock(), pace);
        Self { story, scene, begin, pacer }
    }

    /// The settings of the service.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.scene.stage.settings
    }

    /// Plays the story to its end.
    ///
    /// # Errors
    /// As the audience's.
    pub async fn play(&self, audience: &mut impl Audience) -> io::Result<Outcome> {
        let opening = self.scene.open(&plan());
        let teller = RefCell::new(Teller { audience, narrator: Narrator::default(), cursor: 0, told: Vec::new() });
        let script = async {
            let limit = self.begin + BEFORE_THE_WINDOW + self.story.length() + AFTER_THE_WINDOW;
            let left = limit.duration_since(self.scene.stage.cluster.clock().now());
            let at_rest = tokio::select! {
                biased;
                () = self.story.scenario.play(&self.scene) => true,
                () = sleep(left.unsigned_abs()) => false,
            };
            teller.borrow_mut().look(&self.scene).map(|()| at_rest)
        };
        let mut ended = Ok(false);
        let lived = self.scene.live(async { ended = script.await });
        tokio::select! {
            biased;
            () = self.pacer.run() => {}
            result = tell(&teller, &self.scene) => result?,
            () = lived => {}
        }
        let at_rest = ended?;
        let night = self.scene.conclude(opening, at_rest);
        let mut differences = self.story.scenario.differences(&night);
        differences.extend(self.story.untold(&teller.into_inner().told));
        let report = night.reports.first().cloned();
        Ok(Outcome { differences, report, at: self.scene.stage.cluster.clock().now(), night })
    }
}

fn plan() -> Plan {
    Plan { seed: SEED, ..Plan::default() }
}

struct Teller<'a, A> {
    audience: &'a mut A,
    narrator: Narrator,
    /// Steps of the trace that were read.
    cursor: usize,
    told: Vec<Line>,
}

impl<A: Audience> Teller<'_, A> {
    fn look(&mut self, scene: &Scene) -> io::Result<()> {
        let now = scene.stage.cluster.clock().now();
        let mut lines = Vec::new();
        {
            let inner = scene.stage.cluster.lock();
            let steps = inner.trace.steps();
            for step in steps.get(self.cursor..).unwrap_or_default() {
                lines.extend(self.narrator.step(step));
            }
            self.cursor = steps.len();
        }
        for node in NODES {
            lines.extend(self.narrator.log(node, &scene.kureds.log(node), now));
        }
        // Those of one look come from several sources; equal times keep their order.
        lines.sort_by_key(|line| line.at);
        for line in lines {
            self.audience.line(&line)?;
            self.told.push(line);
        }
        self.audience.live(now, &self.narrator.live())
    }
}

/// Looks and tells, for ever.
async fn tell<A: Audience>(teller: &RefCell<Teller<'_, A>>, scene: &Scene) -> io::Result<()> {
    loop {
        teller.borrow_mut().look(scene)?;
        sleep(LOOK).await;
    }
}

impl Scene {
    /// The narrator says something.
    fn says(&self, text: &str) {
        let mut step = Step::act(STORY, self.stage.cluster.clock().now());
        text.clone_into(&mut step.path);
        self.stage.cluster.lock().trace.push(step);
    }
}

/// A window of one day of the week, in UTC: of every day, yesterday's would have to be reported first.
fn windows(from: Timestamp, length: SignedDuration) -> Vec<Window> {
    let utc = |at: Timestamp| at.to_zoned(TimeZone::UTC);
    let (start, end) = (utc(from).strftime("%H:%M"), utc(from + length).strftime("%H:%M"));
    let day = utc(from).strftime("%a").to_string().to_lowercase();
    // A window must be longer than a run is expected to take.
    let text = format!(
        "expected_duration_seconds = 300\nwindows = [{{ name = \"night\", days = [\"{day}\"], start = \"{start}\", end = \"{end}\", zone = \"UTC\" }}]"
    );
    // A window that cannot be read is none, and the story does not end as it must.
    Settings::parse(&text, "demo").map(|settings| settings.windows).unwrap_or_default()
}
