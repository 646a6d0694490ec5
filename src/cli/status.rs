//! `maint status`: the cluster on one screen.

use maint_core::api::SourceId;
use maint_core::api::record::Maintenance;
use maint_core::facts::{self, FailureKind, Item, Listed, Observation};
use maint_core::report::{StatusInput, StatusReport, StatusVerdict, status};
use maint_engine::drive::Records as _;
use maint_engine::execute::WriteError;

use super::cluster::{Right, Session, explain};
use super::{Common, Exit, Output, terminal};

/// Runs the verb: 0, 5 if a run is held, 4 if a part could not be read.
///
/// # Errors
/// If the cluster cannot be asked at all, or does not know maint's records.
pub async fn run(common: &Common) -> anyhow::Result<Exit> {
    let session = Session::open(common).await?;
    let (facts, lease, listed) = tokio::join!(
        session.facts(&[SourceId::Nodes, SourceId::ConfigMaps, SourceId::Maintenances, SourceId::DaemonSets]),
        session.lease(),
        session.records.list(false)
    );
    let odd_records = odd_records(&session, &facts.maintenances, listed.as_deref().unwrap_or_default()).await;
    let at = session.now();
    let records = match listed {
        Ok(value) => Observation::Known { value, at },
        Err(error @ WriteError::NotFound(_)) => return Err(explain(error, Right::READ)),
        Err(error) => {
            let kind = match &error {
                WriteError::Forbidden(_) => FailureKind::Forbidden,
                WriteError::TimedOut { .. } => FailureKind::Timeout,
                WriteError::Transport(_) | WriteError::NotRead(_) => FailureKind::Transport,
                _ => FailureKind::Server,
            };
            Observation::Failed { kind, detail: error.to_string(), at }
        }
    };
    let report = StatusReport::new(
        &StatusInput {
            source: &session.source(),
            settings: &session.settings,
            configured: common.config.is_some(),
            facts: &facts,
            lease: &lease,
            records: &records,
            odd_records: &odd_records,
        },
        at,
    );
    match common.output {
        Output::Text => terminal::data(&status(&report, common.paint()))?,
        Output::Json => terminal::json(&report)?,
    }
    Ok(match report.verdict {
        StatusVerdict::Fine => Exit::Fine,
        StatusVerdict::Unknown => Exit::Unknown,
        StatusVerdict::Held => Exit::PersonNeeded,
    })
}

/// Records that the list left out, since it cannot understand them: what is left out must not look like what is not
/// there.
async fn odd_records(session: &Session, seen: &Listed<facts::Maintenance>, understood: &[Maintenance]) -> Vec<String> {
    let mut odd = Vec::new();
    for item in seen.known().into_iter().flatten() {
        match item {
            Item::Malformed(bad) => odd.push(bad.to_string()),
            Item::Good(record) => {
                let name = &record.metadata.name;
                let over = !record.in_flight() && record.phase != "Pending";
                if over || understood.iter().any(|one| one.metadata.name.as_ref() == Some(name)) {
                    continue;
                }
                // It may have been created or ended between the two lists.
                if let Err(error @ WriteError::Server(_)) = session.records.get(name).await {
                    odd.push(error.to_string());
                }
            }
        }
    }
    odd
}
