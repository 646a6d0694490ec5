//! `maint run NODE --scope S -- COMMAND`: has the leader make the node free, runs the command at most once, and has
//! the node proven.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;

use clap::Args;
use maint_core::api::Action;
use maint_core::api::record::{Maintenance, MaintenanceSpec, Word};
use maint_core::config::{Scope, Settings};
use maint_engine::drive::Records as _;
use maint_engine::execute::WriteError;
use maint_engine::request::Field;

use super::ask::Ask;
use super::claim::{Claim, judge};
use super::cluster::{Session, name_of};
use super::follow::{Ended, Look, Watcher, conclude};
use super::interrupt::Interrupts;
use super::{Common, Exit, Failure, Output, terminal};

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct Run {
    #[command(flatten)]
    ask: Ask,
    /// Why: service-restart, reboot, power-off, or one of the configuration
    #[arg(long, value_name = "NAME")]
    scope: String,
    /// The command, run here once the node is free; without one: maint reboot --action external, then maint done
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// How the claiming ended.
enum Claimed {
    /// The command is ours to run, once.
    Ours,
    /// It must not run. The exit code where another one has it; else the run's own end decides.
    Never { why: String, exit: Option<Exit> },
    /// The watching ended first.
    Ended(Ended),
}

impl Run {
    /// Runs it.
    ///
    /// # Errors
    /// See [`Ask`]; and if the command cannot be found on this machine.
    pub async fn run(&self, common: &Common) -> anyhow::Result<Exit> {
        let (wish, scope) = self.wish(&common.settings()?)?;
        let session = Session::open(common).await?;
        self.on(&session, common, wish, &scope, Interrupts::listen).await
    }

    /// What is asked for, and its scope.
    pub(super) fn wish(&self, settings: &Settings) -> Result<(MaintenanceSpec, Scope), Failure> {
        let scope = Scope::find(settings, &self.scope).map_err(|unknown| Failure::usage(unknown.to_string()))?;
        let wish = self.ask.wish(settings, &scope, Some(Action::External), true)?;
        self.find_command()?;
        Ok((wish, scope))
    }

    /// Runs it on a connected cluster.
    pub(super) async fn on(
        &self,
        session: &Session,
        common: &Common,
        wish: MaintenanceSpec,
        scope: &Scope,
        interrupts: impl FnOnce() -> std::io::Result<Interrupts>,
    ) -> anyhow::Result<Exit> {
        let (node, pending) = self.ask.look(session).await?;
        self.ask.agree(&wish, scope, &pending)?;
        // Not before: at the question Ctrl-C ends everything.
        let interrupts = interrupts()?;
        // Two programs of one person must not take each other's claim for their own.
        let by = format!("{} (maint run {})", wish.requested_by, session.rng.suffix(8));
        let record = self.ask.create(session, &wish, &node, &pending).await?;
        let name = name_of(&record);
        terminal::talk(&format!("{name} is asked for; the command runs once the node is free\n"))?;
        let mut watcher = Watcher::of_new(session, &record, interrupts);
        let done = match claim(&mut watcher, &name, &by).await? {
            Claimed::Ours => self.execute(&mut watcher, common, &by).await?,
            Claimed::Never { why, exit } => {
                watcher.tell(&format!("the command was NOT run: {why}"))?;
                if exit == Some(Exit::Error) {
                    // The leader would wait for a claim that never comes.
                    call_off(&mut watcher, &name, &by).await?;
                }
                if let Some(exit) = exit {
                    return Ok(exit);
                }
                let ended = watcher.watch(None).await?;
                // Whatever became of the node, what was asked for was not done.
                return Ok(match conclude(session, common, &name, &by, ended).await? {
                    Exit::Fine => Exit::PersonNeeded,
                    exit => exit,
                });
            }
            Claimed::Ended(ended) => {
                watcher.tell("the command was NOT run")?;
                // Nobody is left to claim it: the node would be drained for nothing.
                if matches!(ended, Ended::Interrupted(_)) && call_off(&mut watcher, &name, &by).await? {
                    return Ok(Exit::Interrupted);
                }
                return conclude(session, common, &name, &by, ended).await;
            }
        };
        let ended = watcher.watch(Some(done)).await?;
        conclude(session, common, &name, &by, ended).await
    }

    /// Runs the command and gives the word that says how it ended.
    async fn execute(&self, watcher: &mut Watcher<'_>, common: &Common, by: &str) -> std::io::Result<Word> {
        let line = self.command.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join(" ");
        watcher.tell(&format!("claimed; running: {line}"))?;
        let (code, text) = match self.start(common) {
            Ok(mut child) => {
                let heard = "interrupted: the command heard it too; its end is awaited, since it must be written down";
                match watcher.wait_for(child.wait(), heard).await {
                    Ok(status) => (status.code(), format!("the command ended: {status}")),
                    Err(error) => (None, format!("the command cannot be waited for: {error}")),
                }
            }
            Err(error) => (None, format!("the command could not be started: {error}")),
        };
        watcher.tell(&text)?;
        let at = maint_core::plan::stamp(watcher.session.now());
        Ok(Word { by: by.to_owned(), at, failed: code != Some(0), ..Word::default() })
    }

    fn start(&self, common: &Common) -> std::io::Result<tokio::process::Child> {
        let mut parts = self.command.iter();
        let program = parts.next().ok_or(std::io::ErrorKind::InvalidInput)?;
        let mut command = tokio::process::Command::new(program);
        command.args(parts);
        if common.output == Output::Json {
            // stdout is one document.
            command.stdout(Stdio::from(std::io::stderr()));
        }
        command.spawn()
    }

    /// A command that cannot be found is told before the node is drained for it.
    fn find_command(&self) -> Result<(), Failure> {
        let Some(program) = self.command.first() else { return Err(Failure::usage("no command")) };
        let found = if Path::new(program).components().count() > 1 {
            Path::new(program).is_file()
        } else {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
        };
        if found {
            return Ok(());
        }
        Err(Failure::usage(format!("there is no command `{}` on this machine", program.to_string_lossy())))
    }
}

/// Waits until the record says go, then claims the command by compare-and-swap.
async fn claim(watcher: &mut Watcher<'_>, name: &str, by: &str) -> std::io::Result<Claimed> {
    loop {
        match watcher.look().await? {
            Look::Gone => return Ok(Claimed::Ended(Ended::Gone)),
            Look::Unread => {}
            Look::Record(record) => {
                if watcher.leader_is_missing(&record) {
                    return Ok(Claimed::Ended(Ended::NoLeader));
                }
                if let Some(claimed) = try_claim(watcher, &record, name, by).await? {
                    return Ok(claimed);
                }
            }
        }
        if !watcher.tick().await {
            return Ok(Claimed::Ended(watcher.interrupted()));
        }
    }
}

/// One try; none means that it is judged anew at the next look.
async fn try_claim(
    watcher: &mut Watcher<'_>,
    record: &Maintenance,
    name: &str,
    by: &str,
) -> std::io::Result<Option<Claimed>> {
    let session = watcher.session;
    let boot_id = if judge(record, by, None, session.clock.now()) == Claim::NeedsBootId {
        // Read after the record: the compare-and-swap below then covers both.
        match session.node(&record.spec.node_name).await {
            Ok(node) => Some(node.boot_id),
            Err(error) => {
                watcher.tell(&format!("the node cannot be read, so the command waits: {error}"))?;
                return Ok(None);
            }
        }
    } else {
        None
    };
    match judge(record, by, boot_id.as_deref(), session.clock.now()) {
        Claim::Wait | Claim::NeedsBootId => Ok(None),
        Claim::Ours => Ok(Some(Claimed::Ours)),
        Claim::Never { why, taken } => Ok(Some(Claimed::Never { why, exit: taken.then_some(Exit::Conflict) })),
        Claim::Now => {
            let word = session.word(by, record);
            let version = record.metadata.resource_version.as_deref();
            match session.requests.say(name, Field::Claimed, &word, version).await {
                Ok(()) => Ok(Some(Claimed::Ours)),
                Err(WriteError::Conflict(_)) => {
                    watcher.tell("the record changed before it could be claimed; it is judged anew")?;
                    Ok(None)
                }
                // It may have been written: the record tells at the next look, by the name that is ours alone.
                Err(
                    WriteError::Transport(_)
                    | WriteError::TimedOut { .. }
                    | WriteError::NotRead(_)
                    | WriteError::Server(_),
                ) => Ok(None),
                Err(error) => {
                    let why = format!("it could not be claimed: {error}");
                    Ok(Some(Claimed::Never { why, exit: Some(Exit::Error) }))
                }
            }
        }
    }
}

/// Before the claim an interrupted `run` leaves nobody behind who could act. Whether it was called off.
async fn call_off(watcher: &mut Watcher<'_>, name: &str, by: &str) -> anyhow::Result<bool> {
    let session = watcher.session;
    let said = match session.records.get(name).await {
        Ok(Some(record)) => session.requests.say(name, Field::Cancel, &session.word(by, &record), None).await,
        Ok(None) => return Ok(false),
        Err(error) => Err(error),
    };
    match said {
        Ok(()) => {
            let text = "is cancelled, since nobody would run its command; everything is put back";
            watcher.tell(&format!("{name} {text}\n  look: maint show {name}"))?;
            Ok(true)
        }
        Err(error) => {
            watcher.tell(&format!("{name} could not be cancelled: {error}"))?;
            Ok(false)
        }
    }
}
