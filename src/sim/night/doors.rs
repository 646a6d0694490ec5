//! Where kured asks: a Service before the replicas.
//!
//! A question goes to any of them, as a Service without a look at who is there would do it: one that is dead refuses,
//! one that stands still accepts and answers when it goes on, or never.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use maint_engine::request::Requests;
use maint_engine::runtime::Env;
use maint_engine::serve::{ApiQuestions, Fetch, Questions};

use super::shell::{ShellCalls, ShellReader};
use super::{REPLICAS, Stage};
use crate::clock::sleep;
use crate::doubles::kured::answer::Answer;
use crate::doubles::shell::kured::Question;
use crate::faults::Fault;
use crate::kinds::FaultKind;
use crate::random::Random;
use crate::store::http::Cluster;
use crate::store::object;

/// No address of a kured.
const STRANGER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 42, 7, 7));

/// kured's metrics cannot be had: its annotation and its address are what makes a question believed.
pub struct Nowhere;

impl Fetch for Nowhere {
    async fn get(&self, _: &str) -> Result<(u16, Vec<u8>), String> {
        Err("connection refused".to_owned())
    }
}

/// What stands between kured and the replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The question arrives this much later.
    Slow(Duration),
    /// Accepted, and no answer ever comes; when it is over the connection breaks.
    Hang,
    /// A proxy that answers by itself, a name that is not resolved, a path that is cut.
    Is(Answer),
}

/// What answers in one process.
struct Process {
    questions: Arc<Questions<ApiQuestions<ShellReader, ShellCalls>, Nowhere>>,
    env: Env,
}

struct State {
    random: Random,
    processes: BTreeMap<&'static str, Process>,
    asked: BTreeMap<&'static str, u64>,
    trouble: Option<Trouble>,
    armed: BTreeMap<String, Fault>,
}

/// The Service.
#[derive(Clone)]
pub struct Doors {
    cluster: Arc<Cluster>,
    state: Arc<Mutex<State>>,
}

impl Doors {
    /// Nobody is there yet.
    #[must_use]
    pub fn new(cluster: Arc<Cluster>, seed: u64) -> Self {
        let random = Random::new(seed ^ 0x0d00_5555);
        let state =
            State { random, processes: BTreeMap::new(), asked: BTreeMap::new(), trouble: None, armed: BTreeMap::new() };
        Self { cluster, state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often each way of answering was met: answered, refused, closed.
    #[must_use]
    pub fn met(&self) -> BTreeMap<&'static str, u64> {
        self.state().asked.clone()
    }

    fn count(&self, what: &'static str) {
        *self.state().asked.entry(what).or_default() += 1;
    }

    /// Puts something between kured and the replicas, or takes it away.
    pub fn trouble(&self, trouble: Option<Trouble>) {
        self.state().trouble = trouble;
    }

    /// The next write of a node's kured after it hears `go` meets this: it is the lock.
    pub fn on_go(&self, node: &str, fault: Fault) {
        self.state().armed.insert(node.to_owned(), fault);
    }

    /// Nothing stands between any more, and nothing is armed.
    pub fn heal(&self) {
        let mut state = self.state();
        state.trouble = None;
        state.armed.clear();
    }

    /// Somebody else asks as if he were kured; what he hears is lost.
    pub async fn stranger(&self, node: &str) {
        drop(self.through(node, Some(STRANGER)).await);
    }

    async fn through(&self, node: &str, address: Option<IpAddr>) -> Answer {
        let node = node.to_owned();
        let running = {
            let mut state = self.state();
            let chosen = usize::try_from(state.random.below(REPLICAS.len() as u64)).unwrap_or(0);
            let Some(process) = REPLICAS.get(chosen).and_then(|name| state.processes.get(name)) else {
                *state.asked.entry("refused").or_default() += 1;
                return Answer::Refused;
            };
            let questions = Arc::clone(&process.questions);
            // A task of the process: it stands still and dies with it.
            process.env.tasks.spawn(async move { questions.answer(&node, address).await })
        };
        match running.await {
            Ok(Some(reply)) => {
                self.count("answered");
                Answer::http(reply.status, &reply.body)
            }
            Ok(None) | Err(_) => {
                self.count("closed");
                Answer::Closed
            }
        }
    }

    /// Waits as long as a trouble lasts.
    async fn while_it_is(&self, trouble: &Trouble) {
        while self.state().trouble.as_ref() == Some(trouble) {
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// A replica's process answers from now on.
    pub(super) fn open(&self, stage: &Stage, name: &'static str, order: Vec<usize>, env: &Env) {
        let (clock, namespace) = (env.clock.clone(), stage.settings.namespace.clone());
        // A rotation of its own, as the service has it.
        let reader = stage.reader(name, order.clone(), &clock);
        let calls = stage.calls(name, order, &clock);
        let requests = Requests::through(calls, clock.clone(), namespace.clone());
        let port = ApiQuestions::new(reader, requests, clock, namespace);
        let questions = Questions::new(port, Nowhere, Arc::clone(&stage.settings), env.clone());
        self.state().processes.insert(name, Process { questions, env: env.clone() });
    }

    /// It does not any more.
    pub(super) fn close(&self, name: &str) {
        self.state().processes.remove(name);
    }

    /// The address that a question of kured on a node comes from: its pod's, which a CNI without masquerading keeps.
    fn address(&self, node: &str) -> Option<IpAddr> {
        let inner = self.cluster.lock();
        let pod = inner.store.all("", "pods").find(|pod| {
            object::text(pod, "/spec/nodeName") == node
                && object::text(pod, "/metadata/ownerReferences/0/name") == "kured"
        })?;
        object::text(pod, "/status/podIP").parse().ok()
    }
}

impl Question for Doors {
    async fn ask(&self, node: &str) -> Answer {
        let trouble = self.state().trouble.clone();
        match trouble {
            None => {}
            Some(Trouble::Slow(late)) => {
                self.cluster.lock().happened(FaultKind::NoAnswer);
                sleep(late).await;
            }
            Some(hang @ Trouble::Hang) => {
                self.cluster.lock().happened(FaultKind::NoAnswer);
                self.while_it_is(&hang).await;
                self.count("hung");
                return Answer::Closed;
            }
            Some(Trouble::Is(answer)) => {
                self.cluster.lock().happened(FaultKind::NoAnswer);
                self.count("troubled");
                return answer;
            }
        }
        let answer = self.through(node, self.address(node)).await;
        if answer == Answer::go() {
            self.count("go");
            let armed = self.state().armed.remove(node);
            if let Some(fault) = armed {
                let client = format!("kured-{node}");
                let mut inner = self.cluster.lock();
                inner.happened(FaultKind::LockWrite);
                let faults = &mut inner.faults;
                let next = faults.writes(&client) + 1;
                faults.on_write(&client, next, fault);
            }
        }
        answer
    }
}
