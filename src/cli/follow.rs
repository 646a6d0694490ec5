//! Watching a run to its end: what is told on the way, and how the watching can end.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Duration;

use maint_core::api::record::{Maintenance, Word};
use maint_core::api::{Outcome, Phase};
use maint_core::jiff::Timestamp;
use maint_core::plan::phase_of;
use maint_core::report::{Follow, RunDocument, verdict};
use maint_engine::drive::Records as _;
use maint_engine::execute::WriteError;
use maint_engine::request::Field;
use maint_engine::runtime::Instant;

use super::cluster::{Session, is_before_commit, name_of};
use super::interrupt::Interrupts;
use super::{Common, Exit, Output, terminal};

/// Between two looks at the record.
const LOOK: Duration = Duration::from_secs(1);
/// A leader that has not written a status by then is not there.
const LEADER_LIMIT: Duration = Duration::from_secs(30);
/// Columns of the live line; a longer one would leave pieces of itself behind.
const LIVE_COLUMNS: usize = 79;

/// How the watching of a run ended.
#[derive(Debug)]
pub enum Ended {
    /// The run is over, or held.
    Over(Box<Maintenance>),
    /// The record is gone.
    Gone,
    /// No leader took the record or the word.
    NoLeader,
    /// Somebody pressed Ctrl-C; the record as it was last seen.
    Interrupted(Option<Box<Maintenance>>),
}

/// What one look at the record showed.
pub enum Look {
    /// The record.
    Record(Box<Maintenance>),
    /// It is gone.
    Gone,
    /// It could not be read; the next look may.
    Unread,
}

/// Watches one record.
pub struct Watcher<'a> {
    pub session: &'a Session,
    name: String,
    follow: Follow,
    screen: Screen,
    interrupts: Interrupts,
    begun: Instant,
    /// The state from which a person's word was to lead away; none where it is watched from its birth.
    away_from: Option<String>,
    last: Option<Box<Maintenance>>,
    unread: Option<String>,
}

impl<'a> Watcher<'a> {
    /// Watches a new record.
    pub fn of_new(session: &'a Session, record: &Maintenance, interrupts: Interrupts) -> Self {
        let created = record.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let follow = Follow::from_start(created.unwrap_or_else(|| session.now()));
        Self::of(session, record, follow, interrupts, None)
    }

    /// Watches a held record on from a word that was just said.
    pub fn of_resumed(session: &'a Session, record: &Maintenance, interrupts: Interrupts) -> Self {
        let follow = Follow::from_here(record, session.now());
        Self::of(session, record, follow, interrupts, Some(mark(record)))
    }

    fn of(
        session: &'a Session,
        record: &Maintenance,
        follow: Follow,
        interrupts: Interrupts,
        away_from: Option<String>,
    ) -> Self {
        Self {
            session,
            name: name_of(record),
            follow,
            screen: Screen { terminal: std::io::stderr().is_terminal(), shown: false },
            interrupts,
            begun: session.clock.instant(),
            away_from,
            last: None,
            unread: None,
        }
    }

    /// Reads the record and tells what is new.
    ///
    /// # Errors
    /// If stderr is gone.
    pub async fn look(&mut self) -> std::io::Result<Look> {
        let record = match self.session.records.get(&self.name).await {
            Ok(Some(record)) => Box::new(record),
            Ok(None) => return Ok(Look::Gone),
            Err(error) => {
                let text = error.to_string();
                if self.unread.as_ref() != Some(&text) {
                    self.screen.line(&format!("the record cannot be read, and is tried again: {text}"))?;
                    self.unread = Some(text);
                }
                return Ok(Look::Unread);
            }
        };
        if self.unread.take().is_some() {
            self.screen.line("the record can be read again")?;
        }
        let now = self.session.now();
        for line in self.follow.news(&record, now) {
            self.screen.line(&line)?;
        }
        self.screen.live(&self.follow.live(&record, now))?;
        self.last = Some(record.clone());
        Ok(Look::Record(record))
    }

    /// Waits for the next look; false if somebody interrupted.
    pub async fn tick(&mut self) -> bool {
        tokio::select! {
            biased;
            () = self.interrupts.next() => false,
            () = self.session.clock.sleep(LOOK) => true,
        }
    }

    /// Waits for something else than the record, such as a command; interrupts are told and change nothing.
    pub async fn wait_for<T>(&mut self, what: impl Future<Output = T>, heard: &str) -> T {
        let mut what = std::pin::pin!(what);
        loop {
            tokio::select! {
                biased;
                done = &mut what => return done,
                () = self.interrupts.next() => {
                    let _ = self.screen.line(heard);
                }
            }
        }
    }

    /// Tells a line.
    ///
    /// # Errors
    /// If stderr is gone.
    pub fn tell(&mut self, line: &str) -> std::io::Result<()> {
        self.screen.line(line)
    }

    /// The record as last seen.
    pub fn interrupted(&mut self) -> Ended {
        Ended::Interrupted(self.last.take())
    }

    /// Whether the leader has had its time and did nothing.
    pub fn leader_is_missing(&self, record: &Maintenance) -> bool {
        let waited = self.session.clock.instant().duration_since(self.begun);
        waited >= LEADER_LIMIT && self.is_untouched(record)
    }

    fn is_untouched(&self, record: &Maintenance) -> bool {
        match &self.away_from {
            None => record.status.is_none(),
            Some(before) => mark(record) == *before,
        }
    }

    /// Watches to the end. `done` is said in the record as soon as the API takes it.
    ///
    /// # Errors
    /// If stderr is gone.
    pub async fn watch(&mut self, mut done: Option<Word>) -> std::io::Result<Ended> {
        loop {
            if let Some(word) = &done
                && self.say_done(word).await?
            {
                done = None;
            }
            match self.look().await? {
                Look::Gone => return self.end(Ended::Gone),
                Look::Unread => {}
                Look::Record(record) => {
                    let phase = phase_of(&record);
                    let held_anew = phase == Phase::Held && !(self.away_from.is_some() && self.is_untouched(&record));
                    if phase.is_terminal() || held_anew {
                        return self.end(Ended::Over(record));
                    }
                    if self.leader_is_missing(&record) {
                        return self.end(Ended::NoLeader);
                    }
                }
            }
            if !self.tick().await {
                let ended = self.interrupted();
                return self.end(ended);
            }
        }
    }

    fn end(&mut self, ended: Ended) -> std::io::Result<Ended> {
        self.screen.clear()?;
        Ok(ended)
    }

    /// Says that the external action is over; whether there is nothing more to say.
    async fn say_done(&mut self, word: &Word) -> std::io::Result<bool> {
        match self.session.requests.say(&self.name, Field::ActionDone, word, None).await {
            Ok(()) => Ok(true),
            // The API server may be just what reboots: it is said again until it is heard.
            Err(
                WriteError::Transport(_)
                | WriteError::TimedOut { .. }
                | WriteError::NotRead(_)
                | WriteError::Server(_)
                | WriteError::Refused(_),
            ) => Ok(false),
            Err(error) => {
                let name = self.name.clone();
                self.screen
                    .line(&format!("could not say that the command is over: {error}; say it: maint done {name}"))?;
                Ok(true)
            }
        }
    }
}

/// What changes when a leader moves a record.
fn mark(record: &Maintenance) -> String {
    let Some(status) = &record.status else { return String::new() };
    let last = status.timeline.last().map(|entry| format!("{} {}", entry.at, entry.message)).unwrap_or_default();
    format!("{} {:?} {last}", status.phase, status.step_started_at)
}

/// Lines on stderr, and a live one below them on a terminal.
struct Screen {
    terminal: bool,
    shown: bool,
}

impl Screen {
    fn line(&mut self, text: &str) -> std::io::Result<()> {
        self.clear()?;
        terminal::talk(&format!("{text}\n"))
    }

    fn live(&mut self, text: &str) -> std::io::Result<()> {
        if !self.terminal {
            return Ok(());
        }
        self.clear()?;
        self.shown = true;
        terminal::talk(&text.chars().take(LIVE_COLUMNS).collect::<String>())
    }

    fn clear(&mut self) -> std::io::Result<()> {
        if std::mem::take(&mut self.shown) { terminal::talk("\r\u{1b}[K") } else { Ok(()) }
    }
}

/// Tells how it ended, cancels what no leader took, and gives the exit code.
///
/// # Errors
/// If stdout or stderr is gone.
pub async fn conclude(session: &Session, common: &Common, name: &str, by: &str, ended: Ended) -> anyhow::Result<Exit> {
    match ended {
        Ended::Over(record) => over(session, common, &record),
        Ended::Gone => {
            terminal::talk(&format!("the record {name} is gone: somebody deleted it\n  what helps: maint status\n"))?;
            Ok(Exit::PersonNeeded)
        }
        Ended::NoLeader => {
            let text = give_up(session, name, by).await;
            terminal::talk(&text)?;
            Ok(Exit::WaitedTooLong)
        }
        Ended::Interrupted(record) => {
            terminal::talk(&interrupted(name, record.as_deref()))?;
            Ok(Exit::Interrupted)
        }
    }
}

/// Prints a record's end.
fn over(session: &Session, common: &Common, record: &Maintenance) -> anyhow::Result<Exit> {
    let now: Timestamp = session.now();
    match common.output {
        Output::Text => terminal::data(&format!("{}\n", verdict(record, common.paint(), now)))?,
        Output::Json => terminal::json(&RunDocument::new(record, now))?,
    }
    let name = name_of(record);
    match phase_of(record) {
        Phase::Succeeded => return Ok(Exit::Fine),
        Phase::Held => terminal::talk(&held(record, &name))?,
        _ => terminal::talk(&format!("the whole story: maint show {name}\n"))?,
    }
    Ok(Exit::PersonNeeded)
}

fn held(record: &Maintenance, name: &str) -> String {
    let on_hold = record.status.as_ref().is_some_and(|status| status.outcome == Outcome::NodeOnHold.as_str());
    if on_hold {
        return format!("look: maint show {name}; go on: maint release {}\n", record.spec.node_name);
    }
    format!(
        "look: maint show {name}; go on: maint resume {name}; uncordon it unproven and end it: maint cancel {name} --accept\n"
    )
}

/// A record that no leader took would start whenever one comes: it is cancelled, and this is said.
async fn give_up(session: &Session, name: &str, by: &str) -> String {
    let seconds = LEADER_LIMIT.as_secs();
    let record = match session.records.get(name).await {
        Ok(Some(record)) => record,
        Ok(None) => return format!("no leader took {name} within {seconds} s, and it is gone\n"),
        Err(error) => {
            return format!(
                "no leader took {name} within {seconds} s, and it could not be cancelled: {error}\n  what helps: maint \
                 cancel {name}, else it starts when a leader comes\n"
            );
        }
    };
    if record.status.is_some() {
        return format!(
            "no leader heard it within {seconds} s; the word stays in {name}\n  what helps: maint status\n"
        );
    }
    match session.requests.say(name, Field::Cancel, &session.word(by, &record), None).await {
        Ok(()) => format!(
            "no leader took {name} within {seconds} s; it is cancelled now, so that no leader starts it later\n  what \
             helps: maint status shows who leads; is `maint serve` deployed?\n"
        ),
        Err(error) => format!(
            "no leader took {name} within {seconds} s, and it could not be cancelled: {error}\n  what helps: maint cancel \
             {name}, else it starts when a leader comes\n"
        ),
    }
}

fn interrupted(name: &str, record: Option<&Maintenance>) -> String {
    let phase = record.map_or(Phase::Pending, phase_of);
    let mut text = format!("\ninterrupted: only the watching ends, the run goes on\n  look: maint show {name}\n");
    if is_before_commit(phase) {
        let _ = writeln!(text, "  call it off: maint cancel {name}");
    } else {
        text.push_str("  it cannot be called off any more: it is committed, and is proven all the same\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use maint_core::api::record::{MaintenanceSpec, MaintenanceStatus};

    #[test]
    fn an_interrupt_says_what_goes_on_and_what_can_be_done() {
        let rows = [
            ("Pending", "call it off: maint cancel n\n"),
            ("Draining", "call it off: maint cancel n\n"),
            ("Acting", "call it off: maint cancel n\n"),
            ("Returning", "it cannot be called off any more"),
            ("Settling", "it cannot be called off any more"),
        ];
        for (phase, wanted) in rows {
            let mut record = Maintenance::new("n", MaintenanceSpec::default());
            record.status = Some(MaintenanceStatus { phase: phase.into(), ..MaintenanceStatus::default() });
            let text = interrupted("n", Some(&record));
            assert!(
                text.contains("the run goes on\n  look: maint show n\n") && text.contains(wanted),
                "{phase}: {text}"
            );
        }
        assert!(interrupted("n", None).contains("maint cancel n"), "not seen yet");
    }
}
