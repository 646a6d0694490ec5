//! `maint hold NODE` and `release NODE`: nothing of ours touches a node.

use std::fmt::Write as _;

use clap::Args;
use maint_core::api::record::Maintenance;
use maint_core::api::{Document as _, Hold as HoldDocument, Phase, names};
use maint_core::facts::Node;
use maint_core::plan::phase_of;
use maint_engine::execute::WriteError;
use serde_json::json;

use super::cluster::{Right, Session, Who, explain, is_before_commit, name_and_phase, not_now};
use super::time::Until;
use super::{Common, Exit, Failure, Output, terminal};

/// Arguments of `hold`.
#[derive(Debug, Args)]
pub struct Hold {
    /// The node
    node: String,
    /// Why, for those who find it
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// When it ends by itself: a time such as 2026-12-05T08:00:00Z or a duration such as 2d; else until `maint release`
    #[arg(long, value_name = "WHEN")]
    until: Option<Until>,
    #[command(flatten)]
    who: Who,
}

/// Arguments of `release`.
#[derive(Debug, Args)]
pub struct Release {
    /// The node
    node: String,
}

impl Hold {
    /// Runs it.
    ///
    /// # Errors
    /// If there is no such node, the end is over already, or the API server does not take it.
    pub async fn run(&self, common: &Common) -> anyhow::Result<Exit> {
        let by = self.who.name()?;
        if self.reason.trim().is_empty() {
            return Err(Failure::usage("--reason is empty: say why, for whoever finds it").into());
        }
        let session = Session::open(common).await?;
        let until = self.until.map(|until| until.instant(session.now())).transpose().map_err(Failure::usage)?;
        let node = session.node(&self.node).await?;
        let hold = HoldDocument { by, reason: self.reason.clone(), until };
        write(&session, &self.node, Some(&hold)).await?;
        if let Some(Ok(old)) = present(&node) {
            terminal::talk(&format!("it replaces the hold of {}: {}\n", old.by, old.reason))?;
        }
        let records = session.active_of(&self.node).await;
        match common.output {
            Output::Text => terminal::data(&held(&self.node, &hold, records.as_deref().ok()))?,
            Output::Json => terminal::json(&json!({
                "apiVersion": names::OUTPUT_API_VERSION, "kind": "Hold", "node": self.node, "hold": hold,
                "waits": records.as_deref().unwrap_or_default().iter().map(name_and_phase).collect::<Vec<_>>(),
            }))?,
        }
        if let Err(error) = records {
            terminal::talk(&format!("on hold; which runs that stops could not be read: {error}\n"))?;
        }
        Ok(Exit::Fine)
    }
}

impl Release {
    /// Runs it.
    ///
    /// # Errors
    /// If there is no such node, or the API server does not take it.
    pub async fn run(&self, common: &Common) -> anyhow::Result<Exit> {
        let session = Session::open(common).await?;
        let node = session.node(&self.node).await?;
        write(&session, &self.node, None).await?;
        let name = &self.node;
        let (was, text) = match present(&node) {
            None => (None, format!("{name} was not on hold\n")),
            Some(Ok(hold)) => {
                let text = format!("{name} is released; it was held by {}: {}\n", hold.by, hold.reason);
                (Some(hold), text)
            }
            Some(Err(())) => (None, format!("{name} is released; its hold could not be read, and is gone\n")),
        };
        match common.output {
            Output::Text => terminal::data(&text)?,
            Output::Json => terminal::json(&json!({
                "apiVersion": names::OUTPUT_API_VERSION, "kind": "Hold", "node": name, "hold": null, "was": was,
            }))?,
        }
        if node.is_cordoned() {
            terminal::talk(&format!("{name} is cordoned; maint status says by whom\n"))?;
        }
        Ok(Exit::Fine)
    }
}

async fn write(session: &Session, node: &str, hold: Option<&HoldDocument>) -> anyhow::Result<()> {
    let document = hold.map(serde_json::to_value).transpose()?;
    session.requests.hold(node, document.as_ref()).await.map_err(|error| match error {
        WriteError::NotFound(_) => not_now(format!("node {node} is gone")),
        error => explain(error, Right::HOLD),
    })
}

/// The hold on a node: none, one that can be read, or one that cannot.
fn present(node: &Node) -> Option<Result<HoldDocument, ()>> {
    let text = node.metadata.annotations.get(names::ANNOTATION_HOLD)?;
    Some(HoldDocument::parse(text).map_err(|_| ()))
}

/// What waits now.
fn held(node: &str, hold: &HoldDocument, records: Option<&[Maintenance]>) -> String {
    let end = hold.until.map_or_else(|| format!("until `maint release {node}`"), |until| format!("until {until}"));
    let mut text = format!("{node} is on hold {end}: no run of it starts, and its cordon is left alone\n");
    for record in records.into_iter().flatten() {
        let _ = writeln!(text, "  {}: {}", name_and_phase(record), follows(phase_of(record)));
    }
    text
}

/// What a hold means to a run in this phase.
const fn follows(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending => "does not start",
        phase if is_before_commit(phase) => "backs out and ends Cancelled; the cordon is left to you",
        Phase::BackingOut => "is put back",
        Phase::Settling => "the cordon is off already; it only observes",
        phase if phase.is_terminal() => "is over",
        _ => "is committed: the node is proven, then the run is Held and the cordon stays until the release",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use maint_core::api::record::{MaintenanceSpec, MaintenanceStatus};

    #[test]
    fn a_hold_says_what_it_stops() {
        let rows = [
            ("Pending", "does not start"),
            ("Draining", "backs out and ends Cancelled"),
            ("Returning", "is committed: the node is proven, then the run is Held"),
            ("Settling", "the cordon is off already"),
        ];
        let hold = HoldDocument { by: "anna".into(), reason: "disk".into(), until: None };
        for (phase, wanted) in rows {
            let mut record = Maintenance::new("r", MaintenanceSpec::default());
            record.status = Some(MaintenanceStatus { phase: phase.into(), ..MaintenanceStatus::default() });
            let text = held("worker2", &hold, Some(&[record]));
            assert!(text.starts_with("worker2 is on hold until `maint release worker2`: "), "{phase}: {text}");
            assert!(text.contains(&format!("  r ({phase}): {wanted}")), "{phase}: {text}");
        }
    }
}
