//! kured's drain: that of kubectl's library, with force, emptyDir data and all DaemonSets.
//!
//! List, one look at the DaemonSet of each pod that has one, then all evictions at once; each pod is looked at every
//! second until it is gone. A refused eviction is tried again until the time is over.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde_json::Value;

use super::calls::{Call, Failure};
use super::log::{Level, duration};
use super::ticker::after;
use super::{At, Effect, Event, Kured};

/// Between two looks at a pod that was evicted.
const POLL: Duration = Duration::from_secs(1);

/// A drain.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Drain {
    /// The number of the sleep until `--drain-timeout` is over; 0 without one.
    timeout: u64,
    /// Pods of DaemonSets that are to be looked at.
    owners: VecDeque<(Pod, Value)>,
    /// Pods that have to go.
    pods: Vec<Pod>,
    /// What is under way, by number.
    waits: BTreeMap<u64, Wait>,
    errors: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Pod {
    namespace: String,
    name: String,
    uid: String,
    done: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    List,
    Owner,
    Support,
    /// An eviction of the n-th pod.
    Evict(usize),
    /// The pause before the next one.
    Again(usize),
    /// A look at the n-th pod.
    Look(usize),
    /// The pause before the next one.
    Poll(usize),
}

impl Kured {
    pub(super) fn evict_pods(&mut self) {
        let mut drain = Drain::default();
        let call = Call::pods(&self.node, &self.settings.drain_pod_selector);
        let id = self.send(call);
        drain.waits.insert(id, Wait::List);
        let limit = self.settings.drain_timeout;
        if !limit.is_zero() {
            drain.timeout = self.number();
            self.effects.push(Effect::Sleep(drain.timeout, after(self.now, limit)));
        }
        self.at = At::Drain(Box::new(drain));
    }

    pub(super) fn on_drain(&mut self, mut drain: Drain, event: Event) {
        match event {
            Event::Woken(id) if id == drain.timeout => return self.out_of_time(drain),
            Event::Woken(id) => match drain.waits.remove(&id) {
                Some(Wait::Again(index)) => self.evict(&mut drain, index),
                Some(Wait::Poll(index)) => self.look_at(&mut drain, index),
                _ => {}
            },
            Event::Api(id, reply) => {
                let result = reply.result();
                match (drain.waits.remove(&id), result) {
                    (Some(Wait::List), Ok(list)) => return self.listed(drain, list),
                    (Some(Wait::Owner), result) => return self.owner(drain, result),
                    (Some(Wait::Support), Ok(_)) => (0..drain.pods.len()).for_each(|n| self.evict(&mut drain, n)),
                    (Some(Wait::List | Wait::Support), Err(failure)) => return self.end_drain(Err(failure.message)),
                    (Some(Wait::Evict(index)), result) => self.evicted(&mut drain, index, result),
                    (Some(Wait::Look(index)), result) => self.looked(&mut drain, index, result),
                    _ => {}
                }
            }
            _ => {}
        }
        self.go_on(drain);
    }

    /// Goes on waiting, or ends: also after an error all other pods are waited for.
    fn go_on(&mut self, drain: Drain) {
        if drain.waits.is_empty() && drain.owners.is_empty() {
            let result = if drain.errors.is_empty() { Ok(()) } else { Err(together(&drain.errors)) };
            return self.end_drain(result);
        }
        self.at = At::Drain(Box::new(drain));
    }

    fn end_drain(&mut self, result: Result<(), String>) {
        if let Err(error) = &result {
            self.log(Level::Error, format!("Error draining {}: {error}", self.node));
        }
        self.drained(result);
    }

    fn listed(&mut self, mut drain: Drain, list: Value) {
        let items = list.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
        for item in items {
            let text = |pointer: &str| item.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            let pod = Pod {
                namespace: text("/metadata/namespace"),
                name: text("/metadata/name"),
                uid: text("/metadata/uid"),
                done: false,
            };
            let finished = matches!(text("/status/phase").as_str(), "Succeeded" | "Failed");
            let owners = item.pointer("/metadata/ownerReferences").and_then(Value::as_array);
            let controller = owners.into_iter().flatten().find(|owner| owner["controller"] == true).cloned();
            match controller {
                Some(owner) if owner["kind"] == "DaemonSet" && !finished => drain.owners.push_back((pod, owner)),
                _ if item.pointer("/metadata/annotations/kubernetes.io~1config.mirror").is_some() => {}
                _ => drain.pods.push(pod),
            }
        }
        self.next_owner(drain);
    }

    fn next_owner(&mut self, mut drain: Drain) {
        if let Some((pod, owner)) = drain.owners.front() {
            let call = Call::daemonset(&pod.namespace, owner["name"].as_str().unwrap_or_default());
            let id = self.send(call);
            drain.waits.insert(id, Wait::Owner);
        } else if !drain.pods.is_empty() {
            let id = self.send(Call::eviction_support());
            drain.waits.insert(id, Wait::Support);
        }
        self.go_on(drain);
    }

    fn owner(&mut self, mut drain: Drain, result: Result<Value, Failure>) {
        let Some((pod, _)) = drain.owners.pop_front() else { return self.go_on(drain) };
        match result {
            Ok(_) => {}
            // With force the pod of a DaemonSet that is gone goes too.
            Err(failure) if failure.code == 404 => drain.pods.push(pod),
            Err(failure) => return self.end_drain(Err(failure.message)),
        }
        self.next_owner(drain);
    }

    fn evict(&mut self, drain: &mut Drain, index: usize) {
        let Some(pod) = drain.pods.get(index) else { return };
        let call = Call::evict(&pod.namespace, &pod.name, self.settings.drain_grace);
        let id = self.send(call);
        drain.waits.insert(id, Wait::Evict(index));
    }

    fn evicted(&mut self, drain: &mut Drain, index: usize, result: Result<Value, Failure>) {
        let Some(pod) = drain.pods.get(index) else { return };
        let name = format!("pods/{:?} -n {:?}", pod.name, pod.namespace);
        match result {
            Ok(_) => self.look_at(drain, index),
            Err(failure) if failure.code == 404 => drain.finish(index, None),
            Err(failure) if failure.code == 429 => {
                let pause = self.settings.eviction_retry();
                let text =
                    format!("error when evicting {name} (will retry after {}): {}", duration(pause), failure.message);
                self.log(Level::Error, text);
                let id = self.number();
                self.effects.push(Effect::Sleep(id, after(self.now, pause)));
                drain.waits.insert(id, Wait::Again(index));
            }
            Err(failure) => {
                drain.finish(index, Some(format!("error when evicting {name}: {}", failure.message)));
            }
        }
    }

    fn look_at(&mut self, drain: &mut Drain, index: usize) {
        let Some(pod) = drain.pods.get(index) else { return };
        let call = Call::pod(&pod.namespace, &pod.name);
        let id = self.send(call);
        drain.waits.insert(id, Wait::Look(index));
    }

    fn looked(&mut self, drain: &mut Drain, index: usize, result: Result<Value, Failure>) {
        let Some(pod) = drain.pods.get(index) else { return };
        match result {
            Err(failure) if failure.code == 404 => drain.finish(index, None),
            Err(failure) => {
                let name = format!("error when waiting for pod {:?} in namespace {:?}", pod.name, pod.namespace);
                drain.finish(index, Some(format!("{name} to terminate: {}", failure.message)));
            }
            // Another one of that name is as good as gone.
            Ok(found) if found.pointer("/metadata/uid").and_then(Value::as_str) != Some(&*pod.uid) => {
                drain.finish(index, None);
            }
            Ok(_) => {
                let id = self.number();
                self.effects.push(Effect::Sleep(id, after(self.now, POLL)));
                drain.waits.insert(id, Wait::Poll(index));
            }
        }
    }

    fn out_of_time(&mut self, mut drain: Drain) {
        let limit = duration(self.settings.drain_timeout);
        let late: Vec<String> = drain
            .pods
            .iter()
            .filter(|pod| !pod.done)
            .map(|pod| {
                format!(
                    "error when evicting pods/{:?} -n {:?}: global timeout reached: {limit}",
                    pod.name, pod.namespace
                )
            })
            .collect();
        drain.errors.extend(late);
        if drain.errors.is_empty() {
            drain.errors.push(format!("global timeout reached: {limit}"));
        }
        self.end_drain(Err(together(&drain.errors)));
    }
}

impl Drain {
    fn finish(&mut self, index: usize, error: Option<String>) {
        if let Some(pod) = self.pods.get_mut(index) {
            pod.done = true;
        }
        self.errors.extend(error);
    }
}

/// Several errors as Kubernetes' aggregate prints them.
fn together(errors: &[String]) -> String {
    match errors {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}
