//! Whose turn it is: the order of unattended wishes that gates do not stop.
//!
//! The oldest wish goes first, so that nobody waits for ever; the node that the leader's own pod runs on comes last,
//! since it costs a change of leaders. A wish that its own gates stop is passed over, or one sick node would keep all
//! others from their updates; it is first again once it is free. How many may be away at a time is not decided here.

use super::run::Run;
use super::seat::OwnSeat;
use crate::api::{Phase, Trigger};
use crate::facts::{Item, Maintenance, Source};

/// What a wish is ordered by: the leader's node last, then age, then name.
type Place<'a> = (bool, Option<jiff::Timestamp>, &'a str);

/// The wish that comes before this one, if there is one. A manual wish waits for nobody.
pub(super) fn who_is_first<'a>(run: &Run<'a>) -> Result<Option<&'a Maintenance>, &'static str> {
    if run.trigger() == Trigger::Manual {
        return Ok(None);
    }
    let Some(items) = run.current(&run.input.facts.maintenances, Maintenance::SPEC.max_age_seconds) else {
        return Err("who else waits could not be read");
    };
    let leader = run.input.seat.map(|seat| seat.node.as_str());
    let place = |one: &'a Maintenance| -> Place<'a> {
        (leader == Some(one.node_name.as_str()), one.created, one.metadata.name.as_str())
    };
    let mut own = None;
    let mut first: Option<&Maintenance> = None;
    for item in items {
        let Item::Good(one) = item else { return Err("a record of the others could not be understood") };
        if one.metadata.name == run.name() {
            own = Some(place(one));
        } else if one.phase == Phase::Pending.as_str()
            && one.trigger == Trigger::Unattended.as_str()
            && !one.blocked
            && first.is_none_or(|first| place(one) < place(first))
        {
            first = Some(one);
        }
    }
    let Some(own) = own else { return Err("the record itself is not in the list yet") };
    Ok(first.filter(|first| place(first) < own))
}
