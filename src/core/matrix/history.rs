//! What changed over several sweeps: pairs that come and go, and pairs that healed.
//!
//! Right after a boot the tunnels of k3s are added, removed and added again, so one green sweep proves little
//! (rke2#7899); and there are clusters in which single cells fail now and then for months (k3s#13279). A verdict that
//! proves nothing neither breaks nor heals a pair.

use std::collections::BTreeMap;

use super::{CellVerdict, Matrix};

/// What one pair did over the sweeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Course {
    /// Sweeps in which it could be judged.
    pub judged: usize,
    /// Sweeps of those in which it was not whole.
    pub red: usize,
    /// How often it changed between whole and not whole.
    pub changes: usize,
    /// Whether it was whole when it was judged last; none if it never was.
    pub last_whole: Option<bool>,
}

impl Course {
    /// Changes of a pair between whole and not whole from which it is said to come and go. One change is a pair that
    /// broke or one that healed.
    pub const FLAPPING_CHANGES: usize = 2;

    /// It comes and goes.
    #[must_use]
    pub const fn flaps(&self) -> bool {
        self.changes >= Self::FLAPPING_CHANGES
    }

    /// It was not whole in an earlier sweep, is whole in the last, and did not come and go.
    #[must_use]
    pub fn healed(&self) -> bool {
        !self.flaps() && self.red > 0 && self.last_whole == Some(true)
    }

    fn add(&mut self, verdict: CellVerdict) {
        let whole = match verdict {
            CellVerdict::Green => true,
            CellVerdict::Broken | CellVerdict::Unhealthy | CellVerdict::ServerDown => false,
            CellVerdict::Unknown => return,
        };
        self.judged += 1;
        self.red += usize::from(!whole);
        self.changes += usize::from(self.last_whole.is_some_and(|before| before != whole));
        self.last_whole = Some(whole);
    }
}

/// What every pair did, by API server and node, over sweeps in their order.
#[must_use]
pub fn courses<'a>(sweeps: impl IntoIterator<Item = &'a Matrix>) -> BTreeMap<(&'a str, &'a str), Course> {
    let mut found: BTreeMap<(&str, &str), Course> = BTreeMap::new();
    for cell in sweeps.into_iter().flat_map(|matrix| &matrix.cells) {
        found.entry((&cell.server, &cell.node)).or_default().add(cell.verdict);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::testing::matrix;
    use super::*;

    #[test]
    fn what_a_pair_does() {
        // Signs of one pair over sweeps: judged, red, changes, flaps, healed.
        let rows = [
            (".", (1, 0, 0), false, false),
            ("...", (3, 0, 0), false, false),
            ("x", (1, 1, 0), false, false),
            (".x", (2, 1, 1), false, false),
            ("x.", (2, 1, 1), false, true),
            (".x.", (3, 1, 2), true, false),
            ("x.x", (3, 2, 2), true, false),
            ("x?x", (2, 2, 0), false, false),
            ("x?.", (2, 1, 1), false, true),
            (".u.d.", (5, 2, 4), true, false),
            ("??", (0, 0, 0), false, false),
            ("xu", (2, 2, 0), false, false),
        ];
        for (signs, numbers, flaps, healed) in rows {
            let sweeps: Vec<Matrix> = signs.chars().map(|sign| matrix(&[&sign.to_string()])).collect();
            let all = courses(&sweeps);
            let course = all[&("s1", "s1")];
            assert_eq!((course.judged, course.red, course.changes), numbers, "{signs}");
            assert_eq!((course.flaps(), course.healed()), (flaps, healed), "{signs}");
        }
    }
}
