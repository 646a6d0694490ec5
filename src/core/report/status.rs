//! The cluster on one screen: halt, leader, nodes, runs.

mod around;

use std::fmt::Write as _;

use jiff::Timestamp;
use serde::Serialize;

use super::WindowsReport;
use super::lock::LockEntryReport;
use super::paint::{Paint, tame};
use super::table::table;
use super::text::since;
use crate::api::record::Maintenance;
use crate::api::{Document, Halt, Hold, Phase, Proven, Status, is_over, names};
use crate::config::Settings;
use crate::facts::{Facts, Item, Lease, Listed, Node, Observation};
use crate::plan::{owner_of, parse_time, phase_of};

/// What the screen is made of.
#[derive(Debug, Clone, Copy)]
pub struct StatusInput<'a> {
    /// Where it was read from, for people.
    pub source: &'a str,
    /// The settings of this machine: maint's own namespace, and from which age the leader's Lease is not renewed.
    pub settings: &'a Settings,
    /// Whether those settings were given, so that windows and mode are told: the defaults are nobody's.
    pub configured: bool,
    /// Nodes, maint's ConfigMaps and records, and the DaemonSets that kured's lock is on.
    pub facts: &'a Facts,
    /// The leader's Lease; absent where there is none.
    pub lease: &'a Observation<Lease>,
    /// The records that are not over.
    pub records: &'a Observation<Vec<Maintenance>>,
    /// Records that are there and cannot be understood, and why.
    pub odd_records: &'a [String],
}

crate::api::names! {
    /// The screen in one word.
    StatusVerdict, "verdict", {
        /// All was read, and nothing is held.
        Fine = "fine",
        /// A part could not be read, and nothing is held as far as known.
        Unknown = "unknown",
        /// A run is held: a person is needed.
        Held = "held",
    }
}

/// The answer of `maint status`: additive within `maint.dev/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusReport {
    /// [`names::OUTPUT_API_VERSION`]
    pub api_version: &'static str,
    /// `StatusReport`
    pub kind: &'static str,
    /// When this document was made; ages are counted to it.
    pub generated_at: Timestamp,
    /// Where it was read from.
    pub source: String,
    /// maint's own namespace.
    pub namespace: String,
    /// The screen in one word.
    pub verdict: StatusVerdict,
    /// The halt, if there is one that is not over.
    pub halt: Option<Halt>,
    /// Who leads; none where nobody does or it could not be read.
    pub leader: Option<Leader>,
    /// Windows and mode by the configuration that was given; none where none was.
    pub windows: Option<WindowsReport>,
    /// kured's locks; empty where kured is not installed, or they could not be read.
    pub locks: Vec<LockEntryReport>,
    /// The nodes, in the order of the API's list.
    pub nodes: Vec<NodeRow>,
    /// The runs: held ones first, then in flight, then pending.
    pub runs: Vec<RunRow>,
    /// What could not be read or understood, and why.
    pub unread: Vec<String>,
}

/// Who leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Leader {
    /// `spec.holderIdentity` of the Lease; empty: released.
    pub holder: String,
    /// Its last renewal.
    pub renewed: Option<Timestamp>,
    /// Renewed within the Lease's duration, by this machine's clock.
    pub alive: bool,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeRow {
    /// Its name.
    pub name: String,
    /// Condition Ready: True, False, Unknown; empty where there is none.
    pub ready: String,
    /// Who cordoned it; none if it is not cordoned.
    pub cordoned_by: Option<String>,
    /// Who holds it, until when and why; none if nobody does.
    pub hold: Option<String>,
    /// `yes`, `no` (booted since), `never`, or `unreadable`.
    pub proven: &'static str,
}

/// A run that is not over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRow {
    /// Name of the record.
    pub name: String,
    /// The node.
    pub node: String,
    /// The phase.
    pub phase: String,
    /// Of an unattended wish that gates do not stop: its place in line, from 1.
    pub place: Option<usize>,
    /// Of an unattended wish: whether gates stop it, so that those behind it go first.
    pub passed_over: bool,
    /// Since when.
    pub since: Option<Timestamp>,
    /// Until when at most.
    pub deadline: Option<Timestamp>,
    /// One sentence.
    pub message: String,
}

impl StatusReport {
    /// Puts the screen together.
    #[must_use]
    pub fn new(input: &StatusInput<'_>, now: Timestamp) -> Self {
        let mut unread = Vec::new();
        let halt = halt(input, now, &mut unread);
        let leader = leader(input, now, &mut unread);
        let none = Vec::new();
        if let Some(why) = why_unread("records", input.records) {
            unread.push(why);
        }
        unread.extend(input.odd_records.iter().cloned());
        let records = input.records.known().unwrap_or(&none);
        let nodes = nodes(&input.facts.nodes, records, now, &mut unread);
        let locks = around::locks(input, now, &mut unread);
        let places = around::places_in_line(records);
        let mut runs: Vec<(u8, RunRow)> =
            records.iter().map(|record| (order(phase_of(record)), run(record, &places))).collect();
        // Those in line in their order, then those that are passed over.
        let rank = |run: &RunRow| (run.passed_over, run.place);
        runs.sort_by(|a, b| (a.0, rank(&a.1), &a.1.name).cmp(&(b.0, rank(&b.1), &b.1.name)));
        let held = records.iter().any(|record| phase_of(record) == Phase::Held);
        Self {
            api_version: names::OUTPUT_API_VERSION,
            kind: "StatusReport",
            generated_at: now,
            source: input.source.to_owned(),
            namespace: input.settings.namespace.clone(),
            verdict: match (held, unread.is_empty()) {
                (true, _) => StatusVerdict::Held,
                (false, false) => StatusVerdict::Unknown,
                (false, true) => StatusVerdict::Fine,
            },
            halt,
            leader,
            windows: around::schedule(input, now),
            locks,
            nodes,
            runs: runs.into_iter().map(|(_, run)| run).collect(),
            unread,
        }
    }
}

/// Why a source says nothing; none where it was read, or is not there.
fn why_unread<T>(what: &str, observation: &Observation<T>) -> Option<String> {
    match observation {
        Observation::Known { .. } | Observation::Absent { .. } => None,
        Observation::NotAsked => Some(format!("{what}: not asked")),
        Observation::Failed { kind, detail, .. } => Some(format!("{what} ({kind}): {detail}")),
    }
}

fn halt(input: &StatusInput<'_>, now: Timestamp, unread: &mut Vec<String>) -> Option<Halt> {
    if let Some(why) = why_unread("halt", &input.facts.config_maps) {
        unread.push(why);
        return None;
    }
    let map = names::CONTROL_CONFIG_MAP;
    if let Some(bad) = input.facts.config_maps.known()?.iter().find_map(|item| match item {
        Item::Malformed(bad) if bad.object.ends_with(&format!("/{map}")) => Some(bad),
        _ => None,
    }) {
        unread.push(format!("halt: {bad}; it counts as halted"));
        return None;
    }
    let control = input.facts.config_maps.good().find(|one| one.metadata.name == map)?;
    let text = control.data.get(names::CONTROL_HALT_KEY)?;
    match Halt::parse(text) {
        Ok(halt) => (!is_over(halt.until, now)).then_some(halt),
        Err(error) => {
            let place = format!("ConfigMap {}/{map}", input.settings.namespace);
            unread.push(format!("halt: {place} {error}; it counts as halted until `maint unhalt`"));
            None
        }
    }
}

fn leader(input: &StatusInput<'_>, now: Timestamp, unread: &mut Vec<String>) -> Option<Leader> {
    if let Some(why) = why_unread("leader", input.lease) {
        unread.push(why);
    }
    let lease = input.lease.known()?;
    let limit = i64::from(input.settings.election.lease_seconds);
    let fresh = lease.renew_time.is_some_and(|renewed| now.duration_since(renewed).as_secs() <= limit);
    Some(Leader { holder: lease.holder.clone(), renewed: lease.renew_time, alive: fresh && !lease.holder.is_empty() })
}

fn nodes(listed: &Listed<Node>, records: &[Maintenance], now: Timestamp, unread: &mut Vec<String>) -> Vec<NodeRow> {
    if let Some(why) = why_unread("nodes", listed) {
        unread.push(why);
    }
    let mut rows = Vec::new();
    for item in listed.known().into_iter().flatten() {
        match item {
            Item::Good(node) => rows.push(NodeRow {
                name: node.metadata.name.clone(),
                ready: node.condition("Ready").map(|ready| ready.status.as_str().to_owned()).unwrap_or_default(),
                cordoned_by: cordoned_by(node, records),
                hold: hold(node, now),
                proven: proven(node),
            }),
            Item::Malformed(bad) => unread.push(bad.to_string()),
        }
    }
    rows
}

fn cordoned_by(node: &Node, records: &[Maintenance]) -> Option<String> {
    if !node.is_cordoned() {
        return None;
    }
    let manager = node.unschedulable_manager.as_deref();
    let ours = owner_of(node).filter(|_| manager == Some(names::FIELD_MANAGER));
    let Some(owner) = ours else { return Some(manager.unwrap_or("somebody").to_owned()) };
    let record = records.iter().find(|record| record.metadata.uid.as_deref() == Some(owner.maintenance.as_str()));
    Some(match record.and_then(|record| record.metadata.name.as_ref()) {
        Some(name) => name.clone(),
        None => format!("maint, for a run that is over ({})", owner.maintenance),
    })
}

fn hold(node: &Node, now: Timestamp) -> Option<String> {
    let text = node.metadata.annotations.get(names::ANNOTATION_HOLD)?;
    match Hold::parse(text) {
        Ok(hold) if is_over(hold.until, now) => None,
        Ok(hold) => {
            let until = hold.until.map(|until| format!(" until {until}")).unwrap_or_default();
            Some(format!("{}{until}: {}", hold.by, hold.reason))
        }
        Err(_) => Some("unreadable: it counts as on hold".to_owned()),
    }
}

fn proven(node: &Node) -> &'static str {
    match node.metadata.annotations.get(names::ANNOTATION_PROVEN).map(|text| Proven::parse(text)) {
        None => "never",
        Some(Err(_)) => "unreadable",
        Some(Ok(proven)) if proven.boot_id == node.boot_id => "yes",
        Some(Ok(_)) => "no",
    }
}

const fn order(phase: Phase) -> u8 {
    match phase {
        Phase::Held => 0,
        Phase::Pending => 2,
        _ => 1,
    }
}

fn run(record: &Maintenance, places: &[(&str, usize)]) -> RunRow {
    let status = record.status.as_ref();
    RunRow {
        name: record.metadata.name.clone().unwrap_or_default(),
        node: record.spec.node_name.clone(),
        phase: phase_of(record).as_str().to_owned(),
        place: places.iter().find(|(name, _)| record.metadata.name.as_deref() == Some(*name)).map(|(_, place)| *place),
        passed_over: around::is_passed_over(record),
        since: parse_time(status.and_then(|status| status.step_started_at.as_ref())),
        deadline: parse_time(status.and_then(|status| status.deadline.as_ref())),
        message: status.map_or_else(|| "no leader has taken it yet".to_owned(), |status| status.message.clone()),
    }
}

/// The screen as text: the verdict first.
#[must_use]
pub fn status(report: &StatusReport, paint: Paint) -> String {
    let mut text = String::new();
    let now = report.generated_at;
    let (worth, line) = headline(report);
    let _ = writeln!(text, "{} {}", paint.mark(worth), paint.status(worth, &tame(&line)));
    let _ =
        writeln!(text, "  {}", paint.dim(&tame(&format!("{}, {}", report.source, now.strftime("%Y-%m-%dT%H:%M:%SZ")))));
    if let Some(halt) = &report.halt {
        let until = halt.until.map_or_else(|| "until `maint unhalt`".to_owned(), |until| format!("until {until}"));
        let line = format!("halted by {} since {}, {until}: {}", halt.by, since(halt.since, now), halt.reason);
        let _ = writeln!(text, "\n{} {}", paint.mark(Status::Warn), tame(&line));
    }
    let (worth, line) = leads(report);
    let _ = writeln!(text, "\n{} {}", paint.mark(worth), tame(&line));
    let schedule = around::schedule_line(report.windows.as_ref(), &report.namespace);
    let locks = report.locks.iter().map(|lock| around::lock_line(lock, now));
    for (worth, line) in std::iter::once(schedule).chain(locks) {
        let _ = writeln!(text, "{} {}", paint.mark(worth), tame(&line));
    }
    if !report.nodes.is_empty() {
        let _ = write!(text, "\n{}", node_table(&report.nodes));
    }
    runs(&mut text, report);
    if !report.unread.is_empty() {
        let _ = writeln!(text, "\ncould not be read");
        for why in &report.unread {
            let _ = writeln!(text, "  {} {}", paint.mark(Status::Unknown), tame(why));
        }
    }
    text
}

fn headline(report: &StatusReport) -> (Status, String) {
    let of = |wanted: &dyn Fn(&RunRow) -> bool| -> Vec<&str> {
        report.runs.iter().filter(|run| wanted(run)).map(|run| run.node.as_str()).collect()
    };
    let held = of(&|run| run.phase == Phase::Held.as_str());
    let pending = of(&|run| run.phase == Phase::Pending.as_str());
    let moving = of(&|run| run.phase != Phase::Held.as_str() && run.phase != Phase::Pending.as_str());
    if !held.is_empty() {
        return (Status::Block, format!("HELD {}: a person is needed, nothing else starts", held.join(", ")));
    }
    if !report.unread.is_empty() {
        return (Status::Unknown, "UNKNOWN: parts could not be read".to_owned());
    }
    if let Some(halt) = &report.halt {
        return (Status::Warn, format!("HALTED by {}: {}", halt.by, halt.reason));
    }
    if !report.leader.as_ref().is_some_and(|leader| leader.alive) {
        return (Status::Warn, "NO LEADER: nothing starts or goes on".to_owned());
    }
    match (moving.is_empty(), pending.len()) {
        (false, _) => (Status::Pass, format!("AT WORK on {}", moving.join(", "))),
        (true, 0) => (Status::Pass, "IDLE: no run, no wish".to_owned()),
        (true, _) => (Status::Pass, format!("WAITING: {} to be maintained", pending.join(", "))),
    }
}

fn leads(report: &StatusReport) -> (Status, String) {
    let now = report.generated_at;
    match &report.leader {
        None if report.unread.iter().any(|why| why.starts_with("leader")) => {
            (Status::Unknown, "leader: could not be read".to_owned())
        }
        None => (Status::Warn, "leader: none, nobody ever led here; is `maint serve` deployed?".to_owned()),
        Some(Leader { holder, renewed, .. }) if holder.is_empty() => {
            let when = renewed.map(|at| format!(", released {} ago", since(at, now))).unwrap_or_default();
            (Status::Warn, format!("leader: none{when}"))
        }
        Some(Leader { holder, renewed, alive }) => {
            let when =
                renewed.map_or_else(|| "never renewed".to_owned(), |at| format!("renewed {} ago", since(at, now)));
            let (worth, dead) = if *alive { (Status::Pass, "") } else { (Status::Warn, ": it does not lead any more") };
            (worth, format!("leader: {holder}, {when}{dead}"))
        }
    }
}

fn node_table(nodes: &[NodeRow]) -> String {
    let mut rows = vec![["NAME", "READY", "CORDONED-BY", "HOLD", "PROVEN"].map(str::to_owned).to_vec()];
    for node in nodes {
        let ready = match node.ready.as_str() {
            "True" => "yes",
            "False" => "NO",
            _ => "unknown",
        };
        let proven = if node.proven == "no" { "no, booted since" } else { node.proven };
        let or_dash = |text: &Option<String>| text.as_ref().map_or_else(|| "-".to_owned(), |text| tame(text));
        rows.push(vec![
            tame(&node.name),
            ready.to_owned(),
            or_dash(&node.cordoned_by),
            or_dash(&node.hold),
            proven.to_owned(),
        ]);
    }
    table(&rows)
}

fn runs(text: &mut String, report: &StatusReport) {
    if report.runs.is_empty() {
        return;
    }
    let now = report.generated_at;
    let in_line = report.runs.iter().filter(|run| run.place.is_some()).count();
    let mut rows = vec![["RUN", "NODE", "PHASE", "SINCE", "DEADLINE", "MESSAGE"].map(str::to_owned).to_vec()];
    for run in &report.runs {
        rows.push(vec![
            tame(&run.name),
            tame(&run.node),
            phase_cell(run, in_line),
            run.since.map_or_else(|| "-".to_owned(), |at| since(at, now)),
            run.deadline.map_or_else(|| "-".to_owned(), |at| at.strftime("%H:%M:%SZ").to_string()),
            tame(&run.message),
        ]);
    }
    let _ = write!(text, "\n{}", table(&rows));
    if let Some(held) = report.runs.iter().find(|run| run.phase == Phase::Held.as_str()) {
        let _ = writeln!(text, "\n  maint show {}", tame(&held.name));
    }
}

/// The phase, with the place in line of a wish.
fn phase_cell(run: &RunRow, in_line: usize) -> String {
    match (run.place, run.passed_over) {
        (Some(place), _) => format!("{}, {place} of {in_line} in line", run.phase),
        (None, true) => format!("{}, passed over", run.phase),
        (None, false) => run.phase.clone(),
    }
}

#[cfg(test)]
mod tests;
