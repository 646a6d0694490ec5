//! Asking for a run: what `maint reboot` and `maint run` have in common until the record is there.

use std::io::IsTerminal as _;

use anyhow::anyhow;
use clap::Args;
use maint_core::api::record::{Maintenance, MaintenanceSpec, Override};
use maint_core::api::{Action, Asked, Document as _, GateId, Phase, QuestionSource, Strategy, Trigger, names};
use maint_core::config::{Scope, Settings};
use maint_core::facts::Node;
use maint_core::jiff::SignedDuration;
use maint_core::plan::phase_of;
use maint_core::report::length;
use maint_engine::execute::WriteError;

use super::cluster::{Right, Session, Who, explain, name_and_phase, name_of, not_now};
use super::{Failure, terminal, time};

/// Random characters at the end of a record's name.
const SUFFIX: usize = 5;
/// Characters of a node's name that go into a record's: with `maint-` before it and the random end, the action pod's
/// name stays within the 253 of a DNS subdomain.
const NODE_IN_NAME: usize = 240;
/// Names tried before giving up: two equal ones in a row do not happen by chance.
const NAMES_TRIED: usize = 3;
/// Gates that nobody may waive: they guard against a second node down, a lost quorum, and a person's own word.
const NEVER_WAIVED: [GateId; 4] = [GateId::Control, GateId::Exclusive, GateId::Target, GateId::ControlPlane];

/// What a person says of a run.
#[derive(Debug, Args)]
pub struct Ask {
    /// The node
    node: String,
    /// Why, for those who read the record
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Do more than the scope asks: drain
    #[arg(long, value_name = "NAME")]
    strategy: Option<Strategy>,
    /// Give up if it could not start in this time, such as 30m; else run.start_timeout_seconds
    #[arg(long, value_name = "DURATION", value_parser = time::length)]
    wait: Option<SignedDuration>,
    /// Waive a gate, with your reason; may be repeated
    #[arg(long = "override", value_name = "GATE=REASON")]
    overrides: Vec<String>,
    /// Do not ask; needed where there is no terminal
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    who: Who,
}

impl Ask {
    /// The wish, checked as far as that needs no cluster. Without an action the cluster is to be asked for one.
    ///
    /// # Errors
    /// Usage: an unknown or forbidden gate, a weaker strategy than the scope's, no way to confirm.
    pub fn wish(
        &self,
        settings: &Settings,
        scope: &Scope,
        action: Option<Action>,
        waits: bool,
    ) -> Result<MaintenanceSpec, Failure> {
        let by = self.who.name()?;
        if self.strategy == Some(Strategy::CordonOnly) && scope.strategy == Strategy::Drain {
            return Err(Failure::usage(format!(
                "scope `{}` drains: --strategy may ask for more than the scope, never for less",
                scope.name
            )));
        }
        let overrides = self.overrides.iter().map(|text| waive(text, &by)).collect::<Result<_, _>>()?;
        if !self.yes && !can_ask() {
            return Err(Failure::usage("nobody can be asked, since this is no terminal: say --yes to mean it"));
        }
        let timeout = self.wait.map_or(settings.run.start_timeout_seconds, |wait| wait.as_secs());
        Ok(MaintenanceSpec {
            node_name: self.node.clone(),
            scope: scope.name.clone(),
            action: action.map(|action| action.as_str().to_owned()).unwrap_or_default(),
            trigger: Trigger::Manual.as_str().to_owned(),
            requested_by: by,
            reason: self.reason.clone(),
            strategy: self.strategy.map(|strategy| strategy.as_str().to_owned()),
            command_waits: waits,
            start_timeout_seconds: Some(timeout),
            overrides,
            ..MaintenanceSpec::default()
        })
    }

    /// The node, and its records that are not over: all of them are pending.
    ///
    /// # Errors
    /// If there is no such node, or a run of it is in flight.
    pub async fn look(&self, session: &Session) -> anyhow::Result<(Node, Vec<Maintenance>)> {
        let node = session.node(&self.node).await?;
        let active = session.active_of(&self.node).await?;
        if let Some(running) = active.iter().find(|record| phase_of(record) != Phase::Pending) {
            let name = name_of(running);
            return Err(not_now(format!(
                "a run of {} is in flight: {}\n  what helps: maint show {name}",
                self.node,
                name_and_phase(running)
            )));
        }
        Ok((node, active))
    }

    /// Asks the person, who is shown which pending records the wish replaces.
    ///
    /// # Errors
    /// If the person says no.
    pub fn agree(&self, wish: &MaintenanceSpec, scope: &Scope, pending: &[Maintenance]) -> anyhow::Result<()> {
        if self.yes { Ok(()) } else { confirm(wish, scope, pending) }
    }

    /// Replaces the pending records of the node and creates this one. What kured asked in one of them is asked in this one
    /// too.
    ///
    /// # Errors
    /// If the API server does not take it.
    pub async fn create(
        &self,
        session: &Session,
        wish: &MaintenanceSpec,
        node: &Node,
        pending: &[Maintenance],
    ) -> anyhow::Result<Maintenance> {
        let asked = kureds_question(wish, node, pending);
        for _ in 0..NAMES_TRIED {
            let name = record_name(&self.node, &session.rng.suffix(SUFFIX));
            supersede(session, pending, &name).await?;
            let mut record = Maintenance::new(&name, wish.clone());
            record.metadata.annotations =
                asked.map(|asked| [(names::ANNOTATION_ASKED.to_owned(), asked.to_owned())].into());
            match session.requests.create(&record).await {
                Ok(record) => return Ok(record),
                // Somebody has a record of this very name: nothing was written.
                Err(WriteError::Conflict(_)) => {}
                Err(error @ (WriteError::TimedOut { .. } | WriteError::Transport(_))) => {
                    return Err(anyhow!(
                        "{error}\n  what helps: maint show {name} tells whether it was; maint cancel {name} calls it off"
                    ));
                }
                Err(error) => return Err(explain(error, Right::CREATE)),
            }
        }
        Err(not_now(format!("{NAMES_TRIED} names in a row were taken; try again")))
    }
}

/// The last question of kured itself for this boot of the node, as a pending wish of it tells; for action kured only.
/// Where kured asks by itself, a person's run needs no sentinel file.
fn kureds_question<'a>(wish: &MaintenanceSpec, node: &Node, pending: &'a [Maintenance]) -> Option<&'a str> {
    let wished = pending.iter().filter(|record| is_wish_of_kured(record, node));
    wished.filter(|_| wish.action == Action::Kured.as_str()).find_map(asked_by_kured)
}

/// Whether a record is kured's own wish for this boot of the node.
pub fn is_wish_of_kured(record: &Maintenance, node: &Node) -> bool {
    record.spec.action == Action::Kured.as_str()
        && record.spec.trigger == Trigger::Unattended.as_str()
        && record.spec.boot_id.as_deref() == Some(node.boot_id.as_str())
        && asked_by_kured(record).is_some()
}

fn asked_by_kured(record: &Maintenance) -> Option<&str> {
    let text = record.metadata.annotations.as_ref()?.get(names::ANNOTATION_ASKED)?;
    Asked::parse(text).is_ok_and(|asked| asked.source == QuestionSource::Kured).then_some(text)
}

/// Says in the pending records of the node that this one takes their place.
async fn supersede(session: &Session, active: &[Maintenance], name: &str) -> anyhow::Result<()> {
    for pending in active.iter().filter(|record| record.spec.superseded_by.is_none()) {
        let old = name_of(pending);
        match session.requests.supersede(&old, name).await {
            Ok(()) => terminal::talk(&format!("{old} was pending; {name} takes its place\n"))?,
            // It is gone; or it was said before, by the first of our tries or by somebody else: it ends either way.
            Err(WriteError::NotFound(_) | WriteError::Invalid(_)) => {}
            Err(error) => return Err(explain(error, Right::SAY)),
        }
    }
    Ok(())
}

fn record_name(node: &str, suffix: &str) -> String {
    let cut: String = node.chars().take(NODE_IN_NAME).collect();
    format!("{}-{suffix}", cut.trim_end_matches(['-', '.']))
}

/// `GATE=REASON`
fn waive(text: &str, by: &str) -> Result<Override, Failure> {
    let (gate, reason) = text.split_once('=').unwrap_or((text, ""));
    let id: GateId =
        gate.parse().map_err(|unknown: maint_core::api::UnknownName| Failure::usage(unknown.to_string()))?;
    if NEVER_WAIVED.contains(&id) {
        return Err(Failure::usage(format!(
            "gate {id} cannot be waived: it guards against a second node down, a lost quorum, or a person's own word\n  \
             what helps: `maint check NODE --manual` shows what it says; maint explain {id}"
        )));
    }
    if reason.trim().is_empty() {
        return Err(Failure::usage(format!("--override {id} needs a reason: --override '{id}=WHY'")));
    }
    Ok(Override { gate: id.as_str().to_owned(), reason: reason.trim().to_owned(), by: by.to_owned() })
}

fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Shows what is about to be asked for, and has the person type the node's name.
fn confirm(wish: &MaintenanceSpec, scope: &Scope, pending: &[Maintenance]) -> anyhow::Result<()> {
    terminal::talk(&question(wish, scope, pending))?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    if answer.trim() == wish.node_name {
        return Ok(());
    }
    Err(Failure::usage("that is not the name of the node: nothing was asked for").into())
}

fn question(wish: &MaintenanceSpec, scope: &Scope, pending: &[Maintenance]) -> String {
    let strategy = wish.strategy.clone().unwrap_or_else(|| scope.strategy.to_string());
    let proof = if scope.reboots { "its boot ID must change" } else { "it does not reboot" };
    let mut lines = vec![
        format!("node      {}", wish.node_name),
        format!("scope     {} ({proof})", wish.scope),
        format!("strategy  {strategy}"),
        format!("action    {}", wish.action),
    ];
    if let Some(seconds) = wish.start_timeout_seconds {
        lines.push(format!("gives up  after {} if the gates do not let it start", length(seconds)));
    }
    for waived in &wish.overrides {
        lines.push(format!("waives    {}: {}", waived.gate, waived.reason));
    }
    for record in pending {
        lines.push(format!("replaces  {}", name_and_phase(record)));
    }
    let list = lines.join("\n  ");
    format!("To be maintained:\n  {list}\nType the name of the node to go on: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_waived() {
        let rows: [(&str, Result<&str, &str>); 8] = [
            ("longhorn-volumes=backup is fresh", Ok("backup is fresh")),
            ("kubelet-reachability=a=b", Ok("a=b")),
            ("longhorn-volume=x", Err("unknown gate `longhorn-volume`, did you mean `longhorn-volumes`?")),
            ("longhorn-volumes", Err("--override longhorn-volumes needs a reason")),
            ("longhorn-volumes= ", Err("--override longhorn-volumes needs a reason")),
            ("control=x", Err("gate control cannot be waived")),
            ("exclusive=x", Err("gate exclusive cannot be waived")),
            ("control-plane=x", Err("gate control-plane cannot be waived")),
        ];
        for (text, wanted) in rows {
            match (waive(text, "anna"), wanted) {
                (Ok(waived), Ok(reason)) => {
                    assert_eq!((waived.reason.as_str(), waived.by.as_str()), (reason, "anna"), "{text}");
                }
                (Err(error), Err(wanted)) => assert!(error.text.starts_with(wanted), "{text}: {error}"),
                (got, _) => panic!("{text}: {got:?}"),
            }
        }
    }

    #[test]
    fn names_are_names_of_objects() {
        let long = "a".repeat(253);
        let rows = [("worker2", "worker2-x7k2m"), ("a.b", "a.b-x7k2m")];
        for (node, wanted) in rows {
            assert_eq!(record_name(node, "x7k2m"), wanted);
        }
        assert!(format!("maint-{}", record_name(&long, "x7k2m")).len() <= 253);
        assert_eq!(record_name(&format!("{}.{long}", "a".repeat(239)), "x"), format!("{}-x", "a".repeat(239)));
    }

    #[test]
    fn the_question_shows_what_is_asked() {
        let wish = MaintenanceSpec {
            node_name: "worker2".into(),
            scope: "reboot".into(),
            action: "pod".into(),
            start_timeout_seconds: Some(600),
            ..MaintenanceSpec::default()
        };
        let scope = Scope { name: "reboot".into(), strategy: Strategy::Drain, reboots: true };
        let old = Maintenance::new("worker2-old", MaintenanceSpec::default());
        let wanted = "\
To be maintained:
  node      worker2
  scope     reboot (its boot ID must change)
  strategy  drain
  action    pod
  gives up  after 00:10:00 if the gates do not let it start
  replaces  worker2-old (Pending)
Type the name of the node to go on: ";
        assert_eq!(question(&wish, &scope, &[old]), wanted);
    }
}
