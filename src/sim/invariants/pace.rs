//! S21: how much is written, and how fast.

use std::collections::{BTreeMap, VecDeque};

use jiff::{SignedDuration, Timestamp};

use super::views::{self, is_eviction};
use super::{History, Rules, Violation};
use crate::trace::Step;

/// What is counted together, and how many writes in it are a hurry.
const WITHIN: SignedDuration = SignedDuration::from_secs(10);
/// The same for what is refused: whoever tries again waits longer each time.
const LONG: SignedDuration = SignedDuration::from_secs(60);
/// Writes of one record's status: one a second, and a few more where a process is replaced or an answer is lost.
const OF_A_RECORD: usize = 20;
/// Evictions of one pod.
const OF_A_POD: usize = 12;
/// The same within [`LONG`].
const OF_A_POD_LONG: usize = 24;
/// All writes of one process but evictions, Events and the Lease, each of which has a pace of its own.
const OF_A_PROCESS: usize = 80;
/// Writes of one record's status in a whole night: a run has some dozens, and those of its drain come once a second.
const IN_A_NIGHT: usize = 2_000;

/// S21: no record's status, no pod and no process is written in a hurry, and no record without end.
pub fn writes_are_few(rules: &Rules, history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut times: BTreeMap<(String, SignedDuration), VecDeque<Timestamp>> = BTreeMap::new();
    let mut of_records: BTreeMap<&str, usize> = BTreeMap::new();
    for step in history.steps.iter().filter(|step| rules.is_ours(step) && is_write(step)) {
        let mut count = |what: String, most: usize, within: SignedDuration| {
            let times = times.entry((what.clone(), within)).or_default();
            times.push_back(step.at);
            while times.front().is_some_and(|first| step.at.duration_since(*first) >= within) {
                times.pop_front();
            }
            if times.len() > most {
                times.clear();
                let what = format!("{what} was written more than {most} times within {} s", within.as_secs());
                found.push(Violation { invariant: "S21", step: step.number, what });
            }
        };
        if is_eviction(step) {
            let pod = format!("pod {}", views::evicted_uid(step).unwrap_or_default());
            count(pod.clone(), OF_A_POD, WITHIN);
            count(pod, OF_A_POD_LONG, LONG);
            continue;
        }
        count(format!("something by {}", step.client), OF_A_PROCESS, WITHIN);
        if step.resource == "maintenances" && step.subresource == "status" {
            count(format!("record {}", step.name), OF_A_RECORD, WITHIN);
            let all = of_records.entry(&step.name).or_default();
            *all += 1;
            if *all == IN_A_NIGHT {
                let what = format!("record {} was written {IN_A_NIGHT} times in a night", step.name);
                found.push(Violation { invariant: "S21", step: step.number, what });
            }
        }
    }
    found
}

fn is_write(step: &Step) -> bool {
    matches!(step.verb, "create" | "update" | "patch" | "delete")
        && step.code != 0
        && !matches!(step.resource.as_str(), "leases" | "events")
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::Row;

    pub(crate) const S21: &[Row] = &[
        ("once a second", false, |night| {
            for _ in 0..60 {
                night.put("maintenances", "status", "n1-a");
                night.wait(1);
            }
        }),
        ("a pod every five seconds", false, |night| {
            for _ in 0..30 {
                night.evict("web-n1", Some("uid-of-old"));
                night.wait(5);
            }
        }),
        ("a pod every other second, and no longer each time", true, |night| {
            for _ in 0..30 {
                night.evict("web-n1", Some("uid-of-old"));
                night.wait(2);
            }
        }),
        ("Events have a pace of their own", false, |night| {
            for _ in 0..200 {
                night.put("events", "", "n1");
            }
        }),
        ("a record as fast as can be", true, |night| {
            for _ in 0..30 {
                night.put("maintenances", "status", "n1-a");
            }
        }),
        ("a pod as fast as can be", true, |night| {
            for _ in 0..20 {
                night.evict("web-n1", Some("uid-of-old"));
            }
        }),
        ("nodes as fast as can be", true, |night| {
            for _ in 0..100 {
                night.put("nodes", "", "n1");
            }
        }),
        ("a record all night", true, |night| {
            for _ in 0..2_500 {
                night.put("maintenances", "status", "n1-a");
                night.wait(1);
            }
        }),
    ];
}
