//! A small seeded generator for jitter and names. Nothing secret comes from it.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// SplitMix64 (Steele, Lea, Flood 2014). Clones share the one sequence; [`Rng::fork`] starts an own one.
#[derive(Debug, Clone)]
pub struct Rng(Arc<AtomicU64>);

/// The odd constant of SplitMix64: 2^64 divided by the golden ratio.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Consonants and digits that cannot be mistaken for each other and form no words, as Kubernetes' own suffixes.
const SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

impl Rng {
    /// The sequence of a seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(Arc::new(AtomicU64::new(seed)))
    }

    /// A seed from the operating system, by way of the hash keys that the standard library takes from it.
    #[must_use]
    pub fn from_os() -> Self {
        Self::seeded(std::collections::hash_map::RandomState::new().build_hasher().finish())
    }

    /// An independent sequence, so that one part's draws do not shift another's.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self::seeded(self.next())
    }

    /// The next 64 bits.
    #[must_use]
    pub fn next(&self) -> u64 {
        let mut bits = self.0.fetch_add(GAMMA, Ordering::Relaxed).wrapping_add(GAMMA);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `bound`; zero for a bound of zero. The bias is below 2^-32 for all bounds that occur here.
    #[must_use]
    pub fn below(&self, bound: u64) -> u64 {
        let wide = u128::from(self.next()) * u128::from(bound);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// A duration between `base` and `base + percent` of it, so that many clients do not come at once.
    #[must_use]
    pub fn jitter(&self, base: Duration, percent: u32) -> Duration {
        let span = base.saturating_mul(percent) / 100;
        let nanoseconds = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        base.saturating_add(Duration::from_nanos(self.below(nanoseconds.saturating_add(1))))
    }

    /// A random end of an object's name.
    #[must_use]
    pub fn suffix(&self, length: usize) -> String {
        let count = SUFFIX_ALPHABET.len() as u64;
        (0..length)
            .map(|_| usize::try_from(self.below(count)).ok().and_then(|index| SUFFIX_ALPHABET.get(index)))
            .map(|letter| letter.copied().map_or('x', char::from))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_sequence() {
        // Reference values of SplitMix64 for seed 1234567.
        let rng = Rng::seeded(1_234_567);
        assert_eq!([rng.next(), rng.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
        let (one, two) = (Rng::seeded(7), Rng::seeded(7));
        let fork = one.fork();
        assert_eq!(
            one.suffix(8),
            {
                let _ = two.next();
                two.suffix(8)
            },
            "a fork takes one draw and no more"
        );
        assert_ne!(fork.next(), one.next());
    }

    #[test]
    fn draws_stay_in_range() {
        let rng = Rng::seeded(1);
        for _ in 0..1_000 {
            assert!(rng.below(6) < 6);
            let jittered = rng.jitter(Duration::from_secs(10), 20);
            assert!((10_000..=12_000).contains(&jittered.as_millis()), "{jittered:?}");
        }
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.jitter(Duration::ZERO, 50), Duration::ZERO);
        assert!(rng.suffix(40).bytes().all(|letter| SUFFIX_ALPHABET.contains(&letter)));
        let _ = Rng::from_os().next();
    }
}
