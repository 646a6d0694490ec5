//! `maint explain`: what a reason or a gate means and what to do. Needs no cluster.

mod runbooks;

use std::fmt::Write as _;

use clap::Args;
use maint_core::api::{GateId, Reason, UnknownName, names};
use maint_core::gates::{COMMON_REASONS, GATES, GateSpec, spec_of};
use serde_json::{Value, json};

use super::{Common, Exit, Failure, Output, terminal};

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// A reason, such as LonghornVolumeRebuilding, or a gate, such as longhorn-volumes
    name: Option<String>,
}

/// What a name means.
enum Subject {
    Gate(&'static GateSpec),
    Reason(Reason),
}

impl Explain {
    /// Runs it.
    pub fn run(&self, common: &Common) -> anyhow::Result<Exit> {
        let (text, document) = match &self.name {
            None => (list(), json!({"kind": "GateList", "gates": GATES.iter().map(describe).collect::<Vec<_>>()})),
            Some(name) => match find(name)? {
                Subject::Gate(gate) => (of_gate(gate), json!({"kind": "Gate", "gate": describe(gate)})),
                Subject::Reason(reason) => {
                    let gates = gates_of(reason);
                    let document =
                        json!({"kind": "Runbook", "reason": reason, "gates": gates, "runbook": runbooks::of(reason)});
                    (of_reason(reason), document)
                }
            },
        };
        match common.output {
            Output::Text => terminal::data(&text)?,
            Output::Json => {
                let mut document = document;
                document["apiVersion"] = json!(names::OUTPUT_API_VERSION);
                terminal::json(&document)?;
            }
        }
        Ok(Exit::Fine)
    }
}

/// Finds a gate or a reason; upper and lower case do not matter to somebody who types it.
fn find(name: &str) -> Result<Subject, Failure> {
    let reason = Reason::ALL.iter().copied().find(|reason| reason.as_str().eq_ignore_ascii_case(name));
    let gate = GateId::ALL.iter().copied().find(|gate| gate.as_str().eq_ignore_ascii_case(name)).and_then(spec_of);
    if let Some(found) = gate.map(Subject::Gate).or(reason.map(Subject::Reason)) {
        return Ok(found);
    }
    let known = GateId::ALL.iter().map(|gate| gate.as_str()).chain(Reason::ALL.iter().map(|reason| reason.as_str()));
    let unknown = UnknownName::new("gate or reason", name, known.map(str::to_owned).collect());
    let nearest = unknown.nearest.map(|nearest| format!(", did you mean `{nearest}`?")).unwrap_or_default();
    Err(Failure::usage(format!("unknown gate or reason `{name}`{nearest}\n  help: `maint explain` lists them all")))
}

fn gates_of(reason: Reason) -> Vec<GateId> {
    let all = COMMON_REASONS.contains(&reason);
    GATES.iter().filter(|gate| all || gate.reasons.contains(&reason)).map(|gate| gate.id).collect()
}

fn describe(gate: &GateSpec) -> Value {
    json!({
        "id": gate.id, "doc": gate.doc, "moments": gate.moments, "reads": gate.reads, "reasons": gate.reasons,
        "defaultPolicy": gate.default_policy,
    })
}

fn list() -> String {
    let mut text = String::from("The gates, in the order in which they are told. `maint explain NAME` tells more.\n");
    for gate in GATES {
        let _ = write!(text, "\n{} ({})\n  {}\n", gate.id, gate.default_policy, gate.doc);
        for reason in gate.reasons {
            let _ = writeln!(text, "    {reason}");
        }
    }
    text.push_str("\nany gate\n");
    for reason in COMMON_REASONS {
        let _ = writeln!(text, "    {reason}");
    }
    text
}

fn of_gate(gate: &GateSpec) -> String {
    let moments: Vec<&str> = gate.moments.iter().map(|moment| moment.as_str()).collect();
    let reads: Vec<&str> = gate.reads.iter().map(|source| source.as_str()).collect();
    let mut text = format!(
        "{}\n  asks     {}\n  moments  {}\n  reads    {}\n  policy   {} unless [gates] says otherwise\n  reasons\n",
        gate.id,
        gate.doc,
        moments.join(", "),
        if reads.is_empty() { "nothing".to_owned() } else { reads.join(", ") },
        gate.default_policy
    );
    for reason in gate.reasons {
        let _ = writeln!(text, "    {reason}");
    }
    text
}

fn of_reason(reason: Reason) -> String {
    let gates: Vec<&str> = gates_of(reason).iter().map(|gate| gate.as_str()).collect();
    let given_by = if COMMON_REASONS.contains(&reason) { "any gate".to_owned() } else { gates.join(", ") };
    match runbooks::of(reason) {
        Some(runbook) => format!("{runbook}\nGiven by: {given_by}\n"),
        None => format!("{reason}\n\nGiven by: {given_by}\nNo runbook is compiled into this build.\n"),
    }
}
