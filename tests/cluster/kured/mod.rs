//! kured's double as a process of its own, for a real API server: a hidden mode of this program, one process per node.
//!
//! What it does is decided by the reducer of the simulated cluster (`maint_sim::doubles::kured`); here are its
//! connections, clock, sentinel and reboot command, and the flags and environment of the real one. It logs to stderr
//! and may be killed at any time.

mod api;
mod flags;
mod metrics;
mod question;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use maint_sim::doubles::kured::answer::Answer;
use maint_sim::doubles::kured::log::{self, Level};
use maint_sim::doubles::kured::{Effect, Event, Fractions, Kured};
use maint_sim::random::Random;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use api::Api;
use flags::Flags;
use question::Asker;

/// The first word of a command line that asks for this mode.
pub const WORD: &str = "kured-double";

/// Runs as kured if the command line says so.
pub fn hidden_mode() -> Option<ExitCode> {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() != Some(WORD) {
        return None;
    }
    let flags = match Flags::parse(words.collect()) {
        Ok(flags) => flags,
        Err(error) => {
            eprintln!("Error: {error:#}");
            return Some(ExitCode::FAILURE);
        }
    };
    let run = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let end = run.context("no runtime").and_then(|runtime| runtime.block_on(run_as_kured(flags)));
    Some(end.unwrap_or_else(|error| {
        say(Level::Fatal, &format!("{error:#}"));
        ExitCode::FAILURE
    }))
}

fn say(level: Level, text: &str) {
    eprintln!("{}", log::line(Timestamp::now(), level, text));
}

/// What the effects are performed with.
struct Outside {
    flags: Flags,
    api: Api,
    asker: Mutex<Asker>,
}

async fn run_as_kured(flags: Flags) -> Result<ExitCode> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let listener = metrics::listen(&flags.metrics_host, flags.metrics_port).await?;
    tokio::spawn(metrics::serve(listener, flags.clone()));
    let api = Api::in_cluster(&flags.credentials).await?;
    let asker = Mutex::new(Asker::new(flags.settings.prometheus_url.as_deref().unwrap_or_default()));
    let outside = Arc::new(Outside { flags, api, asker });
    let mut random = Random::new(seed());
    let fractions = Fractions::millionths(random.next(), random.next());
    let mut kured = Kured::new(outside.flags.settings.clone(), &outside.flags.node_id, fractions);
    let mut events = JoinSet::new();
    let mut effects = kured.step(Timestamp::now(), Event::Start);
    loop {
        for effect in effects {
            match effect {
                Effect::Log(level, text) => say(level, &text),
                Effect::Exit(code) => return Ok(ExitCode::from(u8::try_from(code).unwrap_or(1))),
                effect => drop(events.spawn(perform(Arc::clone(&outside), effect))),
            }
        }
        // Without anything under way it waits for ever, as the real one does.
        let event = match events.join_next().await {
            Some(event) => event?,
            None => std::future::pending().await,
        };
        effects = kured.step(Timestamp::now(), event);
    }
}

/// No two processes have the same first ticks.
fn seed() -> u64 {
    let nanoseconds = Timestamp::now().as_nanosecond().unsigned_abs();
    u64::try_from(nanoseconds & u128::from(u64::MAX)).unwrap_or_default() ^ (u64::from(std::process::id()) << 40)
}

async fn until(at: Timestamp) {
    let ahead = Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default();
    tokio::time::sleep(ahead).await;
}

async fn perform(outside: Arc<Outside>, effect: Effect) -> Event {
    match effect {
        Effect::Api { id, not_before, call } => {
            until(not_before).await;
            Event::Api(id, outside.api.send(&call).await)
        }
        Effect::Ask(id) => match outside.asker.lock().await.ask().await {
            Answer::Hang => std::future::pending().await,
            answer => Event::Asked(id, answer),
        },
        Effect::Sentinel(id) => Event::Sentinel(id, outside.flags.is_required().await),
        Effect::Sleep(id, at) => {
            until(at).await;
            Event::Woken(id)
        }
        Effect::Reboot(id) => Event::Rebooted(id, outside.flags.reboot().await),
        Effect::Log(..) | Effect::Exit(_) => std::future::pending().await,
    }
}
