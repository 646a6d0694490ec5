//! Lanes, limits, and answers that come one by one.

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use maint_core::api::record::{Maintenance, MaintenanceStatus};
use maint_core::plan::Act;

use super::*;
use crate::drive::watch::{Changed, Changes, NodeState, Watched, Watches};
use crate::execute::{StateWrite, WriteError};
use crate::runtime::Clock;

/// As many as the settings say by default.
const IN_FLIGHT: usize = 16;

/// What the API answers: by the pod's name, after so many milliseconds; "hang" never.
struct Api {
    clock: Clock,
    sent: Mutex<Vec<(String, u128, Seen)>>,
    begun: Instant,
    now: Mutex<(usize, usize)>,
}

impl Api {
    fn new(clock: &Clock) -> Self {
        Self { clock: clock.clone(), sent: Mutex::default(), begun: clock.instant(), now: Mutex::default() }
    }

    fn millis(&self) -> u128 {
        self.clock.instant().duration_since(self.begun).as_millis()
    }

    fn sent(&self) -> Vec<String> {
        let sent = self.sent.lock().expect("not poisoned");
        sent.iter().map(|(name, at, _)| format!("{name}@{at}")).collect()
    }

    fn most(&self) -> usize {
        self.now.lock().expect("not poisoned").1
    }
}

impl Fenced for Api {
    async fn write_status(
        &self,
        _: &LeaseGuard,
        _: &Maintenance,
        _: &MaintenanceStatus,
    ) -> Result<Maintenance, WriteError> {
        Err(WriteError::Invalid("not asked for".to_owned()))
    }

    async fn write_state(&self, _: &LeaseGuard, _: &StateWrite) -> Result<(), WriteError> {
        Err(WriteError::Invalid("not asked for".to_owned()))
    }

    async fn evict(&self, guard: &LeaseGuard, _: &str, eviction: &Eviction, seen: Seen) -> Result<Answer, WriteError> {
        guard.check(Duration::ZERO).map_err(|error| WriteError::NotLeading(error.to_string()))?;
        self.sent.lock().expect("not poisoned").push((eviction.name.clone(), self.millis(), seen));
        {
            let mut now = self.now.lock().expect("not poisoned");
            now.0 += 1;
            now.1 = now.1.max(now.0);
        }
        let (what, millis) = eviction.name.split_once('-').unwrap_or((&eviction.name, "0"));
        if what == "hang" {
            std::future::pending::<()>().await;
        }
        let millis = millis.split('-').next().and_then(|millis| millis.parse().ok()).unwrap_or(0);
        self.clock.sleep(Duration::from_millis(millis)).await;
        self.now.lock().expect("not poisoned").0 -= 1;
        let message = "no".to_owned();
        Ok(match what {
            "full" => Answer::RefusedByBudget { budget: None, message, retry_after_seconds: None },
            "busy" => Answer::Throttled { retry_after_seconds: Some(1) },
            _ => Answer::Accepted,
        })
    }

    async fn perform(&self, _: &LeaseGuard, _: &Maintenance, _: &Act) -> Result<(), WriteError> {
        Err(WriteError::Invalid("not asked for".to_owned()))
    }
}

/// A watch that shows these pods at the beginning, then the rest, each after so many milliseconds, and never ends.
struct Script(Clock, Vec<(u64, &'static str, bool, bool)>);

impl Watches for Script {
    fn open(&self, watched: &Watched, _: Duration) -> BoxFuture<'static, Result<Changes, String>> {
        let events = if matches!(watched, Watched::PodsOn(_)) { self.1.clone() } else { Vec::new() };
        let clock = self.0.clone();
        let told = stream::iter(events).then(move |(millis, uid, deleting, gone)| {
            let clock = clock.clone();
            async move {
                clock.sleep(Duration::from_millis(millis)).await;
                let annotations = BTreeMap::new();
                Ok(Changed {
                    name: uid.to_owned(),
                    uid: uid.to_owned(),
                    gone,
                    asked: (0, deleting),
                    allows: false,
                    annotations,
                    node: NodeState::default(),
                })
            }
        });
        let changes: Changes = Box::pin(told.chain(stream::pending()));
        async move { Ok(changes) }.boxed()
    }
}

fn eviction(name: &str, lane: &str) -> Eviction {
    let lane = if lane.is_empty() { Lane::Pod(name.to_owned()) } else { Lane::Budget(lane.to_owned()) };
    Eviction {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        uid: name.to_owned(),
        grace_seconds: None,
        lane,
        origin: None,
        basis: String::new(),
    }
}

fn clock() -> Clock {
    Clock::simulated("2026-11-30T02:00:00Z".parse().expect("a time"))
}

/// Sends for so long, after each of these steps at its millisecond.
async fn play(steps: &[(u64, &[(&str, &str)])], watch: Option<Script>, seconds: u64) -> (Api, Evictions, u64) {
    let clock = clock();
    let api = Api::new(&clock);
    let (evictions, nudges) = (Evictions::default(), Nudges::default());
    let guard = LeaseGuard::of_test(&clock, Duration::from_secs(3600));
    let watch = watch.map(|script| Arc::new(script) as Arc<dyn Watches>);
    let pods = Pods::new(watch, "n1".to_owned());
    pods.want(true);
    let wire = Wire { fenced: &api, guard: &guard, clock: &clock, pods: &pods, at_a_time: IN_FLIGHT, nudges: &nudges };
    let mut wakes = 0;
    let driver = async {
        for (millis, step) in steps {
            clock.sleep_until(api.begun + Duration::from_millis(*millis)).await;
            let list: Vec<Eviction> = step.iter().map(|(name, lane)| eviction(name, lane)).collect();
            evictions.ask(&list, clock.instant() + VALID, &clock);
        }
        clock.sleep_until(api.begun + Duration::from_secs(seconds)).await;
    };
    let counted = async {
        loop {
            nudges.nudged().await;
            wakes += 1;
        }
    };
    let deaf = Nudges::default();
    tokio::select! {
        biased;
        never = pods.keep(&clock, &deaf) => match never {},
        never = evictions.send(&wire) => match never {},
        () = counted => {}
        () = driver => {}
    }
    (api, evictions, wakes)
}

fn remembered(evictions: &Evictions) -> Vec<String> {
    let answers = evictions.answers();
    answers.last().into_iter().map(|one| format!("{} {}", one.eviction.name, one.answer.category())).collect()
}

#[tokio::test(start_paused = true)]
async fn one_of_a_lane_is_on_its_way_and_a_refusal_is_told_at_once() {
    // The slowest of them keeps neither the answers of the others back nor the rest of another lane.
    let step: &[(&str, &str)] =
        &[("ok-100-a", "x"), ("ok-100-b", "x"), ("ok-5000", ""), ("full-250", "y"), ("ok-1", "y")];
    let (api, evictions, wakes) = play(&[(0, step)], None, 3).await;
    assert_eq!(api.sent(), ["ok-100-a@0", "ok-5000@0", "full-250@0", "ok-100-b@100"]);
    let told = ["ok-100-a accepted", "ok-100-b accepted", "full-250 refused-by-budget"];
    assert_eq!((remembered(&evictions), wakes), (told.map(str::to_owned).to_vec(), 1));
}

#[tokio::test(start_paused = true)]
async fn no_more_than_the_limit_are_on_their_way() {
    let names: Vec<String> = (0..40).map(|index| format!("ok-1000-{index}")).collect();
    let step: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    let (api, evictions, _) = play(&[(0, &step)], None, 8).await;
    assert_eq!((api.sent().len(), api.most(), evictions.answers().last().len()), (40, IN_FLIGHT, 40));
}

#[tokio::test(start_paused = true)]
async fn the_next_step_replaces_what_was_not_sent() {
    let first: &[(&str, &str)] = &[("ok-2000", "x"), ("ok-1", "x")];
    let rows: [(&str, &[(u64, &[(&str, &str)])], &[&str]); 6] = [
        ("nothing more is wanted", &[(0, first), (500, &[])], &["ok-2000@0"]),
        ("the lane is still in use", &[(0, first), (500, &[("ok-7", "x")])], &["ok-2000@0", "ok-7@2000"]),
        ("it is on its way already", &[(0, first), (500, &[("ok-2000", "x")])], &["ok-2000@0"]),
        ("refused just now", &[(0, &[("full-0", "")]), (150, &[("full-0", "")])], &["full-0@0"]),
        ("refused a while ago", &[(0, &[("full-0", "")]), (1500, &[("full-0", "")])], &["full-0@0", "full-0@1500"]),
        ("too late: its gates were asked long ago", &[(0, &[("ok-11000", "x"), ("ok-1", "x")])], &["ok-11000@0"]),
    ];
    for (row, steps, wanted) in rows {
        let (api, _, _) = play(steps, None, 14).await;
        assert_eq!(api.sent(), wanted, "{row}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_about_us_stops_all_that_was_not_sent() {
    let step: &[(&str, &str)] = &[("busy-100", "x"), ("ok-1", "x"), ("ok-150", "y"), ("ok-2", "y")];
    let (api, evictions, _) = play(&[(0, step)], None, 3).await;
    assert_eq!(api.sent(), ["busy-100@0", "ok-150@0"]);
    assert_eq!(remembered(&evictions), ["busy-100 throttled", "ok-150 accepted"]);
    // Its Retry-After of a second holds for all pods, until 1100 here.
    let steps: &[(u64, &[(&str, &str)])] =
        &[(0, &[("busy-100", "")]), (1000, &[("ok-1", "")]), (1200, &[("ok-2", "")])];
    let (api, _, _) = play(steps, None, 3).await;
    assert_eq!(api.sent(), ["busy-100@0", "ok-2@1200"]);
}

#[tokio::test(start_paused = true)]
async fn the_watch_is_asked_right_before_and_stands_in_for_a_lost_answer() {
    let clock = clock();
    let script = |events: &[(u64, &'static str, bool, bool)]| Some(Script(clock.clone(), events.to_vec()));
    let step: &[(&str, &str)] = &[("hang", "x"), ("ok-1", "x"), ("ok-2", "")];
    let rows: [(&str, Option<Script>, &[&str], &[&str]); 4] = [
        ("no watch", None, &["hang@1", "ok-2@1"], &["ok-2 accepted"]),
        (
            "gone before",
            script(&[(0, "hang", false, true), (0, "ok-1", true, false)]),
            &["ok-2@1"],
            &["hang gone", "ok-1 accepted", "ok-2 accepted"],
        ),
        (
            "it ends while the answer is waited for",
            script(&[(0, "hang", false, false), (300, "hang", true, false)]),
            &["hang@1", "ok-2@1", "ok-1@2300"],
            &["ok-2 accepted", "hang accepted", "ok-1 accepted"],
        ),
        (
            "it goes while the answer is waited for",
            script(&[(0, "hang", false, false), (300, "hang", false, true)]),
            &["hang@1", "ok-2@1", "ok-1@2300"],
            &["ok-2 accepted", "hang gone", "ok-1 accepted"],
        ),
    ];
    for (row, watch, sent, answers) in rows {
        let shows_ok_2 = watch.as_ref().is_some_and(|script| script.1.iter().any(|event| event.1 == "ok-2"));
        let (api, evictions, _) = play(&[(1, step)], watch, 9).await;
        assert_eq!(api.sent(), sent, "{row}");
        assert_eq!(remembered(&evictions), answers, "{row}");
        let seen = api.sent.lock().expect("not poisoned").iter().find(|one| one.0 == "ok-2").map(|one| one.2);
        assert_eq!(seen, Some(if shows_ok_2 { Seen::There } else { Seen::Unknown }), "{row}");
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_else_is_done_waits_until_none_is_on_its_way() {
    let clock = clock();
    let api = Api::new(&clock);
    let (evictions, nudges) = (Evictions::default(), Nudges::default());
    let guard = LeaseGuard::of_test(&clock, Duration::from_secs(3600));
    let pods = Pods::new(None, "n1".to_owned());
    let wire = Wire { fenced: &api, guard: &guard, clock: &clock, pods: &pods, at_a_time: IN_FLIGHT, nudges: &nudges };
    evictions.ask(&[eviction("ok-3000", ""), eviction("full-1000", "")], clock.instant() + VALID, &clock);
    let waits = async {
        evictions.quiet().await;
        let before = api.millis();
        clock.sleep(Duration::from_millis(10)).await;
        evictions.quiet().await;
        (before, api.millis())
    };
    let found = tokio::select! {
        biased;
        never = evictions.send(&wire) => match never {},
        found = waits => found,
    };
    assert_eq!(found, (3000, 3010));
}

#[tokio::test(start_paused = true)]
async fn without_the_lease_nothing_is_sent_and_nothing_remembered() {
    let clock = clock();
    let api = Api::new(&clock);
    let (evictions, nudges) = (Evictions::default(), Nudges::default());
    let guard = LeaseGuard::of_test(&clock, Duration::from_secs(5));
    let pods = Pods::new(None, "n1".to_owned());
    let wire = Wire { fenced: &api, guard: &guard, clock: &clock, pods: &pods, at_a_time: IN_FLIGHT, nudges: &nudges };
    clock.sleep(Duration::from_secs(6)).await;
    evictions.ask(&[eviction("ok-0", ""), eviction("ok-1", "")], clock.instant() + VALID, &clock);
    tokio::select! {
        biased;
        never = evictions.send(&wire) => match never {},
        () = clock.sleep(Duration::from_secs(1)) => {}
    }
    assert_eq!((api.sent(), evictions.answers()), (Vec::new(), Answers::default()));
}
