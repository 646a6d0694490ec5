//! An attached volume: its engine, what is at work, its robustness, and its copies.

use jiff::Timestamp;

use super::super::longhorn_settings::DrainPolicy;
use super::super::storage::NodeIndex;
use super::view::{Copy, Problem, View, places};
use super::volume::on_gone_nodes;
use crate::api::{Evidence, Moment, Reason, Status, Strategy};
use crate::facts::TriState;
use crate::facts::longhorn::{Engine, Replica};
use crate::planted::{self, Bug};

pub(super) fn judge(view: &View<'_, '_>, problems: &mut Vec<Problem>) {
    let before = problems.len();
    problems.extend(engine_count(view));
    let copies = view.copies();
    if let Some(engine) = view.engine() {
        problems.extend(engine_work(view, engine));
    }
    problems.extend(rebuilding(view, copies.as_deref().unwrap_or_default()));
    let rebuilds = problems[before..].iter().any(|problem| problem.reason == Reason::LonghornVolumeRebuilding);
    let robustness = robustness(view, copies.as_deref(), rebuilds);
    let told = rebuilds || robustness.is_some();
    problems.extend(robustness);
    let (Some(mut copies), Some(nodes)) = (copies, view.cluster.nodes.as_ref()) else { return };
    copies.iter_mut().filter(|_| planted::is(Bug::TakesTheLastCopy)).for_each(|copy| copy.on_target = false);
    let gone = on_gone_nodes(view, nodes, &copies, Reason::LonghornVolumeDegraded);
    let told = told || gone.is_some();
    problems.extend(gone);
    problems.extend(last_on_target(view, nodes, &copies));
    // What robustness, a rebuild or a gone node told already need not be counted again.
    if !told && !view.volume.standby {
        problems.extend(too_few(view, &copies));
    }
}

/// An attached volume has one engine; while it migrates it has two. Without one, nothing tells of its copies.
fn engine_count(view: &View<'_, '_>) -> Option<Problem> {
    let (engines, complete) = view.engines()?;
    let evidence = |value: String| view.evidence("engines", value, "1");
    match engines {
        [engine] if engine.metadata.deletion_timestamp.is_none() => None,
        [] if !complete => None,
        [] | [_] => {
            let what = "is attached and has no engine: what its copies do cannot be told";
            let evidence = vec![evidence("0".to_owned())];
            Some(view.problem(Status::Unknown, Reason::LonghornVolumeRobustnessUnknown, what, evidence))
        }
        more => {
            let what = format!("has {} engines: it is being migrated or switched over", more.len());
            Some(view.block(Reason::LonghornVolumeMigrating, &what, evidence(more.len().to_string())))
        }
    }
}

/// Restore, expansion and the engine's own state.
fn engine_work(view: &View<'_, '_>, engine: &Engine) -> Vec<Problem> {
    let mut found = Vec::new();
    let name = engine.metadata.full_name();
    let unknown = |field: &str, what: &str| {
        let evidence = vec![Evidence::new(format!("Engine {name}"), field, "not set", "a value")];
        view.problem(Status::Unknown, Reason::ObservationMalformed, what, evidence)
    };
    match engine.current_state.as_str() {
        "running" => {}
        "" => found.push(unknown("status.currentState", "has an engine that has not reported yet")),
        state => {
            let evidence = view.evidence("engine status.currentState", state, "running");
            let what = format!("is attached, but its engine is {state}");
            found.push(view.block(Reason::LonghornVolumeRobustnessUnknown, &what, evidence));
        }
    }
    if let Some(address) = engine.restoring.first() {
        let evidence = view.evidence("engine status.restoreStatus", format!("restoring at {address}"), "not restoring");
        found.push(view.block(Reason::LonghornVolumeRestoring, "is being restored from a backup", evidence));
    }
    let size = view.volume.size;
    match (engine.is_expanding, engine.current_size) {
        (Some(true), _) => {
            let evidence = view.evidence("engine status.isExpanding", "true", "false");
            found.push(view.block(Reason::LonghornVolumeExpanding, "is being expanded", evidence));
        }
        (_, Some(current)) if current != size => {
            let evidence = view.evidence("engine status.currentSize", current.to_string(), &size.to_string());
            let what = format!("is being expanded: its engine has {current} of {size} bytes");
            found.push(view.block(Reason::LonghornVolumeExpanding, &what, evidence));
        }
        (Some(false), Some(_)) => {}
        (None, _) => found.push(unknown("status.isExpanding", "has an engine that does not say whether it expands")),
        (_, None) => found.push(unknown("status.currentSize", "has an engine that does not tell its size")),
    }
    found
}

/// Copies that are being filled: mode WO, or known to the engine by address and not by mode (Longhorn's own count),
/// or placed and not used yet, or about to be moved. At handover the target's own do not matter.
fn rebuilding(view: &View<'_, '_>, copies: &[Copy<'_>]) -> Vec<Problem> {
    let at_handover = view.moment() == Moment::Handover;
    let passed_over =
        |name: &str| at_handover && copies.iter().any(|copy| copy.on_target && copy.replica.metadata.name == name);
    let mut found = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for engine in view.engines().map_or(&[][..], |(engines, _)| engines) {
        for (name, mode) in &engine.replica_modes {
            match mode.as_str() {
                "WO" if !passed_over(name) => {
                    seen.push(name);
                    found.push(one_rebuild(view, engine, name, "WO"));
                }
                "WO" | "RW" | "ERR" => {}
                other => found.push(strange_mode(view, name, other)),
            }
        }
        for name in engine.replica_addresses.keys() {
            if !engine.replica_modes.contains_key(name) && !passed_over(name) {
                seen.push(name);
                found.push(one_rebuild(view, engine, name, "not seen by the engine"));
            }
        }
        // A rebuild that neither map shows yet.
        for rebuild in engine.rebuilds.iter().filter(|rebuild| rebuild.is_rebuilding) {
            let owner = engine.replica_addresses.iter().find(|(_, address)| **address == rebuild.address);
            let name = owner.map_or(rebuild.address.as_str(), |(name, _)| name.as_str());
            if !seen.contains(&name) && !passed_over(name) {
                seen.push(name);
                found.push(one_rebuild(view, engine, name, "isRebuilding"));
            }
        }
    }
    for copy in copies.iter().filter(|copy| !(at_handover && copy.on_target)) {
        let name = copy.replica.metadata.name.as_str();
        if copy.is_unused() && !copy.replica.node.is_empty() && !seen.contains(&name) {
            let what = format!("has a replica that is yet to be filled: {}", places(view, std::iter::once(copy)));
            let evidence = view.evidence(format!("{name} healthyAt"), "not set", "a time");
            found.push(view.block(Reason::LonghornVolumeRebuilding, &what, evidence));
        } else if copy.replica.eviction_requested {
            let what = format!("has a replica that is to be moved away: {}", places(view, std::iter::once(copy)));
            let evidence = view.evidence(format!("{name} evictionRequested"), "true", "false");
            found.push(view.block(Reason::LonghornVolumeRebuilding, &what, evidence));
        }
    }
    found
}

fn one_rebuild(view: &View<'_, '_>, engine: &Engine, name: &str, seen_as: &str) -> Problem {
    let address = engine.replica_addresses.get(name).map_or(name, String::as_str);
    let progress = engine.rebuilds.iter().find(|rebuild| rebuild.is_rebuilding && rebuild.address == address);
    let at =
        progress.and_then(|rebuild| rebuild.progress).map(|percent| format!(" at {percent} %")).unwrap_or_default();
    let mut what = format!("is rebuilding replica {}{at}", view.short(name));
    if let Some(disabled) = rebuild_disabled(view) {
        what = format!("{what}; {disabled}");
    }
    let evidence = view.evidence(format!("rebuild of {name}"), seen_as, "RW");
    let since = view.volume.last_degraded_at.filter(|_| view.volume.robustness == "degraded");
    Problem { since, ..view.block(Reason::LonghornVolumeRebuilding, &what, evidence) }
}

fn strange_mode(view: &View<'_, '_>, name: &str, mode: &str) -> Problem {
    let what = format!("has replica {} in mode `{mode}`, which this version does not know", view.short(name));
    let evidence = vec![view.evidence(format!("replicaModeMap of {name}"), mode, "RW")];
    view.problem(Status::Unknown, Reason::ObservationMalformed, &what, evidence)
}

/// What Longhorn itself says of it. At handover a degraded volume is fine where the target's own copy is what it
/// lacks; the others are counted anyway. Robustness of a disaster-recovery volume tells nothing.
fn robustness(view: &View<'_, '_>, copies: Option<&[Copy<'_>]>, rebuilds: bool) -> Option<Problem> {
    let volume = view.volume;
    if volume.standby {
        return None;
    }
    let evidence = view.evidence("status.robustness", &volume.robustness, "healthy");
    match volume.robustness.as_str() {
        "faulted" => Some(view.block(Reason::LonghornVolumeFaulted, "is faulted: it has no usable copy", evidence)),
        "unknown" => {
            let what = "is attached, and its robustness is unknown";
            Some(view.block(Reason::LonghornVolumeRobustnessUnknown, what, evidence))
        }
        "degraded" if !rebuilds => {
            let lost = copies.is_some_and(|copies| copies.iter().any(|copy| copy.on_target && !copy.healthy));
            if view.moment() == Moment::Handover && lost {
                return None;
            }
            let what = format!("is degraded{}: {}", of_how_many(view, copies), degraded_because(view, copies));
            let block = view.block(Reason::LonghornVolumeDegraded, &what, evidence);
            Some(Problem { since: volume.last_degraded_at, ..block })
        }
        _ => None,
    }
}

fn of_how_many(view: &View<'_, '_>, copies: Option<&[Copy<'_>]>) -> String {
    let Some(copies) = copies else { return String::new() };
    let healthy = copies.iter().filter(|copy| copy.healthy).count();
    format!(" ({healthy} of {} copies healthy)", view.volume.number_of_replicas)
}

/// Why a degraded volume is not being rebuilt, so that nobody waits for what never comes.
fn degraded_because(view: &View<'_, '_>, copies: Option<&[Copy<'_>]>) -> String {
    let mut because = Vec::new();
    because.extend(rebuild_disabled(view));
    let scheduled = view.volume.condition("Scheduled").filter(|scheduled| scheduled.status != TriState::True);
    if let Some(scheduled) = scheduled {
        let message = scheduled.message.trim_end_matches('.');
        let message = if message.is_empty() { String::new() } else { format!(": {message}") };
        because.push(format!("a replica cannot be placed ({}{message})", scheduled.reason));
    }
    let reusable = copies.into_iter().flatten().find(|copy| is_reusable(copy.replica));
    because.extend(reusable.map(|copy| replenishment(view, copy)));
    if because.is_empty() {
        because.push("no rebuild is at work".to_owned());
    }
    because.join("; ")
}

const fn is_reusable(replica: &Replica) -> bool {
    replica.failed_at.is_some() && !replica.node.is_empty() && !replica.disk.is_empty() && !replica.eviction_requested
}

/// While a failed replica could be used again, Longhorn makes no new one for `replica-replenishment-wait-interval`
/// seconds from `lastDegradedAt`, plus one. Data engine v2 does not wait.
fn replenishment(view: &View<'_, '_>, copy: &Copy<'_>) -> String {
    let (node, volume) = (&copy.replica.node, view.volume);
    let waits = format!("it waits for {} on {node} to come back", view.short(&copy.replica.metadata.name));
    if volume.data_engine == "v2" {
        return waits;
    }
    match wait_ends(view) {
        Err(why) => format!("{waits}, until when cannot be told ({why})"),
        Ok(Some(until)) if until > view.cluster.input.now => format!("{waits}, replenishment until {until}"),
        Ok(Some(until)) => format!("{waits}, replenishment was due at {until}"),
        Ok(None) => waits,
    }
}

/// When the wait of a degraded volume ends; none where it is no date.
fn wait_ends(view: &View<'_, '_>) -> Result<Option<Timestamp>, String> {
    let interval = view.cluster.settings.number("replica-replenishment-wait-interval", "v1", 600)?;
    let degraded_at = view.volume.last_degraded_at.ok_or_else(|| "no lastDegradedAt".to_owned())?;
    Ok(degraded_at.checked_add(jiff::SignedDuration::from_secs(interval.saturating_add(1))).ok())
}

/// Until when a degraded volume waits for a failed replica to come back; none where it waits for none.
pub(super) fn replenishment_end(view: &View<'_, '_>) -> Option<Timestamp> {
    let copies = view.copies()?;
    let waits = view.volume.data_engine != "v2" && copies.iter().any(|copy| is_reusable(copy.replica));
    if waits && rebuild_disabled(view).is_none() { wait_ends(view).ok().flatten() } else { None }
}

fn rebuild_disabled(view: &View<'_, '_>) -> Option<String> {
    let name = "concurrent-replica-rebuild-per-node-limit";
    let limit = view.cluster.settings.number(name, &view.volume.data_engine, 5);
    (limit == Ok(0)).then(|| format!("rebuilding is disabled ({name} = 0), so it never heals by itself"))
}

/// d) The data would go offline with the target. At settle the target has come back, and this is no longer asked.
fn last_on_target(view: &View<'_, '_>, nodes: &NodeIndex<'_>, copies: &[Copy<'_>]) -> Option<Problem> {
    let at_handover = view.moment() == Moment::Handover;
    if view.moment() == Moment::Settle {
        return None;
    }
    // At handover a drain has stopped the target's own copies: they count although they are not healthy any more.
    let here: Vec<&Copy<'_>> =
        copies.iter().filter(|copy| copy.on_target && (copy.healthy || (at_handover && !copy.is_unused()))).collect();
    let others: Vec<&Copy<'_>> = copies.iter().filter(|copy| copy.healthy && !copy.on_target).collect();
    let first = here.first()?;
    let target = view.target();
    let replica = view.short(&first.replica.metadata.name);
    let evidence = view.evidence(format!("healthy copies outside {target}"), others.len().to_string(), ">= 1");
    if others.is_empty() {
        let at = if view.volume.current_node.is_empty() { "a node" } else { &view.volume.current_node };
        let what = format!("is attached to {at}, and its only healthy copy is {replica} on {target}");
        return Some(view.block(Reason::LonghornLastReplicaOnTarget, &what, evidence));
    }
    let asked = view.moment() == Moment::Start && view.cluster.input.strategy == Strategy::Drain;
    if !asked || others.iter().any(|copy| nodes.is_schedulable(&copy.replica.node)) {
        return None;
    }
    refused_drain(view, Reason::LonghornLastReplicaOnTarget, &others, |policy| {
        matches!(policy, DrainPolicy::BlockIfLast | DrainPolicy::AllowIfStopped)
    })
}

/// Longhorn lets a node be drained only if each replica on it has another healthy one on a schedulable node
/// (longhorn#5910), unless its policy says otherwise.
pub(super) fn refused_drain(
    view: &View<'_, '_>,
    reason: Reason,
    others: &[&Copy<'_>],
    refuses: impl Fn(DrainPolicy) -> bool,
) -> Option<Problem> {
    let target = view.target();
    let place = if others.is_empty() {
        format!("its only healthy copy is on {target}")
    } else {
        format!("its other healthy copies are on cordoned nodes ({})", places(view, others.iter().copied()))
    };
    match view.cluster.settings.drain_policy() {
        Ok((policy, word)) if refuses(policy) => {
            let what = format!("would hold the drain of {target}: {place}, and node-drain-policy is {word}");
            let evidence = vec![
                view.evidence(format!("healthy copies outside {target} on schedulable nodes"), "0", ">= 1"),
                Evidence::new("Setting node-drain-policy", "value", word, "allow-if-replica-is-stopped"),
            ];
            Some(view.problem(Status::Block, reason, &what, evidence))
        }
        Ok(_) => None,
        Err(why) => {
            let what = format!("may hold the drain of {target}: {place}; {why}");
            let evidence = vec![Evidence::new("Setting node-drain-policy", "value", why, "a known policy")];
            Some(view.problem(Status::Unknown, reason, &what, evidence))
        }
    }
}

/// Fewer healthy copies than wanted, whatever robustness says: it lags, and knows nothing of a node's readiness.
fn too_few(view: &View<'_, '_>, copies: &[Copy<'_>]) -> Option<Problem> {
    let wanted = usize::try_from(view.volume.number_of_replicas).unwrap_or(usize::MAX);
    let at_handover = view.moment() == Moment::Handover;
    let healthy = copies.iter().filter(|copy| copy.healthy && !(at_handover && copy.on_target)).count();
    let here = if at_handover { copies.iter().filter(|copy| copy.on_target).count() } else { 0 };
    // A failed copy elsewhere may be a leftover, but only where all wanted ones are whole without it.
    let bad: Vec<&Copy<'_>> = copies
        .iter()
        .filter(|copy| !(at_handover && copy.on_target))
        .filter(|copy| !copy.healthy && !copy.replica.node.is_empty())
        .collect();
    let least = wanted.saturating_sub(here).max(1);
    if healthy >= wanted || (healthy >= least && bad.is_empty()) {
        return None;
    }
    let outside = if at_handover { format!(" outside {}", view.target()) } else { String::new() };
    let names =
        if bad.is_empty() { String::new() } else { format!(", not healthy: {}", places(view, bad.into_iter())) };
    let wanted = if at_handover { least } else { wanted };
    let what = format!("has {healthy} of {wanted} healthy copies{outside}{names}");
    let evidence = view.evidence(format!("healthy copies{outside}"), healthy.to_string(), &wanted.to_string());
    let block = view.block(Reason::LonghornVolumeDegraded, &what, evidence);
    Some(Problem { since: view.volume.last_degraded_at.filter(|_| view.volume.robustness == "degraded"), ..block })
}
