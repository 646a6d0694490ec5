//! What a record keeps of findings, of DNS and of the matrix.

use super::phase_of;
use super::run::Run;
use super::time::{parse_time, stamp};
use crate::api::record::{DnsRecord, EvidenceRecord, FindingRecord};
use crate::api::{Evidence, Finding, Moment, Status};
use crate::gates;
use crate::matrix::CellVerdict;

/// Pairs of the matrix kept.
const MAX_PAIRS: usize = 8;

impl Run<'_> {
    /// Counts DNS endpoints while the run is in flight: the lowest number is part of the proof.
    pub(super) fn watch_dns(&mut self) {
        if !phase_of(self.input.record).is_in_flight() {
            return;
        }
        let Some(ready) = self.ask(Moment::Settle, gates::ready_dns_endpoints) else { return };
        let ready = i64::try_from(ready).unwrap_or(i64::MAX);
        match &mut self.status.dns {
            Some(dns) => {
                if dns.last_ready != ready {
                    dns.changes += 1;
                    dns.last_ready = ready;
                    if ready == 0 {
                        dns.zero_ready_observations += 1;
                    }
                }
                dns.min_ready = dns.min_ready.min(ready);
            }
            none => {
                *none = Some(DnsRecord {
                    min_ready: ready,
                    last_ready: ready,
                    zero_ready_observations: i64::from(ready == 0),
                    changes: 0,
                });
            }
        }
    }

    /// `9/9`, and the pairs that are not green.
    pub(super) fn matrix_line(&self) -> Option<(String, Vec<String>)> {
        let matrix = self.input.facts.matrix.known()?;
        let green = matrix.cells.iter().filter(|cell| cell.verdict == CellVerdict::Green).count();
        let broken = matrix
            .cells
            .iter()
            .filter(|cell| cell.verdict != CellVerdict::Green)
            .take(MAX_PAIRS)
            .map(|cell| format!("{} -> {}: {} ({})", cell.server, cell.node, cell.verdict, cell.detail))
            .collect();
        Some((format!("{green}/{}", matrix.cells.len()), broken))
    }
}

pub(super) fn record_of(finding: &Finding) -> FindingRecord {
    FindingRecord {
        gate: finding.gate.as_str().to_owned(),
        status: finding.status.as_str().to_owned(),
        reason: finding.reason.as_str().to_owned(),
        message: finding.message.clone(),
        since: finding.since.map(stamp),
        evidence: finding
            .evidence
            .iter()
            .map(|evidence| EvidenceRecord {
                object: evidence.object.clone(),
                field: evidence.field.clone(),
                value: evidence.value.clone(),
                wanted: evidence.wanted.clone(),
            })
            .collect(),
    }
}

/// A kept finding, as the gates compare it; one with a word that this version does not know compares with nothing.
pub(super) fn finding_of(record: &FindingRecord) -> Option<Finding> {
    Some(Finding {
        gate: record.gate.parse().ok()?,
        status: record.status.parse().ok()?,
        reason: record.reason.parse().ok()?,
        message: record.message.clone(),
        evidence: record
            .evidence
            .iter()
            .map(|one| Evidence::new(&one.object, &one.field, &one.value, &one.wanted))
            .collect(),
        evidence_left_out: 0,
        observed_at: None,
        since: parse_time(record.since.as_ref()),
    })
}

/// The findings that are not fine, as a record keeps them.
pub(super) fn records_of(findings: &[Finding]) -> Vec<FindingRecord> {
    findings
        .iter()
        .filter(|finding| !matches!(finding.status, Status::Pass | Status::NotApplicable))
        .map(record_of)
        .collect()
}
