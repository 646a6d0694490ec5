//! kured asks before it reboots, and every replica answers: within a second, whatever else is slow or away.
//!
//! A no may come from memory, a go only from a look at the cluster in the same request; what is not ready in time is a
//! no. A question changes nothing by itself: what is written because of it (a wish, a note in a record) is written
//! beside the answer, through the port of requests, which needs no lease and can touch no node.

mod memory;
mod port;
mod routes;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use maint_core::api::QuestionSource;
use maint_core::api::record::Maintenance;
use maint_core::config::Settings;
use maint_core::facts::{Node, Observation, Pod};
use maint_core::kured::alerts::{Alerts, reboot_required};
use maint_core::kured::answer::{Answer, Reply};
use maint_core::kured::question::{self, Question};
use maint_core::kured::{filters_alerts, wish};
use maint_core::planted::{self, Bug};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::runtime::Env;

pub use crate::client::{Fetch, HttpFetch};
pub use port::{ApiQuestions, QuestionPort, Records, View};
pub use routes::{Peer, routes};

use memory::{Admission, Memory};

/// How long an answer may take. kured's client has no limit of its own, so that a late answer stops its ticks.
pub const BUDGET: Duration = Duration::from_millis(800);
/// Part of it that a Prometheus behind us may take.
const ALERTS_LIMIT: Duration = Duration::from_millis(500);
/// How long kured's own metrics may take; they are asked beside the answer.
const METRICS_LIMIT: Duration = Duration::from_millis(300);
/// How long what is written because of a question may take.
const NOTE_LIMIT: Duration = Duration::from_secs(10);
/// Looks at the cluster at a time.
const LOOKS: usize = 32;
/// Notes on their way at a time.
const NOTES: usize = 8;
/// Default of kured's `--metrics-port`.
const METRICS_PORT: u16 = 8080;
/// Longest name of a node: a DNS subdomain.
const NAME_LIMIT: usize = 253;

/// Answers questions of kured.
pub struct Questions<P, F> {
    port: P,
    fetch: F,
    settings: Arc<Settings>,
    env: Env,
    memory: Mutex<Memory>,
    looks: Semaphore,
    notes: Arc<Semaphore>,
    /// A kured may drop alerts by name; so until the contrary was read.
    filtered: AtomicBool,
}

impl<P: QuestionPort, F: Fetch> Questions<P, F> {
    /// One for this process.
    #[must_use]
    pub fn new(port: P, fetch: F, settings: Arc<Settings>, env: Env) -> Arc<Self> {
        Arc::new(Self {
            port,
            fetch,
            settings,
            env,
            memory: Mutex::default(),
            looks: Semaphore::new(LOOKS),
            notes: Arc::new(Semaphore::new(NOTES)),
            filtered: AtomicBool::new(true),
        })
    }

    /// Answers a question for a node that came from this address, within [`BUDGET`].
    pub async fn answer(self: &Arc<Self>, node: &str, from: Option<IpAddr>) -> Reply {
        let answer = self.judge(node, from).await;
        answer.reply(self.filtered.load(Ordering::Relaxed), self.env.clock.now())
    }

    /// What each node was answered last, for people.
    #[must_use]
    pub fn shown(&self) -> Value {
        self.memory().shown()
    }

    async fn judge(self: &Arc<Self>, node: &str, from: Option<IpAddr>) -> Answer {
        if !is_name(node) {
            return Answer::trouble("the path names no node: is it /kured/$(KURED_NODE_ID)?");
        }
        // Where a proxy stands between, its address is all that is known: a header could say anything.
        let address = from.map(|address| address.to_canonical().to_string());
        let Ok(_permit) = self.looks.try_acquire() else {
            return Answer::no(format!("too many questions at once to look at {node}"));
        };
        let begun = self.env.clock.instant();
        if let Admission::Remembered(answer) = self.memory().admit(node, address.as_deref(), begun) {
            return answer;
        }
        // Boxed, since the future of four lists at once is large.
        let looked = self.env.clock.timeout(BUDGET, Box::pin(self.look(node))).await;
        let at = (self.env.clock.now(), begun);
        let Ok((answer, view)) = looked else {
            let answer = Answer::no(format!("the API server did not answer in time for {node}"));
            self.memory().keep(node, &answer, None, at);
            return answer;
        };
        let existing = question::node_of(&view.facts, node).ok().map(|found| found.is_some());
        self.memory().keep(node, &answer, existing, at);
        if answer == Answer::Go {
            tracing::info!(node, address, "kured may reboot");
        } else {
            tracing::debug!(node, address, answer = answer.word(), "kured was refused");
        }
        self.note(node.to_owned(), address, answer.clone(), view);
        answer
    }

    /// Looks at the cluster, and for a go at the Prometheus behind us too.
    async fn look(&self, node: &str) -> (Answer, View) {
        let view = self.port.view(node).await;
        if matches!(view.facts.daemon_sets, Observation::Known { .. }) {
            self.filtered.store(filters_alerts(&view.facts), Ordering::Relaxed);
        }
        let records = match &view.records {
            Ok(records) => records,
            Err(why) => return (Answer::trouble(why), view),
        };
        let judge = || {
            question::answer(&Question {
                node,
                facts: &view.facts,
                records,
                settings: &self.settings,
                mode: self.settings.mode.as_str(),
                now: self.env.clock.now(),
            })
        };
        let mut answer = judge();
        if answer == Answer::Go {
            let alerts = self.alerts().await;
            // The grant may have ended meanwhile.
            answer = question::after_alerts(judge(), &alerts);
        }
        (answer, view)
    }

    /// Asked for each go and never before: nothing of it is kept.
    async fn alerts(&self) -> Alerts {
        let base = self.settings.kured.prometheus.trim_end_matches('/');
        if base.is_empty() {
            return Alerts::NotConfigured;
        }
        let url = format!("{base}/api/v1/query?query=ALERTS");
        match self.env.clock.timeout(ALERTS_LIMIT, self.fetch.get(&url)).await {
            Ok(Ok((status, body))) => Alerts::read(status, &body, &self.settings.kured),
            Ok(Err(why)) => Alerts::Failed(format!("Prometheus could not be asked: {why}")),
            Err(late) => Alerts::Failed(format!("Prometheus could not be asked: {late}")),
        }
    }

    /// Writes what comes of a question beside the answer. Where too many are on their way it is left to the next one.
    fn note(self: &Arc<Self>, node: String, address: Option<String>, answer: Answer, view: View) {
        let Ok(permit) = Arc::clone(&self.notes).try_acquire_owned() else { return };
        if !self.memory().begin_note(&node) {
            return;
        }
        let this = Arc::clone(self);
        let clock = self.env.clock.clone();
        drop(self.env.tasks.spawn(async move {
            let _permit = permit;
            let written = this.write(&node, address.as_deref(), &answer, view);
            match clock.timeout(NOTE_LIMIT, written).await {
                Ok(Ok(())) => {}
                Ok(Err(why)) => tracing::info!(node, why, "did not note kured's question"),
                Err(late) => tracing::info!(node, why = %late, "did not note kured's question"),
            }
            this.memory().end_note(&node);
        }));
    }

    async fn write(&self, node: &str, address: Option<&str>, answer: &Answer, view: View) -> Result<(), String> {
        let View { mut facts, records } = view;
        let records = records?;
        let now = self.env.clock.now();
        let is_planned = question::active(&records).next().is_some();
        let listening: Vec<&Maintenance> = question::listening(&records).collect();
        let news = |source| listening.iter().any(|record| wish::asked(record, answer, source, now).is_some());
        if is_planned && !news(QuestionSource::Kured) && !news(QuestionSource::Elsewhere) {
            return Ok(());
        }
        facts.target_pods = self.port.pods(node).await;
        let Ok(Some(target)) = question::node_of(&facts, node) else { return Ok(()) };
        let pods = wish::kured_pods(&facts)?;
        let source = wish::source_of(address, target, &pods);
        let addresses = pods.iter().flat_map(|pod| pod.ips.iter().cloned()).collect();
        self.memory().know(node, addresses, source);
        for record in &listening {
            if let Some(asked) = wish::asked(record, answer, source, now) {
                self.port.asked(record, &asked).await.map_err(|error| error.to_string())?;
            }
        }
        if !is_planned && !planted::is(Bug::ForgetsWishes) && self.is_believed(target, &pods, source).await {
            self.wish(target, &records, now).await?;
        }
        Ok(())
    }

    async fn is_believed(&self, node: &Node, pods: &[&Pod], source: QuestionSource) -> bool {
        if wish::is_believed(node, pods, source, None) {
            return true;
        }
        // Only where it can still change the verdict.
        wish::is_believed(node, pods, source, Some(true))
            && wish::is_believed(node, pods, source, self.required(&node.metadata.name, pods).await)
    }

    async fn wish(&self, node: &Node, records: &[Maintenance], now: jiff::Timestamp) -> Result<(), String> {
        let Some(record) = wish::of_kured(node, records, now) else { return Ok(()) };
        let created = self.port.wish(&record).await.map_err(|error| error.to_string())?;
        if created {
            let name = record.metadata.name.as_deref().unwrap_or_default();
            tracing::info!(node = node.metadata.name, record = name, "Wished, since kured asks");
        }
        Ok(())
    }

    /// kured's own metric, from the first of its pods that is Ready.
    async fn required(&self, node: &str, pods: &[&Pod]) -> Option<bool> {
        let pod = pods.iter().find(|pod| pod.is_ready())?;
        let address: IpAddr = pod.ips.first()?.parse().ok()?;
        let url = format!("http://{}/metrics", std::net::SocketAddr::new(address, METRICS_PORT));
        match self.env.clock.timeout(METRICS_LIMIT, self.fetch.get(&url)).await {
            Ok(Ok((200, body))) => reboot_required(&String::from_utf8_lossy(&body), node),
            _ => None,
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A DNS subdomain (RFC 1123), which is what the API server takes for a node's name. What comes from a URL goes into
/// selectors, so nothing else gets through.
fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let label = |label: &str| {
        let bytes = label.as_bytes();
        let ends = bytes.first().zip(bytes.last()).is_some_and(|(first, last)| plain(*first) && plain(*last));
        ends && bytes.iter().all(|byte| plain(*byte) || *byte == b'-')
    };
    text.len() <= NAME_LIMIT && text.split('.').all(label)
}

/// Path under which kured asks; what follows the node is Prometheus' own.
const PATH: &str = "/kured/{node}/api/v1/query";
