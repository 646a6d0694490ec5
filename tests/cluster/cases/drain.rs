//! The one cell of the bench that every commit measures.

use super::{Case, case};
use crate::drain::cell::Cell;
use crate::drain::measure;

pub fn cases() -> Vec<Case> {
    let run = |cluster| measure::cell(cluster, Cell::of_every_commit());
    vec![case("drain::110_pods_that_end_in_2_seconds", run)]
}
