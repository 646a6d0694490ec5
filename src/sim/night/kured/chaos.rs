//! Chance over a night with kured: its flags, its lock, its process, its question, the replicas, API servers, and people.
//! A seed draws which kinds of trouble there are at all, and when each comes. Then everything heals, and people take back
//! what they did.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::SignedDuration;

use super::cluster;
use super::mischief::{self, Mischief};
use super::{NODES, Scene, Setup, begin};
use crate::clock::sleep;
use crate::doubles::kured::settings::Settings as Flags;
use crate::faults::Chances;
use crate::kinds::FaultKind;
use crate::night::Plan;
use crate::random::Random;

/// What a seed draws.
pub struct Chaos {
    /// kured's flags.
    pub flags: Flags,
    /// What the lock says before the night begins.
    pub lock: Option<&'static str>,
    /// The kinds of trouble.
    pub kinds: Vec<Mischief>,
    /// Whether somebody tidies kured's lock in the end.
    pub tidies: bool,
    /// Seed, faults of requests, and how long chance reigns.
    pub plan: Plan,
}

impl Chaos {
    /// The night of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9) ^ 0x00c0_ffee);
        let mut one_of = |count: usize| usize::try_from(random.below(count as u64)).unwrap_or(0);
        let mut flags = cluster::flags();
        let seconds = Duration::from_secs;
        // One in ten has a period that is too long for a hand-over: it never begins, and says so.
        flags.period = [20, 30, 45, 60, 60, 60, 60, 75, 75, 300].map(seconds)[one_of(10)];
        flags.drain_delay = [0, 0, 0, 10].map(seconds)[one_of(4)];
        flags.concurrency = [1, 1, 1, 2][one_of(4)];
        flags.lock_ttl = [0, 0, 0, 0, 90, 1800].map(seconds)[one_of(6)];
        flags.annotate_nodes = one_of(5) > 0;
        let lock = mischief::lock_before(one_of(12));
        // About a third of all kinds.
        let kinds: Vec<Mischief> = mischief::ALL.iter().copied().filter(|_| one_of(3) == 0).collect();
        let tidies = one_of(2) == 0;
        let chances = Chances::drawn(4, || [0, 0, 1, 3, 8][one_of(5)]);
        let chaos = Duration::from_secs(120 + random.below(900));
        Self { flags, lock, kinds, tidies, plan: Plan { seed, chances, chaos, havoc: true, ..Plan::default() } }
    }

    /// The kinds of trouble that the night can have.
    #[must_use]
    pub fn faults(&self) -> BTreeSet<FaultKind> {
        let mut found: BTreeSet<FaultKind> = self.kinds.iter().map(|one| one.kind()).collect();
        found.extend(self.lock.map(|_| FaultKind::LockBefore));
        let chances = self.plan.chances;
        found.extend(FaultKind::ALL.iter().filter(|kind| chances.only(|one| one == **kind) != Chances::default()));
        found
    }

    /// The same night with these kinds of trouble alone.
    #[must_use]
    pub fn only(mut self, kinds: &BTreeSet<FaultKind>) -> Self {
        self.kinds.retain(|one| kinds.contains(&one.kind()));
        self.lock = self.lock.filter(|_| kinds.contains(&FaultKind::LockBefore));
        self.plan.chances = self.plan.chances.only(|kind| kinds.contains(&kind));
        self
    }

    /// What the night begins with.
    #[must_use]
    pub fn setup(&self) -> Setup<'_> {
        Setup {
            flags: self.flags.clone(),
            settings: cluster::settings(),
            begin: begin(),
            prepare: Box::new(|inner, _| {
                if let Some(text) = self.lock {
                    cluster::hold_lock(inner, text);
                }
            }),
            seats: None,
            wants: &NODES,
        }
    }

    /// Reigns as long as the plan says, heals, and waits until the night is at rest.
    pub(super) async fn play(&self, scene: &Scene) {
        let mut random = Random::new(self.plan.seed ^ 0x5eed_cafe);
        let clock = scene.stage.cluster.clock();
        if self.lock.is_some() {
            scene.stage.cluster.lock().faults.happened(FaultKind::LockBefore);
        }
        let end = clock.now() + SignedDuration::try_from(self.plan.chaos).unwrap_or_default();
        while clock.now() < end {
            sleep(Duration::from_secs(5 + random.below(60))).await;
            if let Some(kind) = pick(&self.kinds, &mut random) {
                mischief::act(scene, kind, &mut random).await;
            }
        }
        mischief::heal(scene, self.tidies).await;
        while !scene.is_at_rest() {
            sleep(super::LOOK).await;
        }
    }
}

fn pick(kinds: &[Mischief], random: &mut Random) -> Option<Mischief> {
    let index = usize::try_from(random.below(kinds.len() as u64)).ok()?;
    kinds.get(index).copied()
}
