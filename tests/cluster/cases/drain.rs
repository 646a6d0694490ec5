//! Drains: the one cell of the bench that every commit measures, and those that meet somebody who has a say in them.

use super::{Case, case};
use crate::drain::cell::Cell;
use crate::drain::measure;

pub fn cases() -> Vec<Case> {
    let run = |cluster| measure::cell(cluster, Cell::of_every_commit());
    let mut all = vec![case("drain::110_pods_that_end_in_2_seconds", run)];
    all.extend(super::drain_waits::cases());
    all.extend(super::drain_names::cases());
    println!("figure cases.drain {} cases", all.len());
    all
}
