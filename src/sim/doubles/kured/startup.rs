//! The start-up phase: whoever finds itself holding the lock has rebooted, so it believes. Then the taint helper.

use serde_json::Value;

use super::calls::{self, Call, Failure};
use super::locking::{Operation, Purpose};
use super::log::{Level, duration};
use super::settings::Range;
use super::ticker::Ticker;
use super::{AfterTaint, AfterUncordon, At, Effect, Kured, lock};

impl Kured {
    pub(super) fn begin(&mut self) {
        if let Some(why) = self.settings.refused() {
            return self.fatal(why);
        }
        if self.node.is_empty() {
            return self.fatal("KURED_NODE_ID environment variable required");
        }
        let version = self.settings.version;
        self.info(format!("Kubernetes Reboot Daemon: 1.{}.{}", version.minor, version.patch));
        self.info(format!("Node ID: {}", self.node));
        let settings = &self.settings;
        let annotation =
            format!("Lock Annotation: {}/{}:{}", settings.ds_namespace, settings.ds_name, settings.lock_annotation);
        let ttl = match settings.lock_ttl {
            ttl if ttl.is_zero() => "Lock TTL not set, lock will remain until being released".to_owned(),
            ttl => format!("Lock TTL set, lock will expire after: {}", duration(ttl)),
        };
        self.info(annotation);
        self.info(ttl);
        self.ticker = Ticker::start(self.now, self.settings.startup_period, self.fractions.startup);
        self.wait_startup();
    }

    fn wait_startup(&mut self) {
        let at = self.ticker.take(self.now);
        self.sleep(At::StartTick, at);
    }

    pub(super) fn startup_tick(&mut self) {
        self.lock_begin(Operation::Holding, Purpose::StartUp);
    }

    /// Whether it holds the lock at its start, with the entry.
    pub(super) fn startup_holding(&mut self, result: Result<Option<lock::Entry>, String>, multi_forgets: bool) {
        match result {
            Ok(Some(entry)) => {
                // The multi lock of 1.14 to 1.16.1 asks only whether it holds, so it always uncordons.
                self.unschedulable = entry.unschedulable && !multi_forgets;
                let node = self.node.clone();
                self.call(At::StartNode, Call::node(&node));
            }
            Ok(None) => self.leave_startup(),
            Err(error) if self.settings.range() == Range::Current => {
                self.log(Level::Error, format!("Error testing lock: {error}"));
                self.leave_startup();
            }
            Err(error) => self.fatal(format!("Error testing lock: {error}")),
        }
    }

    pub(super) fn startup_node(&mut self, result: Result<Value, Failure>) {
        match result {
            Err(failure) => {
                self.log(Level::Error, format!("Error retrieving node object via k8s API: {}", failure.message));
                self.wait_startup();
            }
            Ok(node) => {
                self.object = node;
                if self.unschedulable {
                    self.startup_uncordoned();
                } else {
                    self.uncordon(AfterUncordon::StartUp);
                }
            }
        }
    }

    /// Uncordons without a request where the node, as it was read, is schedulable; says so all the same.
    pub(super) fn uncordon(&mut self, then: AfterUncordon) {
        let node = self.node.clone();
        self.info(format!("Uncordoning node {node}"));
        if self.node_is_cordoned() {
            self.call(At::Uncordon(then), Call::unschedulable(&node, false));
        } else {
            self.post_labels(then);
        }
    }

    pub(super) fn uncordoned(&mut self, then: AfterUncordon, result: &Result<Value, Failure>) {
        match result {
            Err(failure) => self.fatal(format!("Error uncordonning {}: {}", self.node, failure.message)),
            Ok(_) => self.post_labels(then),
        }
    }

    fn post_labels(&mut self, then: AfterUncordon) {
        if self.settings.post_labels.is_empty() {
            return self.after_uncordon(then);
        }
        let call = Call::labels(&self.node, &self.settings.post_labels);
        self.call(At::PostLabels(then), call);
    }

    pub(super) fn post_labelled(&mut self, then: AfterUncordon, result: &Result<Value, Failure>) {
        self.labels_logged(result);
        self.after_uncordon(then);
    }

    /// A failure of labels is only logged.
    pub(super) fn labels_logged(&mut self, result: &Result<Value, Failure>) {
        if let Err(failure) = result {
            self.log(Level::Error, format!("Error updating node labels via k8s API: {}", failure.message));
        }
    }

    fn after_uncordon(&mut self, then: AfterUncordon) {
        match then {
            AfterUncordon::StartUp => self.startup_uncordoned(),
            AfterUncordon::EndTick => self.end_tick(),
        }
    }

    fn startup_uncordoned(&mut self) {
        if self.settings.annotate_nodes {
            self.look(At::StartSentinel);
        } else {
            self.startup_release();
        }
    }

    pub(super) fn startup_sentinel(&mut self, required: bool) {
        if required || calls::annotation(&self.object, calls::IN_PROGRESS).is_none() {
            return self.startup_release();
        }
        let node = self.node.clone();
        self.info(format!("Deleting node {node} annotation {}", calls::IN_PROGRESS));
        self.call(At::StartAnnotation, Call::forget_annotation(&node));
    }

    pub(super) fn startup_annotation(&mut self, result: &Result<Value, Failure>) {
        match result {
            Ok(_) => self.startup_release(),
            Err(failure) => {
                let name = calls::IN_PROGRESS;
                let text = format!("Error deleting node annotation {name} via k8s API: {}", failure.message);
                self.log(Level::Error, text);
                self.wait_startup();
            }
        }
    }

    fn startup_release(&mut self) {
        self.lock_begin(Operation::Release, Purpose::StartUp);
    }

    pub(super) fn startup_released(&mut self, result: Result<(), String>) {
        match result {
            Ok(()) => self.leave_startup(),
            Err(error) => {
                self.log(Level::Error, format!("Error releasing lock, will retry: {error}"));
                self.wait_startup();
            }
        }
    }

    /// The taint helper reads the node also where no taint is configured.
    fn leave_startup(&mut self) {
        let node = self.node.clone();
        self.call(At::TaintNew, Call::node(&node));
    }

    pub(super) fn taint_helper(&mut self, result: Result<Value, Failure>) {
        match result {
            Err(failure) => self.fatal(format!("Error reading node {}: {}", self.node, failure.message)),
            Ok(node) => {
                let taints = node.pointer("/spec/taints").and_then(Value::as_array);
                let key = self.settings.taint.as_str();
                self.tainted = taints.into_iter().flatten().any(|taint| taint["key"] == key);
                self.look(At::TaintSentinel);
            }
        }
    }

    pub(super) fn first_sentinel(&mut self, required: bool) {
        if required { self.begin_loop() } else { self.set_taint(false, AfterTaint::Loop) }
    }

    pub(super) fn begin_loop(&mut self) {
        self.ticker = Ticker::start(self.now, self.settings.period, self.fractions.first_tick);
        self.end_tick();
    }

    /// Adds or removes the taint, if one is configured and the process believes that it has to.
    pub(super) fn set_taint(&mut self, wanted: bool, then: AfterTaint) {
        if self.settings.taint.is_empty() || self.tainted == wanted {
            return self.after_taint(then);
        }
        let node = self.node.clone();
        self.call(At::TaintNode(wanted, then), Call::node(&node));
    }

    pub(super) fn taint_node(&mut self, wanted: bool, then: AfterTaint, result: Result<Value, Failure>) {
        match result {
            Err(failure) => self.fatal(format!("Error reading node {}: {}", self.node, failure.message)),
            Ok(node) => match Call::taint(&self.node, &node, &self.settings.taint, wanted) {
                Some(call) => self.call(At::TaintPatch(wanted, then), call),
                None => {
                    self.tainted = wanted;
                    self.after_taint(then);
                }
            },
        }
    }

    pub(super) fn taint_patched(&mut self, wanted: bool, then: AfterTaint, result: &Result<Value, Failure>) {
        match result {
            Err(failure) => self.fatal(format!("Error patching taint for node {}: {}", self.node, failure.message)),
            Ok(_) => {
                self.tainted = wanted;
                self.info(if wanted { "Node taint added" } else { "Node taint removed" });
                self.after_taint(then);
            }
        }
    }

    fn after_taint(&mut self, then: AfterTaint) {
        match then {
            AfterTaint::Loop => self.begin_loop(),
            AfterTaint::EndTick => self.end_tick(),
        }
    }

    pub(super) fn end_tick(&mut self) {
        let at = self.ticker.take(self.now);
        self.sleep(At::Tick, at);
    }

    pub(super) fn ask(&mut self) {
        self.awaited = self.number();
        self.at = At::Question;
        self.effects.push(Effect::Ask(self.awaited));
    }
}
