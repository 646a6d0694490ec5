//! The loop: window, sentinel, node, blockers, lock, drain, reboot, in the order of the release.

use serde_json::Value;

use super::answer::{Answer, Verdict, judge};
use super::calls::{self, Call, Failure};
use super::locking::{Operation, Purpose};
use super::log::{Level, duration};
use super::settings::Range;
use super::ticker::after;
use super::{AfterTaint, AfterUncordon, At, Effect, Kured, lock, log};

impl Kured {
    pub(super) fn tick(&mut self) {
        if self.settings.window.contains(self.now) {
            self.look(At::TickSentinel);
        } else {
            // Nothing is said outside the window.
            self.set_taint(false, AfterTaint::EndTick);
        }
    }

    pub(super) fn tick_sentinel(&mut self, required: bool) {
        if !required {
            self.info("Reboot not required");
            self.set_taint(false, AfterTaint::EndTick);
        } else if self.settings.range() == Range::BlockersFirst {
            self.ask_blockers();
        } else {
            self.read_node();
        }
    }

    fn read_node(&mut self) {
        let node = self.node.clone();
        self.call(At::TickNode, Call::node(&node));
    }

    pub(super) fn tick_node(&mut self, result: Result<Value, Failure>) {
        let node = match result {
            Err(failure) => {
                return self.fatal(format!("Error retrieving node object via k8s API: {}", failure.message));
            }
            Ok(node) => node,
        };
        let annotated = calls::annotation(&node, calls::IN_PROGRESS).is_some();
        self.object = node;
        self.unschedulable = self.node_is_cordoned();
        if self.settings.annotate_nodes && !annotated {
            let node = self.node.clone();
            self.call(At::AnnotateNode, Call::node(&node));
        } else {
            self.after_annotations();
        }
    }

    pub(super) fn annotate_node(&mut self, result: Result<Value, Failure>) {
        match result {
            Err(failure) => {
                self.log(Level::Error, format!("Error retrieving node object via k8s API: {}", failure.message));
                self.end_tick();
            }
            Ok(object) => {
                let (node, now) = (self.node.clone(), self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
                for name in [calls::IN_PROGRESS, calls::MOST_RECENT] {
                    self.info(format!("Adding node {node} annotation: {name}={now}"));
                }
                self.call(At::AnnotatePatch, Call::annotate(&node, object, &now));
            }
        }
    }

    pub(super) fn annotated(&mut self, result: &Result<Value, Failure>) {
        match result {
            Ok(_) => self.after_annotations(),
            Err(failure) => {
                self.log(Level::Error, format!("Error adding node annotations via k8s API: {}", failure.message));
                self.end_tick();
            }
        }
    }

    fn after_annotations(&mut self) {
        match self.settings.range() {
            Range::BlockersFirst | Range::LockFirst => self.take_lock(),
            Range::FatalLock | Range::Current => self.ask_blockers(),
        }
    }

    fn ask_blockers(&mut self) {
        if self.settings.prometheus_url.is_some() { self.ask() } else { self.ask_pods(0) }
    }

    pub(super) fn on_answer(&mut self, answer: &Answer) {
        let url = self.settings.prometheus_url.as_deref().unwrap_or_default();
        match judge(answer, url, &self.settings.alerts) {
            Verdict::Go => self.ask_pods(0),
            Verdict::Blocked(text) => self.blocked(text),
            Verdict::Stuck => {}
        }
    }

    fn ask_pods(&mut self, index: usize) {
        match self.settings.pod_selectors.get(index) {
            None => self.unblocked(),
            Some(selector) => {
                let call = Call::blocking_pods(&self.node, selector);
                self.call(At::Selector(index), call);
            }
        }
    }

    pub(super) fn on_pods(&mut self, index: usize, result: Result<Value, Failure>) {
        let list = match result {
            Err(failure) => return self.blocked(format!("Reboot blocked: pod query error: {}", failure.message)),
            Ok(list) => list,
        };
        let items = list.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let name = |pod: &Value| pod.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned);
        let mut names: Vec<String> = items.iter().filter_map(name).collect();
        if names.is_empty() {
            return self.ask_pods(index + 1);
        }
        if list.pointer("/metadata/continue").and_then(Value::as_str).is_some_and(|token| !token.is_empty()) {
            names.push("...".to_owned());
        }
        self.blocked(format!("Reboot blocked: matching pods: [{}]", names.join(" ")));
    }

    /// The tick is over: no taint; the lock is kept where this release had taken it already.
    fn blocked(&mut self, text: String) {
        self.log(Level::Warning, text);
        self.end_tick();
    }

    fn unblocked(&mut self) {
        match self.settings.range() {
            Range::BlockersFirst => self.read_node(),
            Range::LockFirst => self.prepare_drain(),
            Range::FatalLock | Range::Current => self.take_lock(),
        }
    }

    fn take_lock(&mut self) {
        self.info("Reboot required");
        self.lock_begin(Operation::Holding, Purpose::Tick);
    }

    pub(super) fn tick_holding(&mut self, result: Result<Option<lock::Entry>, String>) {
        match result {
            Ok(Some(_)) => self.locked(),
            Ok(None) => self.lock_begin(Operation::Acquire, Purpose::Tick),
            Err(error) if self.settings.range() == Range::Current => {
                self.log(Level::Error, format!("Error testing lock: {error}"));
                self.lock_begin(Operation::Acquire, Purpose::Tick);
            }
            Err(error) => self.fatal(format!("Error testing lock: {error}")),
        }
    }

    /// None: acquired; a name: somebody else has it.
    pub(super) fn tick_acquired(&mut self, result: Result<Option<String>, String>) {
        let holder = match result {
            Ok(None) => return self.locked(),
            Ok(Some(holder)) => holder,
            Err(error) if self.settings.range() == Range::Current => {
                self.log(Level::Error, format!("Error acquiring lock: {error}"));
                String::new()
            }
            Err(error) => return self.fatal(format!("Error acquiring lock: {error}")),
        };
        self.log(Level::Warning, format!("Lock already held: {holder}"));
        self.set_taint(true, AfterTaint::EndTick);
    }

    fn locked(&mut self) {
        if self.settings.range() == Range::LockFirst { self.ask_blockers() } else { self.prepare_drain() }
    }

    fn prepare_drain(&mut self) {
        if self.settings.pre_labels.is_empty() {
            return self.delay_drain();
        }
        let call = Call::labels(&self.node, &self.settings.pre_labels);
        self.call(At::PreLabels, call);
    }

    pub(super) fn pre_labelled(&mut self, result: &Result<Value, Failure>) {
        self.labels_logged(result);
        self.delay_drain();
    }

    fn delay_drain(&mut self) {
        let delay = self.settings.drain_delay;
        if delay.is_zero() {
            return self.begin_drain();
        }
        self.info(format!("Delaying drain for {}", duration(delay)));
        self.sleep(At::DrainDelay, after(self.now, delay));
    }

    pub(super) fn begin_drain(&mut self) {
        let node = self.node.clone();
        self.info(format!("Draining node {node}"));
        if self.node_is_cordoned() {
            // kubectl writes nothing where the node, as it was read, is cordoned already.
            return self.evict_pods();
        }
        self.remember_cordon(true);
        self.call(At::Cordon, Call::unschedulable(&node, true));
    }

    pub(super) fn cordoned(&mut self, result: Result<Value, Failure>) {
        match result {
            Ok(_) => self.evict_pods(),
            Err(failure) => {
                self.log(Level::Error, format!("Error cordonning {}: {}", self.node, failure.message));
                self.drained(Err(failure.message));
            }
        }
    }

    pub(super) fn drained(&mut self, result: Result<(), String>) {
        match result {
            Err(error) if !self.settings.force_reboot => {
                let what = "will release lock and retry cordon and drain before rebooting when lock is next acquired";
                self.log(Level::Error, format!("Unable to cordon or drain {}: {error}, {what}", self.node));
                self.lock_begin(Operation::Release, Purpose::FailedDrain);
            }
            _ => {
                let delay = self.settings.reboot_delay;
                if delay.is_zero() {
                    return self.reboot();
                }
                self.info(format!("Delaying reboot for {}", duration(delay)));
                self.sleep(At::RebootDelay, after(self.now, delay));
            }
        }
    }

    /// The lock first, then the uncordon, whatever the metadata says and whether or not the release went well.
    pub(super) fn failed_drain_released(&mut self, result: Result<(), String>) {
        if let Err(error) = result {
            self.log(Level::Error, format!("Error releasing lock: {error}"));
        }
        self.info("Performing a best-effort uncordon after failed cordon and drain");
        // What the helper remembers is the cordon, so this always writes.
        self.remember_cordon(true);
        self.uncordon(AfterUncordon::EndTick);
    }

    pub(super) fn reboot(&mut self) {
        self.info(format!("Triggering reboot for node {}", self.node));
        self.awaited = self.number();
        self.at = At::Reboot;
        self.effects.push(Effect::Reboot(self.awaited));
    }

    pub(super) fn on_rebooted(&mut self, result: Result<(), String>) {
        match result {
            Err(error) => self.fatal(format!("Unable to reboot node: {error}")),
            Ok(()) => self.wait_for_reboot(),
        }
    }

    pub(super) fn wait_for_reboot(&mut self) {
        self.log(log::Level::Info, "Waiting for reboot");
        self.sleep(At::Rebooting, after(self.now, std::time::Duration::from_secs(60)));
    }
}
