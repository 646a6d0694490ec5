//! What is varied: pods, the time that each needs to end, budgets.

use std::collections::BTreeMap;

/// Pods that one budget holds.
const KEPT: usize = 20;
/// Lanes with a budget of their own each.
const TEN: usize = 10;

/// Which budgets hold the pods. Each allows one disruption at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budgets {
    None,
    /// One over 20 of the pods.
    One,
    /// All pods, in ten equal parts.
    Ten,
}

/// Pods of one ReplicaSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    pub name: String,
    pub replicas: usize,
    /// A budget with its name allows one disruption at a time.
    pub budget: bool,
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    pub pods: usize,
    /// Seconds that a pod needs to end, as figures name them.
    pub seconds: &'static str,
    pub budgets: Budgets,
    /// How often each side drains.
    pub rounds: usize,
}

impl Cell {
    /// The cell that every commit measures.
    pub const fn of_every_commit() -> Self {
        Self { pods: 110, seconds: "2", budgets: Budgets::None, rounds: 1 }
    }

    /// The whole table. The pods whose figures have a target are drained three times.
    pub fn table() -> Vec<Self> {
        let mut cells = vec![];
        for budgets in [Budgets::None, Budgets::One, Budgets::Ten] {
            for (seconds, rounds) in [("0.2", 1), ("2", 3), ("30", 1)] {
                cells.extend([30, 110, 250].map(|pods| Self { pods, seconds, budgets, rounds }));
            }
        }
        cells
    }

    /// The name in figures and filters, such as `110x2.one_budget`.
    pub fn name(&self) -> String {
        let budgets = match self.budgets {
            Budgets::None => "",
            Budgets::One => ".one_budget",
            Budgets::Ten => ".ten_budgets",
        };
        format!("{}x{}{budgets}", self.pods, self.seconds)
    }

    /// A namespace of its own: that of the cell before may still be on its way out.
    pub fn namespace(&self) -> String {
        format!("bench-{}", self.name().replace(['.', '_'], "-"))
    }

    /// Its ReplicaSets.
    pub fn lanes(&self) -> Vec<Lane> {
        let lane = |name: String, replicas, budget| Lane { name, replicas, budget };
        match self.budgets {
            Budgets::None => vec![lane("free".to_string(), self.pods, false)],
            Budgets::One => {
                vec![lane("free".to_string(), self.pods - KEPT, false), lane("kept".to_string(), KEPT, true)]
            }
            Budgets::Ten => (0..TEN).map(|i| lane(format!("kept-{i}"), self.pods / TEN, true)).collect(),
        }
    }

    /// How many of each lane may go at a time.
    pub fn at_once(&self) -> BTreeMap<String, Option<usize>> {
        self.lanes().into_iter().map(|lane| (lane.name, lane.budget.then_some(1))).collect()
    }

    /// What a drain of this cell is to reach.
    pub fn targets(&self) -> Targets {
        let compared = self.pods == 110 && self.seconds == "2" && self.budgets == Budgets::None;
        let pods = u32::try_from(self.pods).unwrap_or(u32::MAX);
        Targets {
            faster: compared.then_some(9.0),
            limit: (compared || self.budgets != Budgets::None).then_some(1.3),
            requests: (self.budgets == Budgets::None).then_some(f64::from(pods) * 1.2 + 20.0),
        }
    }
}

/// Targets of a cell; `None` where nothing was said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Targets {
    /// At least so many times faster than kubectl.
    pub faster: Option<f64>,
    /// At most so many times the limit.
    pub limit: Option<f64>,
    /// At most so many requests while it drains.
    pub requests: Option<f64>,
}

impl Targets {
    /// What was not reached, in words.
    pub fn missed(&self, faster: f64, limit: f64, requests: f64) -> Vec<String> {
        let mut missed = vec![];
        if let Some(wanted) = self.faster.filter(|wanted| faster < *wanted) {
            missed.push(format!("{faster:.1} times faster than kubectl, wanted at least {wanted:.1}"));
        }
        if let Some(wanted) = self.limit.filter(|wanted| limit > *wanted) {
            missed.push(format!("{limit:.2} times the limit, wanted at most {wanted:.1}"));
        }
        if let Some(wanted) = self.requests.filter(|wanted| requests > *wanted) {
            missed.push(format!("{requests:.0} requests, wanted at most {wanted:.0}"));
        }
        missed
    }
}
