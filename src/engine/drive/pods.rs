//! What a watch shows of the pods on a node while it is drained: asked right before each eviction, and what wakes.
//!
//! It decides nothing: which pods go is decided on fresh lists. It only keeps an eviction from being sent for a pod that
//! has changed since, since a stale one takes from a budget before its uid is looked at.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use tokio::sync::watch;

use super::nudges::Nudges;
use super::watch::{Changed, Watched, Watches, watch as watch_changes, watch_whole};
use crate::runtime::Clock;

/// Pods kept at most. A node has a few hundred at the very most; beyond this they are read one by one.
const MAX_PODS: usize = 2000;

/// What the watch shows of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// It is there, alive.
    There,
    /// It is being deleted.
    Ending,
    /// It is gone.
    Gone,
    /// The watch says nothing: it is not at work, or never showed this uid.
    Nothing,
}

/// The pods of one node, by uid.
#[derive(Clone)]
pub(super) struct Pods {
    watches: Option<Arc<dyn Watches>>,
    node: String,
    wanted: watch::Sender<bool>,
    shown: watch::Sender<BTreeMap<String, Shown>>,
}

impl Pods {
    /// Those of this node; nothing is watched before [`Self::want`].
    pub(super) fn new(watches: Option<Arc<dyn Watches>>, node: String) -> Self {
        Self { watches, node, wanted: watch::Sender::new(false), shown: watch::Sender::default() }
    }

    /// The node.
    pub(super) fn node(&self) -> &str {
        &self.node
    }

    /// Begins to watch, or ends it.
    pub(super) fn want(&self, wanted: bool) {
        self.wanted.send_if_modified(|now| std::mem::replace(now, wanted) != wanted);
    }

    /// What is shown of a pod now.
    pub(super) fn look(&self, uid: &str) -> Shown {
        self.shown.borrow().get(uid).copied().unwrap_or(Shown::Nothing)
    }

    /// Waits until a pod is shown to be ending or gone.
    pub(super) async fn leaves(&self, uid: &str) {
        let leaves = |shown: &BTreeMap<String, Shown>| matches!(shown.get(uid), Some(Shown::Ending | Shown::Gone));
        if self.shown.subscribe().wait_for(leaves).await.is_err() {
            // The sender lives in `self`: this cannot come before our own end.
            std::future::pending::<()>().await;
        }
    }

    /// Whether the watch shows the pods now.
    pub(super) fn is_watching(&self) -> bool {
        !self.shown.borrow().is_empty()
    }

    /// Watches while it is wanted. What it shows is told on: each pod that went, each budget that changed.
    pub(super) async fn keep(&self, clock: &Clock, nudges: &Nudges) -> Infallible {
        let mut wanted = self.wanted.subscribe();
        loop {
            if wanted.wait_for(|wanted| *wanted).await.is_err() {
                std::future::pending::<()>().await;
            }
            let Some(watches) = &self.watches else { return std::future::pending().await };
            let on_node = Watched::PodsOn(self.node.clone());
            let budgets = watch_changes(&**watches, clock, &Watched::Budgets, |budget| nudges.budget(&budget));
            let pods = watch_whole(&**watches, clock, &on_node, |event| self.heard(event, nudges));
            tokio::select! {
                biased;
                _ended = wanted.wait_for(|wanted| !*wanted) => {}
                () = pods => {}
                () = budgets => {}
            }
            self.heard(None, nudges);
        }
    }

    fn heard(&self, event: Option<Changed>, nudges: &Nudges) {
        self.shown.send_if_modified(|shown| {
            let Some(Changed { uid, gone: went, asked: (_, deleting), .. }) = event else {
                let some = !shown.is_empty();
                shown.clear();
                nudges.blind();
                return some;
            };
            let now = match (went, deleting) {
                (true, _) => Shown::Gone,
                (false, true) => Shown::Ending,
                (false, false) => Shown::There,
            };
            if uid.is_empty() || (shown.len() >= MAX_PODS && !shown.contains_key(&uid)) {
                return false;
            }
            if went {
                nudges.gone(&uid);
            }
            shown.insert(uid, now) != Some(now)
        });
    }
}
