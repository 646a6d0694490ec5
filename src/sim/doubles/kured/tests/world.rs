//! A tiny cluster for kureds: the store, a queue of what is due, and rules that play maint and the operator.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::words::{name, shorthand};
use crate::doubles::kured::answer::Answer;
use crate::doubles::kured::calls::{Call, Reply, USER_AGENT};
use crate::doubles::kured::log::Level;
use crate::doubles::kured::settings::Settings;
use crate::doubles::kured::ticker::after;
use crate::doubles::kured::{Effect, Event, Fractions, Kured, objects};
use crate::random::Random;
use crate::store::dispatch::{self, View};
use crate::store::request::{Payload, Request};
use crate::store::{ObjectKey, Store, object};

/// A round trip to the API server, and to the one who is asked.
const TRIP: Duration = Duration::from_millis(5);
/// From a reboot command to the end of the process.
const DYING: Duration = Duration::from_secs(1);
/// How long a node is down.
const DOWN: Duration = Duration::from_secs(30);
/// From the node's return to its kured, and from an exit to the next process.
const SECOND: Duration = Duration::from_secs(1);
const RESTART: Duration = Duration::from_secs(5);

/// What an operator, or maint, does once something is true.
pub type Act = Box<dyn FnOnce(&mut World)>;
type Condition = Box<dyn Fn(&World) -> bool>;

enum What {
    Tell(String, u64, Event),
    Start(String),
    Kill(String),
    Return(String),
    PodGone(ObjectKey),
    Act(Act),
}

/// A node and its kureds.
pub struct Host {
    pub settings: Settings,
    pub required: bool,
    pub reboot_fails: bool,
    pub api_down: bool,
    processes: BTreeMap<u64, Kured>,
}

/// Something that a process did.
#[derive(Debug, Clone)]
pub struct Did {
    pub at: Timestamp,
    pub node: String,
    pub life: u64,
    pub what: String,
}

pub struct World {
    pub now: Timestamp,
    pub begin: Timestamp,
    pub store: Store,
    pub hosts: BTreeMap<String, Host>,
    /// Who may go; everybody else is blocked.
    pub open: BTreeSet<String>,
    /// What is answered instead, by node.
    pub answers: BTreeMap<String, Answer>,
    pub logs: Vec<Did>,
    pub calls: Vec<Did>,
    pub starts: Vec<Did>,
    /// Every effect in order, for the death of a process at each of them.
    pub effects: Vec<Did>,
    /// The process of this life is killed instead of performing its n-th effect.
    pub die_at: Option<(u64, usize)>,
    performed: BTreeMap<u64, usize>,
    pub reboots: Vec<Did>,
    /// The lock's values, with their times.
    pub locks: Vec<(Timestamp, Option<String>)>,
    queue: BTreeMap<(Timestamp, u64), What>,
    sequence: u64,
    lives: u64,
    rules: Vec<(Condition, Act)>,
    ending: BTreeSet<ObjectKey>,
    random: Random,
}

impl World {
    /// A cluster whose nodes want a reboot; their kureds start now.
    pub fn new(seed: u64, nodes: &[&str], settings: &Settings) -> Self {
        let now: Timestamp = "2026-11-30T02:00:00Z".parse().expect("a time");
        let mut world = Self {
            now,
            begin: now,
            store: Store::new(seed, now),
            hosts: BTreeMap::new(),
            open: BTreeSet::new(),
            answers: BTreeMap::new(),
            logs: Vec::new(),
            calls: Vec::new(),
            starts: Vec::new(),
            effects: Vec::new(),
            die_at: None,
            performed: BTreeMap::new(),
            reboots: Vec::new(),
            locks: vec![(now, None)],
            queue: BTreeMap::new(),
            sequence: 0,
            lives: 0,
            rules: Vec::new(),
            ending: BTreeSet::new(),
            random: Random::new(seed),
        };
        let daemonset = objects::daemonset(objects::Form::Manifest, "kube-system", "1.23.0", &[]);
        world.store.seed(daemonset, now);
        for node in nodes {
            let address = format!("10.0.0.{}", world.hosts.len() + 1);
            let mut object = crate::world::fixture::node(node, &address, true, &world.random.uuid(), now);
            object["metadata"]["annotations"]["node.alpha.kubernetes.io/ttl"] = json!("0");
            world.store.seed(object, now);
            let host = Host {
                settings: settings.clone(),
                required: true,
                reboot_fails: false,
                api_down: false,
                processes: BTreeMap::new(),
            };
            world.hosts.insert((*node).to_owned(), host);
            world.start(node);
        }
        world
    }

    fn put(&mut self, by: Duration, what: What) {
        self.sequence += 1;
        self.queue.insert((after(self.now, by), self.sequence), what);
    }

    /// Does something after some seconds.
    pub fn later(&mut self, seconds: f64, act: impl FnOnce(&mut Self) + 'static) {
        self.put(Duration::from_secs_f64(seconds), What::Act(Box::new(act)));
    }

    /// Does something as soon as it is true, once.
    pub fn when(&mut self, condition: impl Fn(&Self) -> bool + 'static, act: impl FnOnce(&mut Self) + 'static) {
        self.rules.push((Box::new(condition), Box::new(act)));
    }

    /// One more process on a node; usually there is one.
    pub fn start(&mut self, node: &str) -> u64 {
        let settings = self.hosts[node].settings.clone();
        self.start_with(node, settings)
    }

    pub fn start_with(&mut self, node: &str, settings: Settings) -> u64 {
        self.lives += 1;
        let life = self.lives;
        let fractions = Fractions::millionths(self.random.next(), self.random.next());
        let process = Kured::new(settings, node, fractions);
        self.hosts.get_mut(node).expect("a host").processes.insert(life, process);
        let did = self.did(node, life, "start");
        self.starts.push(did);
        self.tell(node, life, Event::Start);
        life
    }

    /// Kills all processes of a node, as the container's end does; a new one starts.
    pub fn restart(&mut self, node: &str) {
        self.host(node).processes.clear();
        self.put(SECOND, What::Start(node.to_owned()));
    }

    pub fn host(&mut self, node: &str) -> &mut Host {
        self.hosts.get_mut(node).expect("a host")
    }

    fn did(&self, node: &str, life: u64, what: &str) -> Did {
        Did { at: self.now, node: node.to_owned(), life, what: what.to_owned() }
    }

    fn tell(&mut self, node: &str, life: u64, event: Event) {
        let now = self.now;
        let Some(process) = self.host(node).processes.get_mut(&life) else { return };
        for effect in process.step(now, event) {
            let count = self.performed.entry(life).or_insert(0);
            if self.die_at == Some((life, *count)) {
                return self.restart(node);
            }
            *count += 1;
            let did = self.did(node, life, &name(&effect));
            self.effects.push(did);
            self.perform(node, life, effect);
        }
    }

    fn perform(&mut self, node: &str, life: u64, effect: Effect) {
        let (owner, now) = (node.to_owned(), self.now);
        let wait = |at: Timestamp| Duration::try_from(at.duration_since(now)).unwrap_or_default();
        match effect {
            Effect::Api { id, not_before, call } => {
                self.put(wait(not_before), What::Act(Box::new(move |world| world.call(&owner, life, id, &call))));
            }
            Effect::Ask(id) => {
                let did = self.did(node, life, "ASK");
                self.calls.push(did);
                let answer = match self.answers.get(node) {
                    Some(answer) => answer.clone(),
                    None if self.open.contains(node) => Answer::go(),
                    None => Answer::no("maint: not now"),
                };
                if answer != Answer::Hang {
                    self.put(TRIP, What::Tell(owner, life, Event::Asked(id, answer)));
                }
            }
            Effect::Sentinel(id) => {
                let required = self.hosts[node].required;
                self.put(Duration::ZERO, What::Tell(owner, life, Event::Sentinel(id, required)));
            }
            Effect::Sleep(id, until) => self.put(wait(until), What::Tell(owner, life, Event::Woken(id))),
            Effect::Reboot(id) => {
                let did = self.did(node, life, "reboot");
                self.reboots.push(did);
                let fails = self.hosts[node].reboot_fails;
                let result = if fails { Err("exit status 1".to_owned()) } else { Ok(()) };
                if !fails {
                    self.put(DYING, What::Kill(owner.clone()));
                }
                self.put(Duration::ZERO, What::Tell(owner, life, Event::Rebooted(id, result)));
            }
            Effect::Log(level, text) => {
                let text = if level == Level::Fatal { format!("FATAL {text}") } else { text };
                let did = self.did(node, life, &text);
                self.logs.push(did);
            }
            Effect::Exit(_) => {
                self.host(node).processes.remove(&life);
                self.put(RESTART, What::Start(owner));
            }
        }
    }

    fn call(&mut self, node: &str, life: u64, id: u64, call: &Call) {
        if !self.hosts[node].processes.contains_key(&life) {
            return;
        }
        let did = self.did(node, life, &shorthand(call));
        self.calls.push(did);
        let reply = if self.hosts[node].api_down {
            Reply::Failed("dial tcp 10.0.0.1:6443: connect: connection refused".to_owned())
        } else {
            self.answer(call)
        };
        self.put(TRIP, What::Tell(node.to_owned(), life, Event::Api(id, reply)));
    }

    /// The API server.
    pub fn answer(&mut self, call: &Call) -> Reply {
        let mut request = Request::new(call.method, &call.path, &call.query);
        call.content_type.clone_into(&mut request.content_type);
        USER_AGENT.clone_into(&mut request.user_agent);
        request.body = call.body.as_ref().map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let view = View { now: self.now, cached_at: None, read_at: None };
        let answer = dispatch::answer(&mut self.store, &request, &view);
        let body = match answer.payload {
            Payload::Json(bytes) => serde_json::from_slice(&bytes).expect("JSON"),
            _ => Value::Null,
        };
        Reply::Answer { code: answer.code, body }
    }

    /// Lets so many seconds pass.
    pub fn run(&mut self, seconds: u64) {
        self.run_until(seconds, |_| false);
    }

    /// Lets time pass until something is true; answers whether it became so.
    pub fn run_until(&mut self, seconds: u64, wanted: impl Fn(&Self) -> bool) -> bool {
        let end = after(self.now, Duration::from_secs(seconds));
        loop {
            self.settle();
            if wanted(self) {
                return true;
            }
            let Some(entry) = self.queue.first_entry() else { break };
            if entry.key().0 > end {
                break;
            }
            self.now = self.now.max(entry.key().0);
            match entry.remove() {
                What::Tell(node, life, event) => self.tell(&node, life, event),
                What::Start(node) => drop(self.start(&node)),
                What::Kill(node) => {
                    self.host(&node).processes.clear();
                    self.put(DOWN, What::Return(node));
                }
                What::Return(node) => {
                    let boot = self.random.uuid();
                    self.store.edit(&ObjectKey::node(&node), |node| node["status"]["nodeInfo"]["bootID"] = json!(boot));
                    self.host(&node).required = false;
                    self.put(SECOND, What::Start(node));
                }
                What::PodGone(key) => drop(self.store.remove(&key)),
                What::Act(act) => act(self),
            }
        }
        self.now = end;
        false
    }

    /// The lock is written down, evicted pods will end, and rules fire.
    fn settle(&mut self) {
        let lock = self.lock();
        if self.locks.last().map(|(_, value)| value) != Some(&lock) {
            self.locks.push((self.now, lock));
        }
        let ending: Vec<ObjectKey> = self
            .store
            .all("", "pods")
            .filter(|pod| object::is_deleting(pod))
            .map(|pod| ObjectKey::pod(object::namespace(pod), object::name(pod)))
            .filter(|key| !self.ending.contains(key))
            .collect();
        for key in ending {
            self.ending.insert(key.clone());
            self.put(Duration::from_secs(2), What::PodGone(key));
        }
        while let Some(index) = self.rules.iter().position(|(condition, _)| condition(self)) {
            let (_, act) = self.rules.remove(index);
            act(self);
        }
    }
}
