//! Who used the processors: the cluster's programs, maint and the bench itself share them.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};

/// /proc counts in ticks of 10 ms (`getconf CLK_TCK`, 100 on all that we run on).
const TICKS: f64 = 100.0;
/// The bench itself, with its kubelets.
const OWN: &str = "bench and its kubelets";
/// What it has started and waited for, as kubectl.
const ENDED: &str = "programs that have ended";

/// Seconds of processor time, by program.
#[derive(Clone, Debug, Default)]
pub struct Spent(BTreeMap<String, f64>);

impl Spent {
    /// What this process and those that it started have used so far.
    pub fn now() -> Result<Self> {
        let own = std::process::id();
        let mut spent = BTreeMap::new();
        for entry in fs::read_dir("/proc")? {
            let Ok(id) = entry?.file_name().to_string_lossy().parse::<u32>() else { continue };
            // It may have ended meanwhile.
            let Ok(stat) = Stat::of(id) else { continue };
            if id == own {
                spent.insert(OWN.to_owned(), stat.own);
                spent.insert(ENDED.to_owned(), stat.ended);
            } else if stat.parent == own {
                *spent.entry(stat.name).or_default() += stat.own;
            }
        }
        Ok(Self(spent))
    }

    /// What was used since an earlier look.
    pub fn since(&self, earlier: &Self) -> Self {
        let used = |(name, now): (&String, &f64)| {
            (name.clone(), (now - earlier.0.get(name).copied().unwrap_or_default()).max(0.0))
        };
        Self(self.0.iter().map(used).collect())
    }

    /// In words, most first; what used nothing is left out.
    pub fn text(&self) -> String {
        let mut all: Vec<_> = self.0.iter().filter(|(_, seconds)| **seconds >= 1.0 / TICKS).collect();
        all.sort_by(|one, other| other.1.total_cmp(one.1));
        let total: f64 = all.iter().map(|(_, seconds)| **seconds).sum();
        let each: Vec<_> = all.iter().map(|(name, seconds)| format!("{name} {seconds:.2}")).collect();
        format!("{total:.2} s ({})", each.join(", "))
    }
}

/// Seconds of one process so far, all threads.
pub fn of_process(id: u32) -> Result<f64> {
    Ok(Stat::of(id)?.own)
}

/// What /proc/ID/stat says (proc(5)).
struct Stat {
    name: String,
    parent: u32,
    own: f64,
    ended: f64,
}

impl Stat {
    fn of(id: u32) -> Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
        // The name in brackets may hold spaces, so fields are counted from its end: the first after it is field 3.
        let (head, rest) = stat.rsplit_once(')').context("no name")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).copied().context("too short");
        let ticks = |number: usize| -> Result<f64> { Ok(field(number)?.parse::<f64>()? / TICKS) };
        Ok(Self {
            name: head.split_once('(').context("no name")?.1.to_owned(),
            parent: field(4)?.parse()?,
            own: ticks(14)? + ticks(15)?,
            ended: ticks(16)? + ticks(17)?,
        })
    }
}
