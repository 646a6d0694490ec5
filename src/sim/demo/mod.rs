//! A night for people: the same cluster, replicas and kureds as in every night, told while it happens.
//!
//! The service runs on the real client over the API server in memory, not over a socket: so the night is the same one
//! at every speed and on every machine. Sockets are there for people ([`door`]), who may look at the same cluster.

pub mod door;
mod narrator;
pub mod pace;
pub mod stories;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use maint_core::api::record::MaintenanceReport;
use maint_core::config::{PodAction, Settings, Window};

pub use narrator::{Line, Voice};
pub use stories::{STORIES, Story};

use crate::clock::sleep;
use crate::night::kured::{KuredNight, NODES, Scene, Setup};
use crate::night::{Plan, Shell};
use crate::store::ObjectKey;
use crate::store::http::Inner;
use crate::trace::Step;
use door::Door;
use narrator::{Narrator, STORY};
use pace::{Pace, Pacer};

/// From the beginning of a night to its window.
const BEFORE_THE_WINDOW: SignedDuration = SignedDuration::from_mins(4);
/// A night that is not over so long after it should be has failed.
const AFTER_THE_STORY: SignedDuration = SignedDuration::from_mins(10);
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

    /// The story is over. Who stays goes on in the same cluster, whose clock is the machine's by then, until this ends.
    ///
    /// # Errors
    /// As [`Self::line`].
    fn over(&mut self, outcome: &Outcome) -> impl Future<Output = io::Result<()>>;
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
    door: Option<&'a Door>,
}

impl<'a> Demo<'a> {
    /// A night that begins at this time, whole minutes. Needs the runtime of [`runtime`]. With a door people can come
    /// in, and when the story is over the cluster's clock catches up with the machine's.
    #[must_use]
    pub fn new(story: &'a Story, begin: Timestamp, pace: Pace, door: Option<&'a Door>) -> Self {
        let mut setup: Setup<'_> = story.scenario.setup();
        setup.begin = begin;
        setup.settings.windows = story.windows(begin);
        // For people who ask for a reboot themselves: kured's double has no sentinel that a pod could make.
        setup.settings.action.pod =
            PodAction { enabled: true, image: "demo@sha256:00".to_owned(), ..PodAction::default() };
        if let Some(door) = door {
            setup.settings.control_plane.api_server_port = door.port();
            let prepare = setup.prepare;
            setup.prepare = Box::new(move |inner, now| {
                move_in(inner, &door.addresses());
                prepare(inner, now);
            });
        }
        let scene = Scene::new(Shell::Api, setup, &plan());
        let pacer = Pacer::new(scene.stage.cluster.clock(), pace);
        Self { story, scene, begin, pacer, door }
    }

    /// The settings of the service.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.scene.stage.settings
    }

    /// Plays the story to its end, and goes on as long as the audience stays.
    ///
    /// # Errors
    /// As the audience's, and the door's if it breaks.
    pub async fn play(&self, audience: &mut impl Audience) -> io::Result<Outcome> {
        let mut ended = Err(io::Error::other("the cluster ended before its night"));
        let script = async { ended = self.tell(audience).await };
        let door = async {
            match self.door {
                Some(door) => door.open(&self.scene.stage.cluster).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.pacer.run() => {}
            result = door => result?,
            () = self.scene.live(script) => {}
        }
        ended
    }

    async fn tell(&self, audience: &mut impl Audience) -> io::Result<Outcome> {
        let opening = self.scene.open(&plan());
        let teller = RefCell::new(Teller { audience, narrator: Narrator::default(), cursor: 0, told: Vec::new() });
        let limit = self.begin + self.story.lasts() + AFTER_THE_STORY;
        let left = limit.duration_since(self.now());
        let at_rest = tokio::select! {
            biased;
            result = listen(&teller, &self.scene) => return Err(result),
            () = self.story.scenario.play(&self.scene) => true,
            () = sleep(left.unsigned_abs()) => false,
        };
        let mut teller = teller.into_inner();
        teller.look(&self.scene)?;
        let night = self.scene.conclude(opening, at_rest);
        let mut differences = self.story.scenario.differences(&night);
        differences.extend(self.story.untold(&teller.told));
        let report = night.reports.first().cloned();
        let outcome = Outcome { differences, report, at: self.now(), night };
        if self.door.is_some() {
            // Nobody reads the trace any more.
            self.scene.stage.cluster.lock().trace.keep(false);
            self.pacer.set(Pace::Machine);
            while self.pacer.is_behind() {
                sleep(LOOK).await;
            }
        }
        teller.audience.over(&outcome).await?;
        Ok(outcome)
    }

    fn now(&self) -> Timestamp {
        self.scene.stage.cluster.clock().now()
    }
}

/// The nodes get other addresses, and their API servers with them.
fn move_in(inner: &mut Inner, addresses: &[IpAddr]) {
    for ((server, node), address) in inner.servers.iter_mut().zip(NODES).zip(addresses) {
        server.address = address.to_string();
        inner.store.edit(&ObjectKey::node(node), |node| {
            if let Some(internal) = node.pointer_mut("/status/addresses/0/address") {
                *internal = address.to_string().into();
            }
        });
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

/// Looks and tells, until nobody hears it.
async fn listen<A: Audience>(teller: &RefCell<Teller<'_, A>>, scene: &Scene) -> io::Error {
    loop {
        if let Err(error) = teller.borrow_mut().look(scene) {
            return error;
        }
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
