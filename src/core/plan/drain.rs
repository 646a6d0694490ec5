//! Which pods go next, and what the record says of it. What may go is decided in [`crate::drain`].

use jiff::Timestamp;

use super::Act;
use super::run::{LOOK_SECONDS, Run, SOON_SECONDS};
use super::time::{after, parse_time, stamp};
use crate::api::Phase;
use crate::api::record::DrainRecord;
use crate::drain::{Awaits, DrainPlan, Eviction, Next, Question, View, Wait, Waiting, Warning, WarningKind, next};
use crate::facts::Maintenance as Record;

/// Names kept of who is still there.
const MAX_WAITING: usize = 20;
/// After so many seconds of its drain a run has seen the record of every drain that began before it.
const SEEN_SECONDS: i64 = 3;
/// Workloads that are named of those that are short of replicas meanwhile.
const MAX_SHORT: usize = 5;
/// How often parked pods are looked at when nothing wakes: a change of a budget does.
const PARKED_SECONDS: i64 = LOOK_SECONDS / 2;

/// What the node's pods say.
pub(super) enum Drained {
    /// The pods could not be read, or one of them could not be understood.
    Unknown,
    /// Nothing that must go is left.
    Empty,
    /// These are evicted now, none where all only wait, and for what.
    Goes(Vec<Eviction>, Awaits),
    /// No eviction will ever be accepted.
    Never(String),
}

/// The node's pods, but for those that we put there ourselves.
fn view<'a>(run: &Run<'a>) -> Result<View<'a>, String> {
    let question =
        Question { node: run.node_name(), settings: run.input.settings, action: run.action().ok(), now: run.input.now };
    let mut view = View::of(run.input.facts, &question, |pod| run.is_short_pod(pod))?;
    view.sets_after = drained_first(run);
    Ok(view)
}

/// The node of another run whose drain comes before this one. Records that could not be read are asked about by the gate
/// `exclusive`, at each look.
fn drained_first(run: &Run<'_>) -> Option<String> {
    let began = parse_time(run.status.step_started_at.as_ref());
    first_of((began, run.uid()), run.input.facts.maintenances.good(), run.input.now)
}

/// Of several drains that which began first is first, then by uid. Times of records are whole seconds: until each of two
/// has certainly seen the other, neither is.
fn first_of<'r>(
    (began, uid): (Option<Timestamp>, &str),
    records: impl Iterator<Item = &'r Record>,
    now: Timestamp,
) -> Option<String> {
    let began = began.unwrap_or(now);
    let young = now < after(began, SEEN_SECONDS);
    // One that does not say since when is taken for the first.
    let key = |at: Option<Timestamp>, uid: &'r str| (at.unwrap_or(Timestamp::MIN), uid);
    let others = records.filter(|one| one.phase == Phase::Draining.as_str() && one.metadata.uid != uid);
    let first = others.min_by_key(|one| key(one.step_started, &one.metadata.uid))?;
    let before = key(first.step_started, &first.metadata.uid) < (began, uid);
    (young || before).then(|| first.node_name.clone())
}

/// Looks at the node's pods, keeps the numbers in the record, and says who is asked now.
pub(super) fn look(run: &mut Run<'_>) -> Drained {
    let Ok(view) = view(run) else { return Drained::Unknown };
    let found = next(&view, run.input.answers, run.input.now);
    if run.status.drain.is_none() {
        begin(run, &view);
    }
    keep(run, &found);
    if found.waiting.is_empty() {
        return Drained::Empty;
    }
    run.look_again_in(pace(&found.waiting, run.input.watched));
    if let Some(deadline) = parse_time(run.status.deadline.as_ref()) {
        run.wake_at = run.wake_at.min(deadline.max(run.input.now));
    }
    if let Some(at) = found.wake_at {
        run.wake_at = run.wake_at.min(at.max(run.input.now));
    }
    match found.fatal {
        Some(why) => Drained::Never(why),
        None => Drained::Goes(found.send, found.awaits),
    }
}

/// The drain ends before it is done: how many went until now, where that can be told. Numbers of a drain are written late.
pub(super) fn count_at_last(run: &mut Run<'_>) {
    if run.status.drain.is_none() {
        return;
    }
    if let Ok(view) = view(run) {
        keep(run, &next(&view, run.input.answers, run.input.now));
    }
}

/// The gates agree: these go, and the drain waits for that.
pub(super) fn go_on(run: &mut Run<'_>, next: Vec<Eviction>, awaits: Awaits) {
    run.awaits = Some(awaits);
    if !next.is_empty() {
        run.act(Act::Evict(next));
    }
}

/// How soon to look again when nothing wakes. A watch tells when pods are gone; what comes of an eviction, and of a
/// StatefulSet, only a look tells.
fn pace(waiting: &[Waiting], watched: bool) -> i64 {
    let any = |which: fn(&Wait) -> bool| waiting.iter().any(|one| which(&one.why));
    let soon = any(|why| why.is_asked() || matches!(why, Wait::StatefulSet { .. }));
    if soon || (!watched && any(Wait::is_leaving)) {
        SOON_SECONDS
    } else if waiting.iter().all(|one| one.why.is_leaving()) {
        LOOK_SECONDS
    } else {
        PARKED_SECONDS
    }
}

/// Names of pods that are on the node although it was drained; none where that is not known.
pub(super) fn back_again(run: &Run<'_>) -> Option<Vec<String>> {
    let view = view(run).ok()?;
    Some(view.going().map(|entry| entry.pod.metadata.full_name()).collect())
}

/// What the drain will be like, once, in the timeline.
fn begin(run: &mut Run<'_>, view: &View<'_>) {
    let deadline =
        run.status.limits.as_ref().map_or(run.settings().drain_timeout_seconds, |limits| limits.drain_seconds);
    let plan = DrainPlan::of(view, deadline);
    run.note(plan.verdict_line());
    let kinds = [WarningKind::SingleReplica, WarningKind::AllReplicasHere];
    let short: Vec<_> = plan.warnings.iter().filter(|one| kinds.contains(&one.kind)).collect();
    if let Some(told) = short_of_replicas(&short) {
        run.note(told);
    }
    for silent in plan.warnings.iter().filter(|one| one.kind == WarningKind::KubeletSilent) {
        run.note(format!("{} {}", silent.object, silent.message));
    }
}

/// Who is without a replica meanwhile, and what helps the first one that can be helped.
fn short_of_replicas(short: &[&Warning]) -> Option<String> {
    let more = short.len().saturating_sub(MAX_SHORT);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    let named = short.iter().take(MAX_SHORT).map(|one| one.object.as_str()).collect::<Vec<_>>().join(", ");
    let helps = short.iter().find(|one| !one.remedy.is_empty());
    let helps = helps.map_or_else(String::new, |one| format!("; {}: {}", one.object, one.remedy));
    (!short.is_empty()).then(|| format!("without a replica elsewhere, and away for a while: {named}{more}{helps}"))
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn keep(run: &mut Run<'_>, found: &Next) {
    let left = count(found.waiting.len());
    let mut drain = run.status.drain.take().unwrap_or_else(|| DrainRecord { planned: left, ..DrainRecord::default() });
    drain.left = left;
    drain.evicted = drain.evicted.max(drain.planned - left + count(found.ending));
    let shown = found.waiting.iter().take(MAX_WAITING);
    drain.waiting = shown.map(|one| line(one, &drain.waiting, &stamp(run.input.now))).collect();
    run.status.drain = Some(drain);
}

/// Who is still there, why and since when; a line of before that says the same keeps its time.
fn line(waiting: &Waiting, before: &[String], now: &str) -> String {
    let begins = format!("{} {}", waiting.full_name(), waiting.why.lead());
    if matches!(waiting.why, Wait::Ending { .. } | Wait::Stuck { .. }) {
        // When it is or was due says more than since when.
        let detail = waiting.why.detail();
        return if detail.is_empty() { begins } else { format!("{begins}: {detail}") };
    }
    if matches!(waiting.why, Wait::Asked | Wait::OnItsWay)
        && let Some(kept) = before.iter().find(|line| is_held(line, &waiting.full_name()))
    {
        // Asked once more: until there is another answer, the last one is what is known.
        return kept.clone();
    }
    let begins = format!("{begins}, since ");
    let same = before.iter().find_map(|line| line.strip_prefix(&begins)).and_then(|rest| rest.get(..now.len()));
    let since = same.filter(|since| parse_time(Some(&(*since).to_owned())).is_some()).unwrap_or(now);
    let detail = waiting.why.detail();
    if detail.is_empty() { format!("{begins}{since}") } else { format!("{begins}{since}: {detail}") }
}

/// Whether a line says that something held this pod.
fn is_held(line: &str, name: &str) -> bool {
    let says = line.strip_prefix(name).and_then(|rest| rest.strip_prefix(' '));
    says.is_some_and(|says| {
        ["was refused", "was denied", "was not evicted", "is blocked", "is on the node again"]
            .iter()
            .any(|one| says.starts_with(one))
    })
}

/// Who is still there, in one line.
pub(super) fn waiting_line(run: &Run<'_>) -> String {
    let Some(drain) = &run.status.drain else { return "the node's pods could not be read".to_owned() };
    if drain.left == 0 {
        return "they are gone now, and gates held it up".to_owned();
    }
    let shown = count(drain.waiting.len());
    let more = if drain.left > shown { format!("; and {} more", drain.left - shown) } else { String::new() };
    format!("{}{more}", drain.waiting.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drain::Never;

    #[test]
    fn of_two_drains_the_one_that_began_first_is_first() {
        let at = |second: i64| Timestamp::from_second(1_796_000_000 + second).expect("a time");
        let record = |uid: &str, node: &str, phase: &str, began: Option<i64>| {
            let document = serde_json::json!({"metadata": {"name": uid, "uid": uid}, "spec": {"nodeName": node},
                "status": {"phase": phase, "stepStartedAt": began.map(|second| at(second).to_string())}});
            match <Record as crate::facts::Source>::item(&document) {
                crate::facts::Item::Good(found) => found,
                crate::facts::Item::Malformed(bad) => panic!("{bad}"),
            }
        };
        let own = || record("m", "n1", "Draining", Some(10));
        let rows = [
            ("alone", vec![own()], 60, None),
            ("before", vec![own(), record("z", "n2", "Draining", Some(9))], 60, Some("n2")),
            ("after", vec![own(), record("a", "n2", "Draining", Some(11))], 60, None),
            ("after, and not seen for sure", vec![own(), record("a", "n2", "Draining", Some(11))], 12, Some("n2")),
            ("in the same second, by uid", vec![own(), record("a", "n2", "Draining", Some(10))], 13, Some("n2")),
            ("in the same second, ours", vec![own(), record("z", "n2", "Draining", Some(10))], 13, None),
            ("since when is not told", vec![own(), record("z", "n2", "Draining", None)], 60, Some("n2")),
            ("in another phase", vec![own(), record("a", "n2", "Returning", Some(1))], 12, None),
            (
                "the first of several",
                vec![record("a", "n2", "Draining", Some(9)), record("b", "n3", "Draining", Some(8)), own()],
                60,
                Some("n3"),
            ),
        ];
        for (row, records, now, wanted) in rows {
            let found = first_of((Some(at(10)), "m"), records.iter(), at(now));
            assert_eq!(found.as_deref(), wanted, "{row}");
        }
    }

    #[test]
    fn who_is_away_meanwhile_is_told_with_what_helps() {
        let of = |name: &str, remedy: &str| Warning {
            kind: WarningKind::SingleReplica,
            object: format!("ReplicaSet shop/{name}"),
            message: "has one replica".into(),
            remedy: remedy.into(),
        };
        let (db, web) = (of("db", ""), of("web", "kubectl -n shop scale deployment web --replicas=2"));
        assert_eq!(short_of_replicas(&[]), None);
        let begins = "without a replica elsewhere, and away for a while: ReplicaSet shop/db";
        assert_eq!(short_of_replicas(&[&db]).as_deref(), Some(begins));
        let wanted = format!(
            "{begins}, ReplicaSet shop/web; ReplicaSet shop/web: kubectl -n shop scale deployment web --replicas=2"
        );
        assert_eq!(short_of_replicas(&[&db, &web]), Some(wanted));
    }

    #[test]
    fn a_line_keeps_its_time_while_it_says_the_same() {
        let now = "2026-11-30T01:00:09Z";
        let at = |text: &str| text.parse().expect("a time");
        let of = |why: Wait| Waiting { namespace: "shop".into(), name: "web-0".into(), uid: "u".into(), why };
        let never = || of(Wait::Never(Never::NoController));
        let refused =
            |message: &str| of(Wait::Refused { budget: Some("web".into()), message: message.into(), until: at(now) });
        let same = "shop/web-0 was refused by budget web, since 2026-11-30T01:00:00Z: it has 1";
        let rows = [
            (
                "first",
                never(),
                vec![],
                "shop/web-0 is not evicted: it has no controller, so nothing would bring it back, since 2026-11-30T01:00:09Z",
            ),
            (
                "another number",
                refused("it has 2."),
                vec![same],
                "shop/web-0 was refused by budget web, since 2026-11-30T01:00:00Z: it has 2",
            ),
            (
                "another pod's",
                refused("no"),
                vec!["shop/web-00 was refused by budget web, since 2026-11-30T01:00:00Z: no"],
                "shop/web-0 was refused by budget web, since 2026-11-30T01:00:09Z: no",
            ),
            (
                "another reason",
                never(),
                vec![same],
                "shop/web-0 is not evicted: it has no controller, so nothing would bring it back, since 2026-11-30T01:00:09Z",
            ),
            (
                "no time there",
                refused("no"),
                vec!["shop/web-0 was refused by budget web, since some time ago, or so"],
                "shop/web-0 was refused by budget web, since 2026-11-30T01:00:09Z: no",
            ),
            (
                "cut",
                refused("no"),
                vec!["shop/web-0 was refused by budget web, since 2026"],
                "shop/web-0 was refused by budget web, since 2026-11-30T01:00:09Z: no",
            ),
            ("asked once more", of(Wait::Asked), vec![same], same),
            (
                "back once more",
                of(Wait::Back { times: 2, tolerates_cordon: true, until: at(now) }),
                vec!["shop/web-0 is on the node again after its eviction, since 2026-11-30T01:00:00Z: evicted once"],
                "shop/web-0 is on the node again after its eviction, since 2026-11-30T01:00:00Z: evicted 2 times, and it \
                 tolerates the cordon: take that toleration away, scale it down, or leave it here by a rule",
            ),
            (
                "asked for the first time",
                of(Wait::Asked),
                vec![],
                "shop/web-0 is asked to go, since 2026-11-30T01:00:09Z",
            ),
            (
                "asked after its turn came",
                of(Wait::Asked),
                vec!["shop/web-0 waits for its turn, since 2026-11-30T01:00:00Z"],
                "shop/web-0 is asked to go, since 2026-11-30T01:00:09Z",
            ),
            (
                "ending",
                of(Wait::Ending { due: at(now), finalizers: vec![] }),
                vec![],
                "shop/web-0 is ending, due 2026-11-30T01:00:09Z",
            ),
            (
                "ending, past its time",
                of(Wait::Ending { due: at(now), finalizers: vec!["x".into()] }),
                vec![],
                "shop/web-0 is ending, due 2026-11-30T01:00:09Z: it has the finalizers x",
            ),
            (
                "stuck",
                of(Wait::Stuck { due: at(now), finalizers: vec!["x".into()], kubelet_silent: false }),
                vec![],
                "shop/web-0 is stuck: it should have ended by 2026-11-30T01:00:09Z: it has the finalizers x",
            ),
        ];
        for (row, waiting, before, wanted) in rows {
            let before: Vec<String> = before.into_iter().map(str::to_owned).collect();
            assert_eq!(line(&waiting, &before, now), wanted, "{row}");
        }
    }
}
