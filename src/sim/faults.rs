//! Faults on requests: by script for the k-th write of a client, or by chance from a seed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use maint_engine::runtime::Pause;
use tokio::sync::Notify;

use crate::kinds::FaultKind;
use crate::random::Random;

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The caller dies; the request never arrives.
    StopBefore,
    /// The request takes effect, then the caller dies without its answer.
    StopUnanswered,
    /// The request is answered; the caller dies at its next request, which never arrives.
    StopAnswered,
    /// The caller stands still with its request on the wire: it arrives when the caller goes on.
    Freeze,
    /// The API server answers with this code and does nothing: 409, 429, 500, 503, 504.
    Refuse(u16),
    /// The connection breaks before the request arrives.
    LoseRequest,
    /// The request takes effect, the connection breaks before the answer.
    LoseAnswer,
    /// Never answered, never done.
    HangBefore,
    /// Done, never answered.
    HangAfter,
    /// Answered this much later.
    Delay(Duration),
}

/// How likely each fault is, in a thousand requests; 0 is off. Stops are for writes only and for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Chances {
    /// 409 on a write.
    pub conflict: u32,
    /// 429 with Retry-After.
    pub throttled: u32,
    /// 500.
    pub internal: u32,
    /// 503.
    pub unavailable: u32,
    /// 504.
    pub timeout: u32,
    /// [`Fault::LoseRequest`]
    pub lose_request: u32,
    /// [`Fault::LoseAnswer`]
    pub lose_answer: u32,
    /// [`Fault::HangBefore`]
    pub hang_before: u32,
    /// [`Fault::HangAfter`]
    pub hang_after: u32,
    /// A delay of up to five seconds.
    pub delay: u32,
}

impl Chances {
    /// Each kind by a draw of its own, conflicts so many times as often as it says.
    pub fn drawn(conflicts: u32, mut often: impl FnMut() -> u32) -> Self {
        Self {
            conflict: often() * conflicts,
            throttled: often(),
            internal: often(),
            unavailable: often(),
            timeout: often(),
            lose_request: often(),
            lose_answer: often(),
            hang_before: often() / 2,
            hang_after: often() / 2,
            delay: often(),
        }
    }

    /// Only the kinds that are meant.
    #[must_use]
    pub fn only(self, is_meant: impl Fn(FaultKind) -> bool) -> Self {
        let keep = |kind, chance| if is_meant(kind) { chance } else { 0 };
        Self {
            conflict: keep(FaultKind::Conflict, self.conflict),
            throttled: keep(FaultKind::Throttled, self.throttled),
            internal: keep(FaultKind::Internal, self.internal),
            unavailable: keep(FaultKind::Unavailable, self.unavailable),
            timeout: keep(FaultKind::GatewayTimeout, self.timeout),
            lose_request: keep(FaultKind::LostRequest, self.lose_request),
            lose_answer: keep(FaultKind::LostAnswer, self.lose_answer),
            hang_before: keep(FaultKind::HangBefore, self.hang_before),
            hang_after: keep(FaultKind::HangAfter, self.hang_after),
            delay: keep(FaultKind::Delay, self.delay),
        }
    }
}

/// How likely each fault is in a thousand evictions, beside what befalls every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EvictionChances {
    /// 429 with Retry-After and without a budget's cause.
    pub throttled: u32,
    /// 504: others wrote the budget at the same time, again and again.
    pub timeout: u32,
    /// 409.
    pub conflict: u32,
    /// [`Fault::LoseAnswer`]
    pub lose_answer: u32,
    /// [`Fault::HangAfter`]
    pub hang_after: u32,
    /// [`Fault::HangBefore`]
    pub hang_before: u32,
    /// A delay of up to five seconds.
    pub delay: u32,
}

impl EvictionChances {
    /// Only the kinds that are meant.
    #[must_use]
    pub fn only(self, is_meant: impl Fn(FaultKind) -> bool) -> Self {
        let keep = |kind, chance| if is_meant(kind) { chance } else { 0 };
        Self {
            throttled: keep(FaultKind::EvictionThrottled, self.throttled),
            timeout: keep(FaultKind::EvictionTimeout, self.timeout),
            conflict: keep(FaultKind::EvictionConflict, self.conflict),
            lose_answer: keep(FaultKind::EvictionLostAnswer, self.lose_answer),
            hang_after: keep(FaultKind::EvictionHangAfter, self.hang_after),
            hang_before: keep(FaultKind::EvictionHangBefore, self.hang_before),
            delay: keep(FaultKind::EvictionDelay, self.delay),
        }
    }
}

/// The clients that are processes of the service begin with this.
const SERVICE: &str = "maint-";

/// The faults of a night.
#[derive(Debug)]
pub struct Faults {
    random: Random,
    chances: Chances,
    evictions: EvictionChances,
    clients: BTreeSet<String>,
    script: BTreeMap<(String, u64), Fault>,
    writes: BTreeMap<String, u64>,
    dying: BTreeSet<String>,
    stops: BTreeMap<String, Arc<Notify>>,
    pauses: BTreeMap<String, (Pause, Arc<Notify>)>,
    hits: BTreeMap<&'static str, u64>,
    kinds: BTreeMap<FaultKind, u64>,
}

impl Default for Faults {
    fn default() -> Self {
        Self::seeded(0, Chances::default(), &[])
    }
}

impl Faults {
    /// Faults by chance for these clients.
    #[must_use]
    pub fn seeded(seed: u64, chances: Chances, clients: &[&str]) -> Self {
        Self {
            random: Random::new(seed),
            chances,
            evictions: EvictionChances::default(),
            clients: clients.iter().map(|client| (*client).to_owned()).collect(),
            script: BTreeMap::new(),
            writes: BTreeMap::new(),
            dying: BTreeSet::new(),
            stops: BTreeMap::new(),
            pauses: BTreeMap::new(),
            hits: BTreeMap::new(),
            kinds: BTreeMap::new(),
        }
    }

    /// Puts a fault on the k-th write (from 1) of a client.
    pub fn on_write(&mut self, client: &str, k: u64, fault: Fault) {
        self.script.insert((client.to_owned(), k), fault);
    }

    /// The chances of evictions.
    pub const fn on_evictions(&mut self, chances: EvictionChances) {
        self.evictions = chances;
    }

    /// What happens to the next eviction of a client, beside what befalls every request.
    pub fn next_eviction(&mut self, client: &str) -> Option<Fault> {
        // Where there is no chance none is drawn: a night without them stays what it was.
        if self.evictions == EvictionChances::default() || !self.clients.contains(client) {
            return None;
        }
        let chances = self.evictions;
        let table = [
            (chances.throttled, Fault::Refuse(429)),
            (chances.timeout, Fault::Refuse(504)),
            (chances.conflict, Fault::Refuse(409)),
            (chances.lose_answer, Fault::LoseAnswer),
            (chances.hang_after, Fault::HangAfter),
            (chances.hang_before, Fault::HangBefore),
            (chances.delay, Fault::Delay(Duration::from_millis(1 + self.random.below(5000)))),
        ];
        let drawn = table.into_iter().find(|(per_mille, _)| self.random.chance(*per_mille))?.1;
        *self.hits.entry("on-an-eviction").or_insert(0) += 1;
        self.received(client, FaultKind::of_eviction(drawn));
        Some(self.hit(drawn))
    }

    /// Switches chance off: the time after which everything must heal.
    pub fn heal(&mut self) {
        self.chances = Chances::default();
        self.evictions = EvictionChances::default();
        self.script.clear();
    }

    /// The writes that a client has sent, those that never arrived among them.
    #[must_use]
    pub fn writes(&self, client: &str) -> u64 {
        self.writes.get(client).copied().unwrap_or(0)
    }

    /// How often each kind of fault was hit.
    #[must_use]
    pub const fn hits(&self) -> &BTreeMap<&'static str, u64> {
        &self.hits
    }

    /// How often each kind of trouble was hit, as [`FaultKind`] counts.
    #[must_use]
    pub const fn kinds(&self) -> &BTreeMap<FaultKind, u64> {
        &self.kinds
    }

    /// Counts what befell the world.
    pub fn happened(&mut self, kind: FaultKind) {
        *self.kinds.entry(kind).or_insert(0) += 1;
    }

    /// Counts an answer that a client got, if it is the service.
    pub fn received(&mut self, client: &str, kind: Option<FaultKind>) {
        if let Some(kind) = kind.filter(|_| client.starts_with(SERVICE)) {
            self.happened(kind);
        }
    }

    fn befalls(&mut self, client: &str, fault: Fault) -> Fault {
        self.received(client, FaultKind::of_request(fault));
        self.hit(fault)
    }

    /// Is notified when the client has to die. Its driver drops all its tasks then.
    pub fn stop_signal(&mut self, client: &str) -> Arc<Notify> {
        Arc::clone(self.stops.entry(client.to_owned()).or_default())
    }

    /// Tells the driver of a client that it is dead.
    pub fn stop(&mut self, client: &str) {
        self.stop_signal(client).notify_one();
    }

    /// Says how a client is made to stand still; the answer is notified when a script does so.
    pub fn freezes(&mut self, client: &str, pause: Pause) -> Arc<Notify> {
        let frozen = Arc::new(Notify::new());
        self.pauses.insert(client.to_owned(), (pause, Arc::clone(&frozen)));
        frozen
    }

    /// Makes a client stand still at once.
    pub fn freeze(&self, client: &str) {
        if let Some((pause, frozen)) = self.pauses.get(client) {
            pause.pause();
            frozen.notify_one();
        }
    }

    /// How a client is made to stand still, if it can be.
    #[must_use]
    pub fn pause_of(&self, client: &str) -> Option<Pause> {
        self.pauses.get(client).map(|(pause, _)| pause.clone())
    }

    /// What happens to the next request of a client.
    pub fn next(&mut self, client: &str, mutating: bool) -> Option<Fault> {
        if self.dying.remove(client) {
            return Some(self.befalls(client, Fault::StopBefore));
        }
        if mutating {
            let count = self.writes.entry(client.to_owned()).or_insert(0);
            *count += 1;
            let place = (client.to_owned(), *count);
            if let Some(fault) = self.script.get(&place).copied() {
                if fault == Fault::StopAnswered {
                    self.dying.insert(client.to_owned());
                }
                return Some(self.befalls(client, fault));
            }
        }
        if !self.clients.contains(client) {
            return None;
        }
        let drawn = self.draw(mutating)?;
        Some(self.befalls(client, drawn))
    }

    fn draw(&mut self, mutating: bool) -> Option<Fault> {
        let chances = self.chances;
        let table = [
            (if mutating { chances.conflict } else { 0 }, Fault::Refuse(409)),
            (chances.throttled, Fault::Refuse(429)),
            (chances.internal, Fault::Refuse(500)),
            (chances.unavailable, Fault::Refuse(503)),
            (chances.timeout, Fault::Refuse(504)),
            (chances.lose_request, Fault::LoseRequest),
            (chances.lose_answer, Fault::LoseAnswer),
            (chances.hang_before, Fault::HangBefore),
            (chances.hang_after, Fault::HangAfter),
        ];
        for (per_mille, fault) in table {
            if self.random.chance(per_mille) {
                return Some(fault);
            }
        }
        let late = self.random.chance(chances.delay);
        late.then(|| Fault::Delay(Duration::from_millis(1 + self.random.below(5000))))
    }

    fn hit(&mut self, fault: Fault) -> Fault {
        let name = match fault {
            Fault::StopBefore => "stop-before",
            Fault::StopUnanswered => "stop-unanswered",
            Fault::StopAnswered => "stop-answered",
            Fault::Freeze => "freeze",
            Fault::Refuse(409) => "refuse-409",
            Fault::Refuse(429) => "refuse-429",
            Fault::Refuse(500) => "refuse-500",
            Fault::Refuse(503) => "refuse-503",
            Fault::Refuse(504) => "refuse-504",
            Fault::Refuse(_) => "refuse-other",
            Fault::LoseRequest => "lose-request",
            Fault::LoseAnswer => "lose-answer",
            Fault::HangBefore => "hang-before",
            Fault::HangAfter => "hang-after",
            Fault::Delay(_) => "delay",
        };
        *self.hits.entry(name).or_insert(0) += 1;
        fault
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_count_writes_only() {
        let mut faults = Faults::default();
        faults.on_write("a", 2, Fault::StopUnanswered);
        faults.on_write("b", 1, Fault::StopAnswered);
        for (row, client, mutating, wanted) in [
            ("a reads", "a", false, None),
            ("a's first write", "a", true, None),
            ("a reads again", "a", false, None),
            ("a's second write", "a", true, Some(Fault::StopUnanswered)),
            ("b's first write", "b", true, Some(Fault::StopAnswered)),
            ("b dies at its next request, a read", "b", false, Some(Fault::StopBefore)),
            ("the next b is alive", "b", true, None),
        ] {
            assert_eq!(faults.next(client, mutating), wanted, "{row}");
        }
        assert_eq!((faults.writes("a"), faults.writes("b")), (2, 2));
    }

    #[test]
    fn chance_comes_from_the_seed_and_heals() {
        let draw = |seed| {
            let chances = Chances { conflict: 100, lose_answer: 100, delay: 100, ..Chances::default() };
            let mut faults = Faults::seeded(seed, chances, &["a"]);
            let drawn: Vec<_> = (0..100).map(|_| faults.next("a", true)).collect();
            faults.heal();
            assert!((0..100).all(|_| faults.next("a", true).is_none() && faults.next("world", true).is_none()));
            drawn
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!(draw(1).iter().any(Option::is_some));
    }
}
