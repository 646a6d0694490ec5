//! Gate `alerts`: no alert fires, by the word of an Alertmanager or a Prometheus.
//!
//! # Checks
//! Each alert that fires and is neither silenced nor inhibited (which an Alertmanager alone knows) blocks, unless it is
//! one of maint itself, always fires (`Watchdog`, `InfoInhibitor`), says no more than that this node is to be
//! maintained (`RebootRequired`; `KubeNodeUnschedulable` of the target), is on the list `[alerts] ignore`, or has
//! another severity than the list `[alerts] severities` wants. It is asked at the moments of `[alerts] moments`.
//!
//! # Why
//! What a person would look at before he begins. An alert that fires for ever keeps nodes from being maintained for
//! ever, so the usual ones are passed over (kured pull request 785).
//!
//! # Source of truth
//! `/api/v2/alerts?active=true&silenced=false&inhibited=false` of an Alertmanager, or the series
//! `ALERTS{alertstate="firing"}` of a Prometheus.
//!
//! # Blocks which scopes
//! None by default (policy `off`); else all.
//!
//! # When unknown
//! It could not be asked in time, answered with something else, or an alert has no name.
//!
//! # Runbook
//! `runbooks/AlertFiring.md`

#[cfg(test)]
mod tests;

use super::listing::not_asked;
use super::reading::{may_be_a_dump, was_failing};
use super::{Draft, GateInput, GateSpec, Read};
use crate::api::{Evidence, Finding, GateId, Moment, Policy, Reason, SourceId, Status};
use crate::facts::Alert;

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::Alerts,
    moments: &[Moment::Start, Moment::Handover, Moment::Verify, Moment::Settle],
    reads: &[SourceId::Alerts],
    reasons: &[Reason::AlertFiring],
    default_policy: Policy::Off,
    doc: "no alert of Alertmanager or Prometheus fires, but for its own and those to be passed over",
    check,
};

/// Alerts that are meant to fire always, and kured's, which fires because this node is to be maintained.
const PASSED_OVER: [&str; 3] = ["Watchdog", "InfoInhibitor", "RebootRequired"];
/// Of the target it says what maint does itself (kubernetes-mixin).
const OF_THE_TARGET: &str = "KubeNodeUnschedulable";

fn check(input: &GateInput<'_>) -> Finding {
    let mut draft = Draft::new(GateId::Alerts, input);
    let settings = &input.settings.alerts;
    let Some((who, _)) = settings.asked() else {
        let message = "neither an Alertmanager nor a Prometheus is configured ([alerts])";
        return draft.not_applicable(Reason::NotInstalled, message);
    };
    let alerts = match draft.read(SourceId::Alerts, &input.facts.alerts) {
        Read::Known(alerts) => alerts,
        Read::Unreadable => return draft.finish(""),
        Read::NotAsked if may_be_a_dump(input) => {
            return draft.not_applicable(Reason::NotAsked, format!("only {who} itself can say which alerts fire"));
        }
        // It is configured: that there is none is no answer.
        Read::Absent | Read::NotAsked => not_asked(&mut draft, SourceId::Alerts).unwrap_or_default(),
    };
    let count = alerts.len();
    for alert in alerts.into_iter().filter(|alert| counts(input, alert)) {
        judge(input, &mut draft, alert);
    }
    draft.finish(format!("none of {count} alerts that fire by {who} is in the way"))
}

fn counts(input: &GateInput<'_>, alert: &Alert) -> bool {
    let (settings, name) = (&input.settings.alerts, alert.name());
    let label = |key: &str| alert.labels.get(key).map(String::as_str);
    let of_target = name == OF_THE_TARGET && label("node") == Some(input.target);
    let ignored = PASSED_OVER.contains(&name) || settings.ignore.iter().any(|one| one == name) || of_target;
    // One without a severity has any.
    let severe = settings.severities.is_empty()
        || label("severity").is_none_or(|severity| settings.severities.iter().any(|one| one == severity));
    !alert.is_own() && !ignored && severe
}

fn judge(input: &GateInput<'_>, draft: &mut Draft<'_>, alert: &Alert) {
    let where_ = ["namespace", "node", "instance", "pod"];
    let place: Vec<String> =
        where_.iter().filter_map(|key| Some(format!("{key} {}", alert.labels.get(*key)?))).collect();
    let place = if place.is_empty() { String::new() } else { format!(" ({})", place.join(", ")) };
    let severity = alert.labels.get("severity").map_or_else(String::new, |severity| format!(", {severity}"));
    let message = format!("alert {}{severity} fires{place}", alert.name());
    let evidence = Evidence::new(format!("Alert {}{place}", alert.name()), "state", "firing", "not firing");
    let after = matches!(input.moment, Moment::Verify | Moment::Settle);
    if after && was_failing(input, GateId::Alerts, &evidence) {
        let message = format!("{message}; it was so before the run");
        draft.add(Status::Warn, Reason::AlertFiring, message, alert.since, vec![evidence]);
    } else {
        draft.add(Status::Block, Reason::AlertFiring, message, alert.since, vec![evidence]);
    }
}
