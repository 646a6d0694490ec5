//! Whose turn it is: the order of unattended wishes that gates do not stop.
//!
//! The oldest wish goes first, so that nobody waits for ever; the node that the leader's own pod runs on comes last,
//! since it costs a change of leaders. A wish that its own gates stop is passed over, or one sick node would keep all
//! others from their updates; it is first again once it is free. How many may be away at a time is not decided here.

use super::run::Run;
use crate::api::{Phase, Trigger};
use crate::facts::{Item, Maintenance, Source};

/// What a wish is ordered by: the leader's node last, then age, then name.
pub(crate) type Place<'a> = (bool, Option<jiff::Timestamp>, &'a str);

/// Why it is not this wish's turn; none if it is. A person's wish waits for nobody.
pub(super) fn waits_for(run: &Run<'_>) -> Option<String> {
    if run.trigger() == Trigger::Manual {
        return None;
    }
    let Some(items) = run.current(&run.input.facts.maintenances, Maintenance::SPEC.max_age_seconds) else {
        return Some("who else waits could not be read".to_owned());
    };
    let leader = run.input.seat.map(|seat| seat.node.as_str());
    let mut own = None;
    let mut first: Option<&Maintenance> = None;
    for item in items {
        let one = match item {
            Item::Good(one) => one,
            Item::Malformed(bad) => return Some(format!("{} could not be understood, and may come first", bad.object)),
        };
        if one.metadata.name == run.name() {
            own = Some(place(one, leader));
        } else if waits(one) && first.is_none_or(|first| place(one, leader) < place(first, leader)) {
            first = Some(one);
        }
    }
    let Some(own) = own else { return Some("the record itself is not in the list yet".to_owned()) };
    first.filter(|first| place(first, leader) < own).map(|first| {
        let (node, name) = (&first.node_name, &first.metadata.name);
        format!("{node} comes first ({name})")
    })
}

fn place<'a>(one: &'a Maintenance, leader: Option<&str>) -> Place<'a> {
    place_of(&one.node_name, one.created, &one.metadata.name, leader)
}

/// The place of a wish for a node, by its age and its name; `leader` is the node that the leader's pod runs on.
pub(crate) fn place_of<'a>(
    node: &str,
    created: Option<jiff::Timestamp>,
    name: &'a str,
    leader: Option<&str>,
) -> Place<'a> {
    (leader == Some(node), created, name)
}

/// An unattended wish that could start if it were its turn.
fn waits(one: &Maintenance) -> bool {
    one.phase == Phase::Pending.as_str() && one.trigger == Trigger::Unattended.as_str() && !one.blocked
}
