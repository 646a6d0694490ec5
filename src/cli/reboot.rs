//! `maint reboot NODE`: asks for a reboot and watches it to its proof. The leader does the work.

use clap::Args;
use maint_core::api::Action;
use maint_core::api::record::MaintenanceSpec;
use maint_core::config::{Scope, Settings};
use maint_core::report::RunDocument;

use super::ask::Ask;
use super::cluster::{Session, name_of};
use super::follow::{Watcher, conclude};
use super::interrupt::Interrupts;
use super::who_acts::who_acts;
use super::{Common, Exit, Failure, Output, terminal};

/// Arguments of `reboot`.
#[derive(Debug, Args)]
pub struct Reboot {
    #[command(flatten)]
    ask: Ask,
    /// Who makes the node go down: kured, pod, or external (you do, and say `maint done`); else kured where it asks maint
    /// first, else pod where it is enabled
    #[arg(long, value_name = "NAME")]
    action: Option<Action>,
    /// Why: a scope that reboots
    #[arg(long, value_name = "NAME", default_value = Scope::DEFAULT)]
    scope: String,
    /// Do not watch: print the record's name and leave
    #[arg(long)]
    detach: bool,
}

impl Reboot {
    /// Runs it.
    ///
    /// # Errors
    /// See [`Ask`].
    pub async fn run(&self, common: &Common) -> anyhow::Result<Exit> {
        let (wish, scope) = self.wish(&common.settings()?)?;
        let session = Session::open(common).await?;
        self.on(&session, common, wish, &scope, Interrupts::listen).await
    }

    /// What is asked for, and its scope. Who acts is left open where nobody was named.
    pub(super) fn wish(&self, settings: &Settings) -> Result<(MaintenanceSpec, Scope), Failure> {
        let scope = self.scope(settings)?;
        Ok((self.ask.wish(settings, &scope, self.action, false)?, scope))
    }

    /// Runs it on a connected cluster.
    pub(super) async fn on(
        &self,
        session: &Session,
        common: &Common,
        mut wish: MaintenanceSpec,
        scope: &Scope,
        interrupts: impl FnOnce() -> std::io::Result<Interrupts>,
    ) -> anyhow::Result<Exit> {
        let (node, pending) = self.ask.look(session).await?;
        let action = who_acts(session, self.action, &node, &pending).await?;
        action.as_str().clone_into(&mut wish.action);
        self.ask.agree(&wish, scope, &pending)?;
        // Not before: at the question Ctrl-C ends everything.
        let interrupts = interrupts()?;
        let by = wish.requested_by.clone();
        let record = self.ask.create(session, &wish, &node, &pending).await?;
        let name = name_of(&record);
        if self.detach {
            match common.output {
                Output::Text => terminal::data(&format!("{name}\n"))?,
                Output::Json => terminal::json(&RunDocument::new(&record, session.now()))?,
            }
            terminal::talk(&format!("asked for; look: maint show {name}; call it off: maint cancel {name}\n"))?;
            return Ok(Exit::Fine);
        }
        terminal::talk(&format!("{name} is asked for; watching it to its end (Ctrl-C ends the watching only)\n"))?;
        let ended = Watcher::of_new(session, &record, interrupts).watch(None).await?;
        conclude(session, common, &name, &by, ended).await
    }

    /// The scope, which must reboot.
    fn scope(&self, settings: &Settings) -> Result<Scope, Failure> {
        let scope = Scope::find(settings, &self.scope).map_err(|unknown| Failure::usage(unknown.to_string()))?;
        if scope.reboots {
            return Ok(scope);
        }
        let name = &scope.name;
        Err(Failure::usage(format!(
            "scope `{name}` does not reboot\n  what helps: maint run NODE --scope {name} -- COMMAND"
        )))
    }
}
