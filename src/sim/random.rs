//! The one source of chance: SplitMix64, so that a seed is a night on every machine.

/// A seeded generator. Not for secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Random(u64);

impl Random {
    /// The generator of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits (SplitMix64, Steele and others 2014).
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0..bound`; 0 for the bound 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next() % bound }
    }

    /// True with a probability of `per_mille` in a thousand; nothing is drawn for 0, so that a fault which is off
    /// does not shift the others.
    pub const fn chance(&mut self, per_mille: u32) -> bool {
        per_mille > 0 && self.below(1000) < per_mille as u64
    }

    /// Letters as the API server's name generator uses them (`k8s.io/apimachinery/pkg/util/rand`).
    pub fn suffix(&mut self, length: usize) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let letter = |drawn: u64| LETTERS[usize::try_from(drawn).unwrap_or(0)];
        (0..length).map(|_| char::from(letter(self.below(LETTERS.len() as u64)))).collect()
    }

    /// A text in the form of a version 4 UUID.
    pub fn uuid(&mut self) -> String {
        let (a, b) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:x}{:03x}-{:012x}",
            a >> 32,
            (a >> 16) & 0xFFFF,
            a & 0xFFF,
            8 + (b >> 62),
            (b >> 48) & 0xFFF,
            b & 0xFFFF_FFFF_FFFF
        )
    }
}

/// FNV-1a over bytes, for hashes of traces.
#[must_use]
pub fn fnv1a(seed: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(seed, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3))
}

/// The start value of [`fnv1a`].
pub const FNV_OFFSET: u64 = 0xCBF2_9CE4_8422_2325;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_sequence() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            (random.next(), random.suffix(5), random.uuid(), random.below(0))
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        // Reference value of SplitMix64 for the seed 0.
        assert_eq!(Random::new(0).next(), 0xE220_A839_7B1D_CDAF);
    }
}
