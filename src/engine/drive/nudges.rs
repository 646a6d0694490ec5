//! When another look at a drain is worth its requests.
//!
//! The last step says what the drain waits for ([`Awaits`]); watches and answers say what happened. They decide
//! nothing: whatever they say, pods and budgets are read anew before anything is chosen. What they miss costs time
//! until the next look, never a wrong decision.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use maint_core::drain::{Answer, Awaits};
use tokio::sync::Notify;

use super::watch::Changed;

/// Pods and budgets that are kept at most of those that changed during one turn; beyond this all of them did.
const MAX_SINCE: usize = 2000;

/// How much of the world is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// All that the step may ask.
    Whole,
    /// What decides who goes next, where the rest was seen a few seconds ago.
    Again,
}

/// What a drain waits for, and what came of it; a handle.
#[derive(Clone, Default)]
pub(super) struct Nudges(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    nudged: Notify,
}

#[derive(Default)]
struct State {
    awaits: Option<Awaits>,
    /// Only a whole look is worth it.
    whole: bool,
    /// Pods that went, and budgets that opened, since the present turn began.
    gone: BTreeSet<String>,
    opened: BTreeSet<String>,
    /// What is known of the spec of each budget.
    budgets: BTreeMap<String, (i64, bool)>,
}

impl Nudges {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn nudge(&self) {
        self.0.nudged.notify_one();
    }

    /// A turn begins: what happened until now is in what it reads.
    pub(super) fn begin(&self) {
        let mut state = self.lock();
        state.whole = false;
        state.gone.clear();
        state.opened.clear();
        drop(state);
        // The permit of a nudge is taken.
        let _nudged = self.0.nudged.notified().now_or_never();
    }

    /// A turn ends: what is waited for from now on. What happened since it began may not be in what it read.
    pub(super) fn wait_for(&self, awaits: Option<&Awaits>) {
        let (gone, opened) = {
            let mut state = self.lock();
            state.awaits = awaits.cloned();
            (std::mem::take(&mut state.gone), std::mem::take(&mut state.opened))
        };
        for uid in gone {
            self.gone(&uid);
        }
        if opened.iter().any(|name| self.lock().waits_for(name)) {
            self.nudge();
        }
    }

    /// Waits for something that is worth a look.
    pub(super) async fn nudged(&self) -> Look {
        self.0.nudged.notified().await;
        if self.lock().whole { Look::Whole } else { Look::Again }
    }

    /// A pod of the node is gone.
    pub(super) fn gone(&self, uid: &str) {
        let mut locked = self.lock();
        let state = &mut *locked;
        if state.gone.len() < MAX_SINCE {
            state.gone.insert(uid.to_owned());
        }
        let Some(awaits) = &mut state.awaits else { return };
        let expected = awaits.leaving.remove(uid);
        let before = awaits.groups.len();
        awaits.groups.retain_mut(|group| {
            group.remove(uid);
            !group.is_empty()
        });
        let drained = awaits.nobody_else && awaits.leaving.is_empty();
        state.whole |= drained;
        if drained || !expected || awaits.groups.len() < before {
            self.nudge();
        }
    }

    /// A budget changed.
    pub(super) fn budget(&self, changed: &Changed) {
        let Changed { name, gone, asked, allows, .. } = changed;
        let mut state = self.lock();
        let known = if *gone { state.budgets.remove(name) } else { state.budgets.insert(name.clone(), *asked) };
        let other = known.is_some_and(|known| known != *asked);
        // What was spent, or cannot be spent yet, lets nobody go.
        if !(*gone || *allows || other) {
            return;
        }
        if state.opened.len() < MAX_SINCE {
            state.opened.insert(name.clone());
        }
        if state.waits_for(name) {
            self.nudge();
        }
    }

    /// The API answered to an eviction, or it was not sent; `idle`: no other is on its way or will be sent.
    pub(super) fn answered(&self, uid: &str, answer: Option<&Answer>, idle: bool) {
        match answer {
            Some(Answer::Accepted) => {}
            Some(Answer::Gone) => self.gone(uid),
            _ => return self.nudge(),
        }
        if idle && self.lock().awaits.as_ref().is_some_and(|awaits| awaits.more) {
            self.nudge();
        }
    }

    /// The watch on the node's pods ended: who went meanwhile is not told.
    pub(super) fn blind(&self) {
        if self.lock().awaits.is_some() {
            self.nudge();
        }
    }
}

impl State {
    fn waits_for(&self, budget: &str) -> bool {
        self.awaits.as_ref().is_some_and(|awaits| awaits.any_budget || awaits.budgets.contains(budget))
    }
}

#[cfg(test)]
mod tests {
    use super::super::watch::NodeState;
    use super::*;

    /// A change of a budget: whether it is gone, its generation, whether it allows a disruption.
    fn budget(name: &str, gone: bool, generation: i64, allows: bool) -> Changed {
        let (name, uid) = (name.to_owned(), String::new());
        Changed {
            name,
            uid,
            gone,
            asked: (generation, false),
            allows,
            annotations: BTreeMap::new(),
            node: NodeState::default(),
        }
    }

    fn uids(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn nudged(nudges: &Nudges) -> Option<Look> {
        nudges.nudged().now_or_never()
    }

    #[test]
    fn the_last_pod_of_a_group_is_worth_a_look_and_the_last_of_all_a_whole_one() {
        let all = Awaits { leaving: uids(&["a", "b"]), nobody_else: true, ..Awaits::default() };
        let wave = Awaits { leaving: uids(&["a", "b", "c"]), groups: vec![uids(&["a", "b"])], ..Awaits::default() };
        let again = Some(Look::Again);
        let rows: [(&str, &Awaits, &[(&str, Option<Look>)]); 4] = [
            ("all", &all, &[("a", None), ("b", Some(Look::Whole))]),
            ("a wave", &wave, &[("c", None), ("a", None), ("b", again)]),
            ("one that was not to go", &wave, &[("x", again), ("a", None)]),
            ("told twice", &all, &[("a", None), ("a", again)]),
        ];
        for (row, awaits, went) in rows {
            let nudges = Nudges::default();
            nudges.begin();
            nudges.wait_for(Some(awaits));
            for (uid, wanted) in went {
                nudges.gone(uid);
                assert_eq!(nudged(&nudges), *wanted, "{row}: {uid}");
            }
        }
    }

    #[test]
    fn a_budget_is_worth_a_look_when_it_opens_and_somebody_waits_for_it() {
        let waits = Awaits { budgets: uids(&["shop/web"]), ..Awaits::default() };
        let any = Awaits { any_budget: true, ..Awaits::default() };
        let rows = [
            ("it allows one", &waits, budget("shop/web", false, 1, true), true),
            ("it allows none", &waits, budget("shop/web", false, 1, false), false),
            ("it was changed", &waits, budget("shop/web", false, 2, false), true),
            ("it is gone", &waits, budget("shop/web", true, 1, false), true),
            ("another one", &waits, budget("shop/api", false, 1, true), false),
            ("any", &any, budget("shop/api", false, 1, true), true),
        ];
        for (row, awaits, change, wanted) in rows {
            let nudges = Nudges::default();
            nudges.budget(&budget("shop/web", false, 1, false));
            nudges.begin();
            nudges.wait_for(Some(awaits));
            nudges.budget(&change);
            assert_eq!(nudged(&nudges), wanted.then_some(Look::Again), "{row}");
        }
    }

    /// What happens while a turn reads may come too late for its lists, and too early for what it waits for.
    #[test]
    fn what_happens_during_a_turn_is_not_lost_and_before_it_is_old() {
        let awaits = Awaits {
            budgets: uids(&["shop/web"]),
            leaving: uids(&["a"]),
            groups: vec![uids(&["a"])],
            ..Awaits::default()
        };
        let happens: [(&str, fn(&Nudges)); 2] = [
            ("a pod goes", |nudges| nudges.gone("a")),
            ("a budget opens", |nudges| nudges.budget(&budget("shop/web", false, 1, true))),
        ];
        for (row, happens) in happens {
            let nudges = Nudges::default();
            nudges.begin();
            happens(&nudges);
            nudges.wait_for(Some(&awaits));
            assert_eq!(nudged(&nudges), Some(Look::Again), "{row} during it");
            let nudges = Nudges::default();
            nudges.wait_for(Some(&awaits));
            happens(&nudges);
            nudges.begin();
            nudges.wait_for(Some(&awaits));
            assert_eq!(nudged(&nudges), None, "{row} before it");
            let nudges = Nudges::default();
            nudges.begin();
            nudges.wait_for(None);
            happens(&nudges);
            assert_eq!(nudged(&nudges), None, "{row} while nothing is drained");
        }
    }

    #[test]
    fn an_answer_is_worth_a_look_unless_all_is_well() {
        let more = Awaits { more: true, ..Awaits::default() };
        let refused = Answer::RefusedByBudget { budget: None, message: "no".to_owned(), retry_after_seconds: None };
        let rows = [
            ("accepted", &Awaits::default(), Some(Answer::Accepted), true, false),
            ("accepted, and more are to be asked", &more, Some(Answer::Accepted), true, true),
            ("accepted, and others are on their way", &more, Some(Answer::Accepted), false, false),
            ("refused", &Awaits::default(), Some(refused), false, true),
            ("not sent", &Awaits::default(), None, false, true),
        ];
        for (row, awaits, answer, idle, wanted) in rows {
            let nudges = Nudges::default();
            nudges.wait_for(Some(awaits));
            nudges.answered("a", answer.as_ref(), idle);
            assert_eq!(nudged(&nudges), wanted.then_some(Look::Again), "{row}");
        }
    }
}
