//! What a seed is: a family, a scenario, and a random part of all kinds of trouble. How bad each would be is drawn whether
//! it is there or not, so that a night without one of them is else the same night.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::faults::{Chances, EvictionChances};
use crate::kinds::{Family, FaultKind};
use crate::night::kured::Chaos;
use crate::night::troubles::{Trouble, distinct};
use crate::night::{Plan, SCENARIOS, Scenario, acts};
use crate::random::Random;

/// Of a hundred nights, those that are plain, and those whose drain is hard; kured has the rest, since its nights are
/// hours long.
const SHARES: (u64, u64) = (52, 30);
/// A kind is there in so many of a thousand nights that can have it.
const SWARM: u32 = 330;
/// Kinds that end a run at its deadline are there less often: they hide what comes later in a run.
const SWARM_ENDLESS: u32 = 60;
/// Scenarios whose drain can be made hard; the first ones more often.
const DRAINED: &[&str] = &["drain", "drain", "drain", "back-out", "cancelled", "halted", "command", "on-hold"];

/// The night of a seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawn {
    /// The seed.
    pub seed: u64,
    /// Which nights it is one of.
    pub family: Family,
    /// The name of its scenario; that of its family where it has none.
    pub scenario: &'static str,
    /// The kinds of trouble that it can have.
    pub kinds: BTreeSet<FaultKind>,
}

impl Drawn {
    /// The night of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9) ^ 0x0051_3a11);
        let share = random.below(100);
        let mut name_of = |names: &[&'static str]| {
            names.get(usize::try_from(random.below(names.len() as u64)).unwrap_or(0)).copied().unwrap_or_default()
        };
        let (family, scenario) = if share < SHARES.0 {
            (Family::Plain, name_of(&SCENARIOS.iter().map(|scenario| scenario.name).collect::<Vec<_>>()))
        } else if share < SHARES.0 + SHARES.1 {
            (Family::Drains, name_of(DRAINED))
        } else {
            (Family::Kured, Family::Kured.name())
        };
        let kinds = match family {
            Family::Kured => Chaos::of(seed).faults(),
            _ => swarm(family, &mut random),
        };
        Self { seed, family, scenario, kinds }
    }

    /// The same night without a kind of trouble.
    #[must_use]
    pub fn without(&self, kind: FaultKind) -> Self {
        let mut other = self.clone();
        other.kinds.remove(&kind);
        other
    }

    /// What is played, where no kured is.
    #[must_use]
    pub(super) fn plan(&self) -> Option<(&'static Scenario, Plan)> {
        let scenario = Scenario::named(self.scenario)?;
        let mut random = Random::new(self.seed.wrapping_mul(0x9e37_79b9) ^ 0x00f0_91a5);
        let has = |kind| self.kinds.contains(&kind);
        let mut often = |list: &[u32]| {
            list.get(usize::try_from(random.below(list.len() as u64)).unwrap_or(0)).copied().unwrap_or(0)
        };
        let chances = Chances::drawn(4, || often(&[1, 3, 8, 20])).only(has);
        // A night has a handful of evictions.
        let all = &[20, 60, 150, 400];
        let evictions = EvictionChances {
            throttled: often(all),
            timeout: often(all),
            conflict: often(all),
            lose_answer: often(all),
            hang_after: often(all),
            hang_before: often(&all[..3]),
            delay: often(all),
        }
        .only(has);
        let all = Trouble::all(&mut random).into_iter().filter(|trouble| has(trouble.kind()));
        let troubles = distinct(all.collect());
        let acts = acts::ALL.iter().copied().filter(|kind| has(*kind)).collect();
        let chaos = Duration::from_secs(60 + random.below(180));
        Some((scenario, Plan { seed: self.seed, chances, evictions, troubles, acts, chaos, ..Plan::default() }))
    }

    /// What is played with kured.
    #[must_use]
    pub(super) fn chaos(&self) -> Chaos {
        Chaos::of(self.seed).only(&self.kinds)
    }
}

/// A part of the kinds that a family can have.
fn swarm(family: Family, random: &mut Random) -> BTreeSet<FaultKind> {
    let mut kinds = BTreeSet::new();
    for kind in FaultKind::ALL.iter().filter(|kind| kind.families().contains(&family)) {
        let often = if kind.is_endless() { SWARM_ENDLESS } else { SWARM };
        if random.chance(often) {
            kinds.insert(*kind);
        }
    }
    kinds
}
