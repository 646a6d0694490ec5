//! What is wrong with a running kured's flags, one piece of advice each: the gate asks it for one node, the doctor for
//! all of them.

use jiff::Timestamp;

use super::filter::{self, Matches};
use super::flag::Flag;
use super::flags::{ALL_FLAGS, FlagProblem, Flags};
use super::version::Version;
use super::window::Window;
use super::{Places, kured_container, places};
use crate::api::{Reason, Status};
use crate::config::Settings;
use crate::facts::{Container, Facts, Observation};

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Advice {
    /// Warn, unknown or block.
    pub status: Status,
    /// The reason.
    pub reason: Reason,
    /// What kured does, to go behind `kured on worker2`.
    pub does: String,
    /// Which flag; none where it is the image.
    pub flag: Option<Flag>,
    /// Its value.
    pub value: String,
    /// What would be fine.
    pub wanted: String,
}

/// The oldest version whose ways are known.
const OLDEST: Version = Version::of(1, 10, 0);

/// Judges the flags of the kured on a node.
#[must_use]
pub fn judge(flags: &Flags, node: &str, settings: &Settings, now: Timestamp) -> Vec<Advice> {
    let mut found = Vec::new();
    version(flags, &mut found);
    gated(flags, node, settings, &mut found);
    filters(flags, &mut found);
    pace(flags, settings, &mut found);
    risks(flags, settings, &mut found);
    window(flags, settings, now, &mut found);
    for odd in flags.odd.iter().filter(|odd| odd.flag != ALL_FLAGS) {
        found.push(Advice { status: Status::Warn, ..unreadable(odd) });
    }
    // Where one thing hides every flag, it is told once.
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|advice| {
        let hidden =
            advice.reason == Reason::KuredSettingUnreadable && flags.odd.iter().any(|odd| odd.flag == ALL_FLAGS);
        seen.insert((hidden, advice.reason, if hidden { String::new() } else { advice.does.clone() }))
    });
    found
}

fn unreadable(problem: &FlagProblem) -> Advice {
    Advice {
        status: Status::Unknown,
        reason: Reason::KuredSettingUnreadable,
        does: format!("has a flag that cannot be read: {problem}"),
        flag: problem.flag.parse().ok(),
        value: if problem.value.is_empty() { "not known".to_owned() } else { problem.value.clone() },
        wanted: "a value in the arguments of the container".to_owned(),
    }
}

/// The value of a flag; where it cannot be read, that is what is wrong.
fn read<T>(value: Result<T, FlagProblem>, found: &mut Vec<Advice>) -> Option<T> {
    value.map_err(|problem| found.push(unreadable(&problem))).ok()
}

fn version(flags: &Flags, found: &mut Vec<Advice>) {
    let mut push = |status, reason, does: String, value: String, wanted: &str| {
        found.push(Advice { status, reason, does, flag: None, value, wanted: wanted.to_owned() });
    };
    match &flags.version {
        Err(unknown) => push(
            Status::Unknown,
            Reason::KuredVersionUnknown,
            format!("is of an unknown version: {unknown}"),
            unknown.image.clone(),
            "a tag such as 1.23.0",
        ),
        Ok(version) if version.locks_before_it_asks() => push(
            Status::Block,
            Reason::KuredVersionUnsupported,
            format!("is {version}, which takes its lock before it asks: a node that is told no keeps it (kured#792)"),
            version.to_string(),
            "1.16.2 or newer",
        ),
        Ok(version) if !version.is_first_generation() || *version < OLDEST => push(
            Status::Block,
            Reason::KuredVersionUnsupported,
            format!("is {version}, whose ways are not known"),
            version.to_string(),
            "1.16.2 to 1.23.0",
        ),
        Ok(version) if (version.major, version.minor) > (Version::NEWEST_READ.major, Version::NEWEST_READ.minor) => {
            push(
                Status::Warn,
                Reason::KuredSettingRisky,
                format!("is {version}, newer than {}, the newest whose ways are known", Version::NEWEST_READ),
                version.to_string(),
                "1.16.2 to 1.23.0",
            );
        }
        Ok(version)
            if version.multi_always_uncordons() && flags.int(Flag::Concurrency).is_ok_and(|count| count > 1) =>
        {
            push(
                Status::Warn,
                Reason::KuredSettingRisky,
                format!("is {version}, which with --concurrency above 1 uncordons its node whatever its lock says"),
                version.to_string(),
                "1.16.2 or newer",
            );
        }
        Ok(_) => {}
    }
}

/// The URL that kured should ask, for people.
fn wanted_url(settings: &Settings) -> String {
    format!("http://maint.{}/kured/$(KURED_NODE_ID)", settings.namespace)
}

/// Whether a URL of kured leads to us, with this node's name in it.
///
/// # Errors
/// Why not, to go behind `--prometheus-url is ...: `.
pub fn gated_by_us(url: &str, node: &str, settings: &Settings) -> Result<(), String> {
    let (scheme, rest) = url.split_once("://").ok_or("it is no URL")?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let namespace = &settings.namespace;
    let own = ["maint".to_owned(), format!("maint.{namespace}"), format!("maint.{namespace}.svc")];
    let in_cluster = own.iter().any(|name| name == host) || host.starts_with(&format!("maint.{namespace}.svc."));
    let configured = settings.kured.hosts.iter().any(|name| name == host);
    match scheme {
        "http" => {}
        "https" if configured => {}
        "https" => return Err(format!("{host} does not speak https, or is not in [kured] hosts")),
        _ => return Err("it is no http URL".to_owned()),
    }
    if !in_cluster && !configured {
        return Err(format!("{host} is not maint (another name of it belongs into [kured] hosts)"));
    }
    match path.trim_end_matches('/').split_once('/') {
        Some(("kured", name)) if name == node => Ok(()),
        Some(("kured", name)) if name.contains("$(") => {
            Err(format!("{name} was not expanded, since the container has no such variable"))
        }
        Some(("kured", name)) => Err(format!("it names {name}, so that kured hears what is meant for that node")),
        _ => Err("its path is not /kured/$(KURED_NODE_ID)".to_owned()),
    }
}

/// Whether every kured asks us, by the templates of its DaemonSets. False where kured is not installed or could not be
/// read.
#[must_use]
pub fn is_gated(facts: &Facts, settings: &Settings) -> bool {
    // The name that the kubelet would put in for the node; a name with a `/` is no node's.
    const NODE: &str = "a-node";
    let asks_us = |container: &Container| {
        let url = Flags::of(container, Some(NODE)).text(Flag::PrometheusUrl);
        url.is_ok_and(|url| gated_by_us(&url, NODE, settings).is_ok())
    };
    matches!(places(facts), Places::Found(_)) && facts.daemon_sets.good().filter_map(kured_container).all(asks_us)
}

/// Whether a kured may drop alerts by name before it counts them, whatever its pattern: with `--alert-filter-match-only`
/// it means the opposite. True also where that could not be read.
#[must_use]
pub fn filters_alerts(facts: &Facts) -> bool {
    let filters = |container: &Container| {
        let flags = Flags::of(container, None);
        !flags.text(Flag::AlertFilterRegexp).is_ok_and(|pattern| pattern.is_empty())
            || !flags.bool(Flag::AlertFilterMatchOnly).is_ok_and(|only| !only)
    };
    !matches!(facts.daemon_sets, Observation::Known { .. })
        || facts.daemon_sets.good().filter_map(kured_container).any(filters)
}

fn gated(flags: &Flags, node: &str, settings: &Settings, found: &mut Vec<Advice>) {
    let block = |flag, does: String, value: String, wanted: String| Advice {
        status: Status::Block,
        reason: Reason::KuredNotGated,
        does,
        flag: Some(flag),
        value,
        wanted,
    };
    if let Some(url) = read(flags.text(Flag::PrometheusUrl), found) {
        if url.is_empty() {
            let does = "asks nobody before it reboots: --prometheus-url is not set".to_owned();
            found.push(block(Flag::PrometheusUrl, does, "not set".to_owned(), wanted_url(settings)));
        } else if let Err(why) = gated_by_us(&url, node, settings) {
            let does = format!("asks somebody else before it reboots: --prometheus-url is {url}: {why}");
            found.push(block(Flag::PrometheusUrl, does, url, wanted_url(settings)));
        }
    }
    // The name under which it takes the lock.
    if let Some(name) = read(flags.text(Flag::NodeId), found)
        && name != node
    {
        let shown = if name.is_empty() { "nothing".to_owned() } else { name.clone() };
        let does = format!("calls itself {shown} in its lock: KURED_NODE_ID is not the name of its node");
        found.push(block(Flag::NodeId, does, shown, "fieldRef spec.nodeName in variable KURED_NODE_ID".to_owned()));
    }
}

fn filters(flags: &Flags, found: &mut Vec<Advice>) {
    let (Some(only), Some(expression)) =
        (read(flags.bool(Flag::AlertFilterMatchOnly), found), read(flags.text(Flag::AlertFilterRegexp), found))
    else {
        return;
    };
    // Without the flag there is no filter; one that was set to nothing matches every name.
    if flags.origin(Flag::AlertFilterRegexp) == super::flags::Origin::Default {
        return;
    }
    let advice = |status, does: String, wanted: &str| Advice {
        status,
        reason: Reason::KuredFilterHidesAnswer,
        does,
        flag: Some(Flag::AlertFilterRegexp),
        value: expression.clone(),
        wanted: wanted.to_owned(),
    };
    let prefix = filter::PREFIX.trim_end();
    match filter::matches(&expression) {
        Err(why) => found.push(advice(
            Status::Unknown,
            format!("has an alert filter that cannot be judged: --alert-filter-regexp is `{expression}`: {}", why.replace('\n', " ")),
            "no filter",
        )),
        Ok(Matches::None) if !only => {}
        Ok(Matches::All) if only => {}
        Ok(_) if only => found.push(advice(
            Status::Block,
            format!("overlooks our no: --alert-filter-match-only counts only alerts that match `{expression}`, and ours begin with `{prefix}`"),
            "no filter, or one that matches every name that begins so: ^maint: ",
        )),
        Ok(_) => found.push(advice(
            Status::Block,
            format!("overlooks our no: --alert-filter-regexp `{expression}` matches names that begin with `{prefix}`"),
            "no filter, or one that cannot match: ^RebootRequired$",
        )),
    }
}

fn pace(flags: &Flags, settings: &Settings, found: &mut Vec<Advice>) {
    let longest = settings.run.handover_timeout_seconds / 3;
    if let Some(period) = read(flags.seconds(Flag::Period), found)
        && period > longest
    {
        found.push(Advice {
            status: Status::Block,
            reason: Reason::KuredPeriodTooLong,
            does: format!(
                "asks every {} only: a run waits {} s at the hand-over and needs three questions in that time",
                flags.shown(Flag::Period),
                settings.run.handover_timeout_seconds
            ),
            flag: Some(Flag::Period),
            value: flags.shown(Flag::Period),
            wanted: format!("<= {longest}s"),
        });
    }
    // Read here, judged with the lock itself.
    let _ = read(flags.int(Flag::Concurrency), found);
}

/// What stops no run and makes one less safe.
fn risks(flags: &Flags, settings: &Settings, found: &mut Vec<Advice>) {
    let warn = |flag: Flag, does: String, wanted: &str| Advice {
        status: Status::Warn,
        reason: Reason::KuredSettingRisky,
        does,
        flag: Some(flag),
        value: flags.shown(flag),
        wanted: wanted.to_owned(),
    };
    if let Some(ttl) = read(flags.nanoseconds(Flag::LockTtl), found)
        && ttl > 0
    {
        let does = format!(
            "lets others take its lock after {}, whatever has become of its node (--lock-ttl)",
            flags.shown(Flag::LockTtl)
        );
        found.push(warn(Flag::LockTtl, does, "0"));
    }
    if let Some(timeout) = read(flags.nanoseconds(Flag::DrainTimeout), found)
        && timeout <= 0
    {
        let does = "never gives a drain up (--drain-timeout 0)".to_owned();
        found.push(warn(Flag::DrainTimeout, does, "15m"));
    }
    if read(flags.bool(Flag::ForceReboot), found) == Some(true) {
        found.push(warn(Flag::ForceReboot, "reboots although its drain failed (--force-reboot)".to_owned(), "false"));
    }
    if let Some(delay) = read(flags.nanoseconds(Flag::LockReleaseDelay), found)
        && delay > 0
    {
        let does = format!(
            "keeps its lock for {} after the reboot, and the run waits for it (--lock-release-delay)",
            flags.shown(Flag::LockReleaseDelay)
        );
        found.push(warn(Flag::LockReleaseDelay, does, "0"));
    }
    let selectors = read(flags.list(Flag::BlockingPodSelector), found).unwrap_or_default();
    if !selectors.is_empty() {
        let does = format!(
            "does not act on our go while pods with {} are on its node (--blocking-pod-selector); a run then gives up after {} s",
            selectors.join(" or "),
            settings.run.handover_timeout_seconds
        );
        found.push(warn(Flag::BlockingPodSelector, does, "none"));
    }
}

fn window(flags: &Flags, settings: &Settings, now: Timestamp, found: &mut Vec<Advice>) {
    let Some(window) = read(Window::of(flags), found) else { return };
    let mistake = window.midnight_mistake().map_or_else(String::new, |mistake| format!(" ({mistake})"));
    let advice = |status, does: String| Advice {
        status,
        reason: Reason::KuredWindowTooNarrow,
        does,
        flag: Some(Flag::StartTime),
        value: window.told().to_owned(),
        wanted: "open whenever maint may act; best without a window of its own".to_owned(),
    };
    let Some(closes) = window.closes(now) else {
        let next = window.next_opening(now).map_or_else(|| "never".to_owned(), |at| format!("at {at}"));
        let does = format!("is outside its own window, {}, which opens {next}{mistake}", window.told());
        found.push(advice(Status::Block, does));
        return;
    };
    let needed = settings.run.drain_timeout_seconds + settings.run.handover_timeout_seconds;
    let left = closes.duration_since(now).as_secs();
    if left < needed {
        let does = format!(
            "leaves its own window, {}, in {left} s; a drain and the hand-over may take {needed} s{mistake}",
            window.told()
        );
        found.push(advice(Status::Warn, does));
    } else if !mistake.is_empty() {
        found.push(advice(Status::Warn, format!("has a window that is not what it looks like{mistake}")));
    }
}

/// Whether Flux would strip the lock's annotation: on an object of Flux, whoever set a field by kubectl loses it at the
/// next reconciliation (kustomize-controller removes fields owned by managers that begin with `kubectl`).
#[must_use]
pub fn strips_the_lock<'a>(daemon_set: &'a crate::facts::DaemonSet, key: &str) -> Option<(&'a str, &'a str)> {
    let label =
        crate::api::names::LABELS_FLUX.into_iter().find(|label| daemon_set.metadata.labels.contains_key(*label))?;
    let manager = daemon_set.annotation_managers.get(key)?;
    manager.starts_with("kubectl").then_some((label, manager.as_str()))
}

#[cfg(test)]
mod tests;
