//! `maint halt` and `unhalt`: everything waits, or goes on.

use std::fmt::Write as _;

use clap::Args;
use maint_core::api::record::Maintenance;
use maint_core::api::{Document as _, Halt as HaltDocument, Phase, SourceId, is_over, names};
use maint_core::facts::Observation;
use maint_core::jiff::Timestamp;
use maint_core::plan::phase_of;
use serde_json::json;

use super::cluster::{Right, Session, Who, explain, is_before_commit, name_and_phase};
use super::time::Until;
use super::{Common, Exit, Failure, Output, terminal};

/// Arguments of `halt`.
#[derive(Debug, Args)]
pub struct Halt {
    /// Why, for those who find it halted
    #[arg(long, value_name = "TEXT", default_value = "no reason given")]
    reason: String,
    /// When it ends by itself: a time such as 2026-12-05T08:00:00Z or a duration such as 8h; else until `maint unhalt`
    #[arg(long, value_name = "WHEN")]
    until: Option<Until>,
    #[command(flatten)]
    who: Who,
}

/// The halt that is in the cluster.
enum Present {
    /// None, or one that is over.
    None,
    /// This one.
    Halt(HaltDocument),
    /// One that cannot be read: it counts.
    Unreadable,
    /// Whether there is one is not known.
    Unknown,
}

impl Halt {
    /// Runs it.
    ///
    /// # Errors
    /// If the end is over already, or the API server does not take it.
    pub async fn run(&self, common: &Common) -> anyhow::Result<Exit> {
        let by = self.who.name()?;
        if self.reason.trim().is_empty() {
            return Err(Failure::usage("--reason is empty: say why, for whoever finds it").into());
        }
        let session = Session::open(common).await?;
        let since = session.now();
        let until = self.until.map(|until| until.instant(since)).transpose().map_err(Failure::usage)?;
        let before = present(&session).await;
        let halt = HaltDocument { by, reason: self.reason.clone(), since, until };
        write(&session, Some(&halt)).await?;
        if let Present::Halt(old) = before {
            terminal::talk(&format!("it replaces the halt of {} since {}: {}\n", old.by, old.since, old.reason))?;
        }
        // It is halted whatever the records say; they only tell what waits.
        let records = session.list(false).await;
        match common.output {
            Output::Text => terminal::data(&halted(&halt, records.as_deref().ok()))?,
            Output::Json => terminal::json(&json!({
                "apiVersion": names::OUTPUT_API_VERSION, "kind": "Halt", "halt": halt,
                "waits": records.as_deref().unwrap_or_default().iter().map(name_and_phase).collect::<Vec<_>>(),
            }))?,
        }
        if let Err(error) = records {
            terminal::talk(&format!("halted; which runs wait could not be read: {error}\n"))?;
        }
        Ok(Exit::Fine)
    }
}

/// Runs `unhalt`.
///
/// # Errors
/// If the API server does not take it.
pub async fn unhalt(common: &Common) -> anyhow::Result<Exit> {
    let session = Session::open(common).await?;
    let before = present(&session).await;
    write(&session, None).await?;
    let (was, text) = match before {
        Present::None => (None, "nothing was halted\n".to_owned()),
        Present::Halt(halt) => {
            let text = format!("goes on; it was halted by {} since {}: {}\n", halt.by, halt.since, halt.reason);
            (Some(halt), text)
        }
        Present::Unreadable => (None, "goes on; the halt could not be read, and is gone\n".to_owned()),
        Present::Unknown => (None, "goes on; whether it was halted could not be read\n".to_owned()),
    };
    match common.output {
        Output::Text => terminal::data(&text)?,
        Output::Json => terminal::json(&json!({
            "apiVersion": names::OUTPUT_API_VERSION, "kind": "Halt", "halt": null, "was": was,
        }))?,
    }
    Ok(Exit::Fine)
}

async fn write(session: &Session, halt: Option<&HaltDocument>) -> anyhow::Result<()> {
    let document = halt.map(serde_json::to_value).transpose()?;
    session.requests.halt(document.as_ref()).await.map_err(|error| match error {
        // The ConfigMap is created where it is missing, so only its namespace can be.
        maint_engine::execute::WriteError::NotFound(detail) => anyhow::anyhow!(
            "namespace {} is not there: {detail}\n  what helps: -n NAME names maint's own",
            session.settings.namespace
        ),
        error => explain(error, Right::HALT),
    })
}

async fn present(session: &Session) -> Present {
    let facts = session.facts(&[SourceId::ConfigMaps]).await;
    if !matches!(facts.config_maps, Observation::Known { .. }) {
        return Present::Unknown;
    }
    let map = facts.config_maps.good().find(|map| map.metadata.name == names::CONTROL_CONFIG_MAP);
    match map.and_then(|map| map.data.get(names::CONTROL_HALT_KEY)).map(|text| HaltDocument::parse(text)) {
        None => Present::None,
        Some(Ok(halt)) if is_over(halt.until, session.now()) => Present::None,
        Some(Ok(halt)) => Present::Halt(halt),
        Some(Err(_)) => Present::Unreadable,
    }
}

/// What waits now.
fn halted(halt: &HaltDocument, records: Option<&[Maintenance]>) -> String {
    let end = halt.until.map_or_else(|| "until `maint unhalt`".to_owned(), |until: Timestamp| format!("until {until}"));
    let mut text = format!("halted {end}: nothing starts, no pod is evicted, no reboot is released\n");
    for record in records.into_iter().flatten() {
        let _ = writeln!(text, "  {}: {}", name_and_phase(record), waits(phase_of(record)));
    }
    text
}

/// What a halt means to a run in this phase.
const fn waits(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending => "does not start",
        phase if is_before_commit(phase) => {
            "its node stays as it is, cordoned; `maint cancel` puts it back after unhalt"
        }
        Phase::BackingOut => "is still put back",
        Phase::Held => "stays held, and does not go on by itself",
        phase if phase.is_terminal() => "is over",
        _ => "is committed: it only observes, and its cordon stays",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use maint_core::api::record::{MaintenanceSpec, MaintenanceStatus};

    #[test]
    fn a_halt_says_what_waits() {
        let record = |name: &str, phase: &str| {
            let mut record = Maintenance::new(name, MaintenanceSpec::default());
            record.status = Some(MaintenanceStatus { phase: phase.into(), ..MaintenanceStatus::default() });
            record
        };
        let since: Timestamp = "2026-11-30T01:00:00Z".parse().expect("a time");
        let halt = HaltDocument { by: "anna".into(), reason: "disk".into(), since, until: None };
        let records = [record("a", "Pending"), record("b", "Draining"), record("c", "Returning"), record("d", "Held")];
        let wanted = "\
halted until `maint unhalt`: nothing starts, no pod is evicted, no reboot is released
  a (Pending): does not start
  b (Draining): its node stays as it is, cordoned; `maint cancel` puts it back after unhalt
  c (Returning): is committed: it only observes, and its cordon stays
  d (Held): stays held, and does not go on by itself
";
        assert_eq!(halted(&halt, Some(&records)), wanted);
        let until = HaltDocument { until: Some(since), ..halt };
        assert!(halted(&until, None).starts_with("halted until 2026-11-30T01:00:00Z: "));
    }
}
