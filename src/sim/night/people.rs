//! People and programs: all that they do goes through the port that the command line uses.

use std::time::Duration;

use maint_core::api::Trigger;
use maint_core::api::record::{Maintenance, MaintenanceSpec, Word};
use maint_core::plan;
use maint_engine::execute::WriteError;
use maint_engine::request::{Field, Requests};
use maint_engine::runtime::Clock;
use serde_json::json;

use super::shell::ShellCalls;
use super::{RECORD, Stage, TARGET};
use crate::clock::sleep;

/// Somebody with the operator's rights.
pub struct Person<'a> {
    stage: &'a Stage,
    requests: Requests<ShellCalls>,
    name: &'static str,
}

impl<'a> Person<'a> {
    /// A person, or a program.
    #[must_use]
    pub fn new(stage: &'a Stage, name: &'static str) -> Self {
        let clock = Clock::simulated(stage.cluster.clock().now());
        let calls = stage.calls(name, vec![2, 1, 0], &clock);
        let requests = Requests::through(calls, clock, stage.settings.namespace.clone());
        Self { stage, requests, name }
    }

    fn word(&self) -> Word {
        let at = plan::stamp(self.stage.cluster.clock().now());
        Word { by: self.name.to_owned(), at, ..Word::default() }
    }

    /// Makes the record.
    pub async fn asks(&self, scope: &str, action: &str, command_waits: bool) {
        self.makes((RECORD, TARGET), Trigger::Manual, scope, action, command_waits).await;
    }

    /// Asks for another node's reboot by a pod.
    pub async fn asks_for(&self, record: &str, node: &str) {
        self.makes((record, node), Trigger::Manual, "reboot", "pod", false).await;
    }

    /// Makes the record as something unattended does.
    pub async fn wishes(&self, scope: &str, action: &str) {
        self.makes((RECORD, TARGET), Trigger::Unattended, scope, action, false).await;
    }

    async fn makes(
        &self,
        (name, node): (&str, &str),
        trigger: Trigger,
        scope: &str,
        action: &str,
        command_waits: bool,
    ) {
        let spec = MaintenanceSpec {
            node_name: node.to_owned(),
            scope: scope.to_owned(),
            action: action.to_owned(),
            trigger: trigger.as_str().to_owned(),
            requested_by: self.name.to_owned(),
            reason: "a new kernel".to_owned(),
            command_waits,
            start_timeout_seconds: Some(3600),
            ..MaintenanceSpec::default()
        };
        self.creates(&Maintenance::new(name, spec)).await;
    }

    /// Creates a record; one of that name is as good.
    pub(crate) async fn creates(&self, record: &Maintenance) {
        loop {
            match self.requests.create(record).await {
                Ok(_) | Err(WriteError::Conflict(_)) => return,
                Err(_) => sleep(Duration::from_secs(1)).await,
            }
        }
    }

    /// Says a word in the record, until it is heard.
    pub async fn says(&self, field: Field) {
        let word = self.word();
        while self.requests.say(RECORD, field, &word, None).await.is_err() {
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// Halts everything, or ends the halt.
    pub async fn halts(&self, on: bool) {
        let since = plan::stamp(self.stage.cluster.clock().now());
        let halt = json!({"by": self.name, "reason": "wait", "since": since});
        while self.requests.halt(on.then_some(&halt)).await.is_err() {
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// Holds the node, or releases it.
    pub async fn holds(&self, on: bool) {
        let since = plan::stamp(self.stage.cluster.clock().now());
        let hold = json!({"by": self.name, "reason": "mine", "since": since});
        while self.requests.hold(TARGET, on.then_some(&hold)).await.is_err() {
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// Waits for a valid go, claims the command by compare-and-swap, and says whether it was ours to run.
    pub async fn claims(&self) -> bool {
        loop {
            sleep(Duration::from_millis(700)).await;
            let Some(record) = self.stage.record() else { return false };
            if plan::phase_of(&record).is_terminal() {
                return false;
            }
            let now = self.stage.cluster.clock().now();
            let valid = record
                .status
                .as_ref()
                .and_then(|status| status.intent.as_ref())
                .is_some_and(|intent| plan::parse_time(Some(&intent.valid_until)).is_some_and(|until| now < until));
            if !valid || record.spec.claimed.is_some() {
                continue;
            }
            let version = record.metadata.resource_version.as_deref();
            // Where somebody wrote in between, it looks again.
            if self.requests.say(RECORD, Field::Claimed, &self.word(), version).await.is_ok() {
                return true;
            }
        }
    }

    /// The node goes down and comes back.
    pub fn reboots(&self) {
        let down = super::cluster::pace().reboot;
        self.stage.with(|world, inner, now| world.reboot(inner, TARGET, down, now));
    }
}
