//! `maint done`, `resume`, `cancel`: a person's word in a record, if it makes sense in its phase.

use clap::Args;
use maint_core::api::record::{Maintenance, Word};
use maint_core::api::{Action, Phase, names};
use maint_core::plan::phase_of;
use maint_engine::execute::WriteError;
use maint_engine::request::Field;
use serde_json::json;

use super::cluster::{Right, Session, Who, explain, is_before_commit, not_now};
use super::follow::{Watcher, conclude};
use super::interrupt::Interrupts;
use super::{Common, Exit, Output, terminal};

/// Arguments of `done`.
#[derive(Debug, Args)]
pub struct Done {
    /// The record
    name: String,
    /// What was to be done failed
    #[arg(long)]
    failed: bool,
    #[command(flatten)]
    who: Who,
}

/// Arguments of `resume`.
#[derive(Debug, Args)]
pub struct Resume {
    /// The record
    name: String,
    /// Go on as if green; it is recorded
    #[arg(long)]
    accept: bool,
    /// Watch it to its end
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    who: Who,
}

/// Arguments of `cancel`.
#[derive(Debug, Args)]
pub struct Cancel {
    /// The record
    name: String,
    /// Of a held run: uncordon the node unproven and end it
    #[arg(long)]
    accept: bool,
    #[command(flatten)]
    who: Who,
}

impl Done {
    /// Runs it.
    ///
    /// # Errors
    /// If there is no such record, or nobody waits for this word.
    pub async fn run(&self, common: &Common) -> anyhow::Result<Exit> {
        let by = self.who.name()?;
        let session = Session::open(common).await?;
        let record = session.record(&self.name).await?;
        let follows = done_follows(&record).map_err(not_now)?;
        let word = Word { failed: self.failed, ..session.word(&by, &record) };
        say(&session, &self.name, Field::ActionDone, &word).await?;
        told(common, &self.name, Field::ActionDone, &word, follows)?;
        Ok(Exit::Fine)
    }
}

impl Resume {
    /// Runs it.
    ///
    /// # Errors
    /// If there is no such record, or it is not held.
    pub async fn run(&self, common: &Common) -> anyhow::Result<Exit> {
        let session = Session::open(common).await?;
        self.on(&session, common, Interrupts::listen).await
    }

    /// Runs it on a connected cluster.
    pub(super) async fn on(
        &self,
        session: &Session,
        common: &Common,
        interrupts: impl FnOnce() -> std::io::Result<Interrupts>,
    ) -> anyhow::Result<Exit> {
        let by = self.who.name()?;
        let record = session.record(&self.name).await?;
        let follows = resume_follows(&record, self.accept).map_err(not_now)?;
        let word = Word { accept: self.accept, ..session.word(&by, &record) };
        if !self.wait {
            say(session, &self.name, Field::Resume, &word).await?;
            told(common, &self.name, Field::Resume, &word, follows)?;
            return Ok(Exit::Fine);
        }
        let interrupts = interrupts()?;
        say(session, &self.name, Field::Resume, &word).await?;
        terminal::talk(&format!("{follows}\n"))?;
        let ended = Watcher::of_resumed(session, &record, interrupts).watch(None).await?;
        conclude(session, common, &self.name, &by, ended).await
    }
}

impl Cancel {
    /// Runs it.
    ///
    /// # Errors
    /// If there is no such record, or nothing can be called off.
    pub async fn run(&self, common: &Common) -> anyhow::Result<Exit> {
        let by = self.who.name()?;
        let session = Session::open(common).await?;
        let record = session.record(&self.name).await?;
        let follows = cancel_follows(&record, self.accept).map_err(not_now)?;
        let word = Word { accept: self.accept, ..session.word(&by, &record) };
        say(&session, &self.name, Field::Cancel, &word).await?;
        told(common, &self.name, Field::Cancel, &word, follows)?;
        Ok(Exit::Fine)
    }
}

async fn say(session: &Session, name: &str, field: Field, word: &Word) -> anyhow::Result<()> {
    session.requests.say(name, field, word, None).await.map_err(|error| match error {
        WriteError::NotFound(_) => not_now(format!("the record {name} is gone")),
        // The CRD lets it be said once: somebody was faster.
        WriteError::Invalid(detail) => not_now(format!("it cannot be said: {detail}\n  what helps: maint show {name}")),
        error => explain(error, Right::SAY),
    })
}

fn told(common: &Common, name: &str, field: Field, word: &Word, follows: &str) -> anyhow::Result<()> {
    match common.output {
        Output::Text => Ok(terminal::data(&format!("{name}: {follows}\n  look: maint show {name}\n"))?),
        Output::Json => terminal::json(&json!({
            "apiVersion": names::OUTPUT_API_VERSION, "kind": "Said", "name": name, "field": field.as_str(), "word": word,
            "message": follows,
        })),
    }
}

/// What follows from `done`, or why it makes no sense.
fn done_follows(record: &Maintenance) -> Result<&'static str, String> {
    let spec = &record.spec;
    let phase = phase_of(record);
    if spec.action != Action::External.as_str() {
        return Err(format!("action `{}` says itself when it is over; nobody's `done` is needed", spec.action));
    }
    if let Some(word) = &spec.action_done {
        let how = if word.failed { " as failed" } else { "" };
        return Err(format!("{} said so at {} already{how}; it can be said once", word.by, word.at));
    }
    match phase {
        Phase::Returning => Ok("heard; the node is proven once it is back"),
        Phase::Held => Ok("heard; the node is proven if it is back"),
        Phase::Pending | Phase::Cordoning | Phase::Draining | Phase::Acting => Err(format!(
            "the run is {phase}: there was no GO yet, and nothing may have been done to the node. If something was: maint \
             cancel, and look"
        )),
        Phase::BackingOut => Err("the run is being put back: there is no GO any more".to_owned()),
        Phase::Verifying | Phase::Uncordoning | Phase::Settling => {
            Err(format!("the run is {phase}: the node is back already"))
        }
        Phase::Succeeded | Phase::Failed | Phase::Cancelled => Err(format!("the run is over: {phase}")),
    }
}

/// What follows from `resume`, or why it makes no sense.
fn resume_follows(record: &Maintenance, accept: bool) -> Result<&'static str, String> {
    match phase_of(record) {
        Phase::Held if accept => Ok("heard; it goes on as if green, and the record says so"),
        Phase::Held => Ok("heard; it is verified again now and goes on when green"),
        phase if phase.is_terminal() => Err(format!("the run is over: {phase}")),
        phase => Err(format!("the run is {phase}: only a held one can be resumed")),
    }
}

/// What follows from `cancel`, or why it makes no sense.
fn cancel_follows(record: &Maintenance, accept: bool) -> Result<&'static str, String> {
    let phase = phase_of(record);
    let only_held = format!("the run is {phase}: --accept is for held ones");
    match phase {
        Phase::Held if accept => Ok("heard; the node is uncordoned unproven, and the record ends Cancelled"),
        Phase::Held => Err(
            "the run is Held: to call it off is to uncordon the node unproven; say --accept to mean it, or maint resume \
             to verify again"
                .to_owned(),
        ),
        phase if phase.is_terminal() => Err(format!("the run is over: {phase}")),
        Phase::BackingOut => Err("everything is being put back already".to_owned()),
        Phase::Uncordoning | Phase::Settling => {
            Err(format!("the run is {phase}: the node is proven, and nothing is left to call off"))
        }
        _ if accept => Err(only_held),
        Phase::Pending => Ok("heard; it ends Cancelled, nothing was touched"),
        phase if is_before_commit(phase) => Ok("heard; everything is put back, then it ends Cancelled"),
        _ => Ok("heard, but it is committed: the node is proven all the same, and the record says so"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use maint_core::api::record::{MaintenanceSpec, MaintenanceStatus};

    fn record(phase: &str) -> Maintenance {
        let spec = MaintenanceSpec { action: "external".into(), ..MaintenanceSpec::default() };
        let mut record = Maintenance::new("n", spec);
        record.status = Some(MaintenanceStatus { phase: phase.into(), ..MaintenanceStatus::default() });
        record
    }

    /// `Err` begins so, or `Ok` is so.
    #[allow(clippy::needless_pass_by_value, reason = "a table of tests reads better without references")]
    fn check(row: &str, got: Result<&'static str, String>, wanted: Result<&str, &str>) {
        let fits = match (&got, wanted) {
            (Ok(text), Ok(begin)) => text.starts_with(begin),
            (Err(text), Err(begin)) => text.starts_with(begin),
            _ => false,
        };
        assert!(fits, "{row}: {got:?}, wanted {wanted:?}");
    }

    #[test]
    fn each_word_in_each_phase() {
        // Phase; done; resume; resume --accept; cancel; cancel --accept: o for heard, x for refused.
        let rows = [
            ("Pending", "xxxox"),
            ("Cordoning", "xxxox"),
            ("Draining", "xxxox"),
            ("Acting", "xxxox"),
            ("Returning", "oxxox"),
            ("Verifying", "xxxox"),
            ("Uncordoning", "xxxxx"),
            ("Settling", "xxxxx"),
            ("BackingOut", "xxxxx"),
            ("Held", "oooxo"),
            ("Succeeded", "xxxxx"),
            ("Failed", "xxxxx"),
            ("Cancelled", "xxxxx"),
        ];
        assert_eq!(rows.len(), Phase::ALL.len());
        for (phase, wanted) in rows {
            let record = record(phase);
            let answers = [
                done_follows(&record).is_ok(),
                resume_follows(&record, false).is_ok(),
                resume_follows(&record, true).is_ok(),
                cancel_follows(&record, false).is_ok(),
                cancel_follows(&record, true).is_ok(),
            ];
            let shown: String = answers.map(|heard| if heard { 'o' } else { 'x' }).iter().collect();
            assert_eq!(shown, wanted, "{phase}");
        }
    }

    #[test]
    fn a_refusal_says_why() {
        let mut pod = record("Returning");
        pod.spec.action = "pod".into();
        let mut said = record("Returning");
        said.spec.action_done =
            Some(Word { by: "ben".into(), at: "2026-11-30T01:00:00Z".into(), failed: true, ..Word::default() });
        check("an action of ours", done_follows(&pod), Err("action `pod` says itself when it is over"));
        check("said before", done_follows(&said), Err("ben said so at 2026-11-30T01:00:00Z already as failed"));
        check("too early", done_follows(&record("Draining")), Err("the run is Draining: there was no GO yet"));
        check("held, without --accept", cancel_follows(&record("Held"), false), Err("the run is Held: to call it off"));
        check("committed", cancel_follows(&record("Returning"), false), Ok("heard, but it is committed"));
        check("before commit", cancel_follows(&record("Acting"), false), Ok("heard; everything is put back"));
        check("not held", resume_follows(&record("Draining"), false), Err("the run is Draining: only a held one"));
    }
}
