//! Candidates in virtual time over one Lease in memory, with everything that goes wrong on the way to it.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use jiff::SignedDuration;
use maint_core::config::Election;
use maint_core::election::{Answer, LeaseRecord, Lost, Seen, Term, Version};

use super::elector::candidate;
use super::guard::Validity;
use super::*;
use crate::runtime::{Clock, Env, TaskOwner};

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// It never arrives and is never answered.
    Hang,
    /// It is done, and the answer never comes.
    LostAnswer,
    /// Somebody else's write came first.
    Conflict,
    /// It is done, and the answer takes so many seconds.
    Slow(u64),
    /// The server says no.
    Refused,
}

#[derive(Debug, Default)]
struct Api {
    lease: Option<Seen>,
    version: u64,
    /// Every holder that was written, with its term.
    history: Vec<(String, i64)>,
}

/// One candidate's way to the Lease.
#[derive(Clone)]
struct Way {
    api: Arc<Mutex<Api>>,
    clock: Clock,
    /// For the next requests, one each.
    faults: Arc<Mutex<VecDeque<Fault>>>,
    /// While set, all requests hang.
    cut: Arc<AtomicBool>,
    moves: Arc<Mutex<u32>>,
}

impl Way {
    async fn ask(&self, act: impl FnOnce(&mut Api) -> Answer) -> Answer {
        self.clock.sleep(Duration::from_millis(20)).await;
        if self.cut.load(Ordering::SeqCst) {
            return std::future::pending().await;
        }
        let fault = self.faults.lock().expect("lock").pop_front();
        match fault {
            Some(Fault::Hang) => return std::future::pending().await,
            Some(Fault::Conflict) => return Answer::Conflict,
            Some(Fault::Refused) => return Answer::Failed("503".to_owned()),
            Some(Fault::LostAnswer | Fault::Slow(_)) | None => {}
        }
        let answer = act(&mut self.api.lock().expect("lock"));
        match fault {
            Some(Fault::LostAnswer) => std::future::pending().await,
            Some(Fault::Slow(seconds)) => {
                self.clock.sleep(Duration::from_secs(seconds)).await;
                answer
            }
            _ => answer,
        }
    }
}

impl Api {
    fn write(&mut self, record: LeaseRecord) -> Answer {
        self.version += 1;
        self.history.push((record.holder.split('_').next().unwrap_or_default().to_owned(), record.term.0));
        let version = Version { uid: "u".to_owned(), resource_version: self.version.to_string() };
        self.lease = Some(Seen { record, version });
        Answer::Seen(self.lease.clone().expect("written"))
    }
}

impl LeaseStore for Way {
    async fn get(&self) -> Answer {
        self.ask(|api| api.lease.clone().map_or(Answer::NotFound, Answer::Seen)).await
    }

    async fn create(&self, record: LeaseRecord) -> Answer {
        self.ask(|api| if api.lease.is_some() { Answer::Conflict } else { api.write(record) }).await
    }

    async fn update(&self, record: LeaseRecord, version: Version) -> Answer {
        self.ask(|api| match &api.lease {
            None => Answer::NotFound,
            Some(seen) if seen.version != version => Answer::Conflict,
            Some(_) => api.write(record),
        })
        .await
    }

    fn move_on(&self) {
        *self.moves.lock().expect("lock") += 1;
    }
}

/// A process that can be stopped, as by SIGSTOP: nothing in it runs, its clocks do.
struct Stoppable<F> {
    stopped: Arc<AtomicBool>,
    inner: Pin<Box<F>>,
}

impl<F: Future<Output = ()>> Future for Stoppable<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.stopped.load(Ordering::SeqCst) { Poll::Pending } else { self.inner.as_mut().poll(context) }
    }
}

struct Replica {
    way: Way,
    candidacy: Candidacy,
    stopped: Arc<AtomicBool>,
    task: tokio::task::AbortHandle,
}

impl Replica {
    fn guard(&self) -> Option<LeaseGuard> {
        match &*self.candidacy.leadership().borrow() {
            Leadership::Leading(guard) => Some(guard.clone()),
            _ => None,
        }
    }

    fn fault(&self, faults: &[Fault]) {
        self.way.faults.lock().expect("lock").extend(faults);
    }
}

struct Cluster {
    env: Env,
    _owner: TaskOwner,
    api: Arc<Mutex<Api>>,
}

impl Cluster {
    fn new() -> Self {
        let (env, owner) = Env::simulated("2026-11-30T01:00:00Z".parse().expect("a time"), 7);
        Self { env, _owner: owner, api: Arc::default() }
    }

    fn replica(&self, pod: &str) -> Replica {
        let way = Way {
            api: Arc::clone(&self.api),
            clock: self.env.clock.clone(),
            faults: Arc::default(),
            cut: Arc::default(),
            moves: Arc::default(),
        };
        let (candidacy, work) = candidate(&self.env, way.clone(), &Election::default(), pod).expect("good settings");
        let stopped = Arc::new(AtomicBool::new(false));
        let work = Stoppable { stopped: Arc::clone(&stopped), inner: Box::pin(work) };
        let task = self.env.tasks.spawn(work).abort_handle();
        Replica { way, candidacy, stopped, task }
    }

    /// A released Lease is there, as after a rolling update.
    fn released(self) -> Self {
        self.api.lock().expect("lock").write(LeaseRecord { term: Term(4), ..LeaseRecord::default() });
        self
    }

    /// Lets time go by, looks every 50 ms, and wants never more than one valid guard. Gives the seconds after which
    /// each of the replicas led first.
    async fn watch(&self, seconds: u64, replicas: &[&Replica]) -> Vec<Option<f64>> {
        let mut led = vec![None; replicas.len()];
        let begun = self.env.clock.instant();
        for _ in 0..seconds * 20 {
            self.env.clock.sleep(Duration::from_millis(50)).await;
            let valid: Vec<usize> = (0..replicas.len())
                .filter(|index| replicas[*index].guard().is_some_and(|guard| guard.check(Duration::ZERO).is_ok()))
                .collect();
            assert!(valid.len() < 2, "two leaders");
            for index in valid {
                led[index].get_or_insert(self.env.clock.instant().duration_since(begun).as_secs_f64());
            }
        }
        led
    }
}

#[tokio::test(start_paused = true)]
async fn one_of_two_leads_and_the_other_says_who() {
    let cluster = Cluster::new().released();
    let (a, b) = (cluster.replica("a"), cluster.replica("b"));
    let led = cluster.watch(120, &[&a, &b]).await;
    assert_eq!(led.iter().flatten().count(), 1, "{led:?}");
    let (leader, other) = if led[0].is_some() { (&a, &b) } else { (&b, &a) };
    let guard = leader.guard().expect("leads");
    assert_eq!(guard.term(), Term(5));
    assert_eq!(guard.check(Duration::from_secs(10)), Ok(Term(5)));
    let holder = Some(leader.candidacy.identity().to_owned());
    assert_eq!(*other.candidacy.leadership().borrow(), Leadership::Following { holder });
    assert!(
        cluster.api.lock().expect("lock").history[1..].iter().all(|entry| entry.1 == 5),
        "a renewal is no new term"
    );
}

#[tokio::test(start_paused = true)]
async fn without_a_lease_the_first_leader_waits_for_one_duration() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.replica("a"), cluster.replica("b"));
    let led = cluster.watch(60, &[&a, &b]).await;
    let first = led.iter().flatten().next().expect("one leads");
    assert!((30.0..36.0).contains(first), "{first}");
    assert_eq!(cluster.api.lock().expect("lock").history.last().expect("written").1, 1);
}

#[tokio::test(start_paused = true)]
async fn the_leader_survives_what_a_reboot_of_its_api_server_does() {
    use Fault::{Conflict, Hang, LostAnswer, Refused, Slow};
    let rows: [(&str, &[Fault]); 6] = [
        ("a hang", &[Hang]),
        ("two hangs", &[Hang, Hang]),
        ("an answer lost", &[LostAnswer]),
        ("an answer lost, then a hang", &[LostAnswer, Hang]),
        ("refused for a while", &[Refused, Refused, Refused]),
        ("a conflict that was none, and a slow answer", &[Conflict, Slow(4)]),
    ];
    for (name, faults) in rows {
        let cluster = Cluster::new().released();
        let leader = cluster.replica("a");
        cluster.watch(10, &[&leader]).await;
        let guard = leader.guard().expect(name);
        let other = cluster.replica("b");
        leader.fault(faults);
        let led = cluster.watch(120, &[&leader, &other]).await;
        assert_eq!(led[1], None, "{name}");
        assert_eq!(leader.guard(), Some(guard.clone()), "{name}: the same tenure");
        assert_eq!(guard.check(Duration::from_secs(10)), Ok(Term(5)), "{name}");
        let failures = faults.iter().filter(|fault| matches!(fault, Hang | LostAnswer | Refused)).count();
        assert_eq!(
            *leader.way.moves.lock().expect("lock") as usize,
            failures,
            "{name}: each goes on to another server"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_stops_before_another_begins() {
    let cluster = Cluster::new().released();
    let leader = cluster.replica("a");
    cluster.watch(10, &[&leader]).await;
    let guard = leader.guard().expect("leads");
    let token = guard.child_token();
    let other = cluster.replica("b");
    cluster.watch(10, &[&leader, &other]).await;
    leader.way.cut.store(true, Ordering::SeqCst);

    let led = cluster.watch(14, &[&leader, &other]).await;
    assert!(led[0].is_some(), "it still leads");
    let needed = Duration::from_secs(10);
    let refused = guard.check(needed).expect_err("too late for long calls");
    assert!(matches!(refused, NotLeading::TooShort { needed: n, .. } if n == needed), "{refused}");
    assert_eq!(refused.category(), "lease-too-short");
    assert!(!token.is_cancelled());

    let led = cluster.watch(60, &[&leader, &other]).await;
    assert!(led[1].expect("the other leads") < 30.0, "{led:?}");
    assert!(token.is_cancelled());
    assert_eq!(guard.check(Duration::ZERO), Err(NotLeading::Over { term: Term(5) }));
    let why = Leadership::Lost(Lost::NotRenewed(Duration::from_secs(20)));
    assert_eq!(*leader.candidacy.leadership().borrow(), why);
    assert_eq!(other.guard().expect("leads").term(), Term(6));
    leader.way.cut.store(false, Ordering::SeqCst);
    let led = cluster.watch(120, &[&leader, &other]).await;
    assert_eq!(led[0], None, "a process that lost does not stand again");
    assert_eq!(leader.candidacy.abstain(true).await, Err(Ended));
}

#[tokio::test(start_paused = true)]
async fn a_stopped_process_wakes_up_without_a_valid_guard() {
    let cluster = Cluster::new().released();
    let leader = cluster.replica("a");
    cluster.watch(10, &[&leader]).await;
    let guard = leader.guard().expect("leads");
    let other = cluster.replica("b");
    leader.stopped.store(true, Ordering::SeqCst);
    let led = cluster.watch(60, &[&leader, &other]).await;
    assert!(led[1].is_some(), "the other leads");
    // Its task has not run yet: the guard knows by itself.
    assert!(matches!(&*leader.candidacy.leadership().borrow(), Leadership::Leading(_)));
    assert_eq!(guard.check(Duration::ZERO), Err(NotLeading::Over { term: Term(5) }));
    leader.stopped.store(false, Ordering::SeqCst);
    // A wish wakes the task, as the signal to go on does.
    let _ = leader.candidacy.abstain(false).await;
    cluster.watch(5, &[&leader, &other]).await;
    assert!(matches!(&*leader.candidacy.leadership().borrow(), Leadership::Lost(_)));
}

#[tokio::test(start_paused = true)]
async fn slow_answers_begin_no_tenure() {
    let cluster = Cluster::new().released();
    let a = cluster.replica("a");
    a.fault(&[Fault::Slow(0), Fault::Slow(40), Fault::Slow(0), Fault::LostAnswer]);
    let b = cluster.replica("b");
    let led = cluster.watch(120, &[&a, &b]).await;
    assert_eq!(led.iter().flatten().count(), 1, "{led:?}");
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_abstains_hands_over() {
    let cluster = Cluster::new().released();
    let leader = cluster.replica("a");
    cluster.watch(10, &[&leader]).await;
    let guard = leader.guard().expect("leads");
    let other = cluster.replica("b");
    cluster.watch(10, &[&leader, &other]).await;

    leader.candidacy.abstain(true).await.expect("at work");
    cluster.watch(30, &[&leader, &other]).await;
    assert!(guard.check(Duration::from_secs(5)).is_ok(), "it leads until its work has stopped");
    assert_eq!(leader.candidacy.release().await, Ok(Release::Confirmed));
    assert_eq!(guard.check(Duration::ZERO), Err(NotLeading::Over { term: Term(5) }));
    let led = cluster.watch(200, &[&leader, &other]).await;
    assert!(led[0].is_none() && led[1].expect("the other leads") < 6.0, "{led:?}");

    // The other goes away without a word: the Lease runs out, and the abstaining one takes it.
    other.task.abort();
    cluster.watch(1, &[]).await;
    assert_eq!(*other.candidacy.leadership().borrow(), Leadership::Resigned, "its guard ended with its task");
    let led = cluster.watch(60, &[&leader]).await;
    assert!(led[0].expect("leads again") > 25.0, "{led:?}");
    assert_eq!(leader.guard().expect("leads").term(), Term(7));
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_not_confirmed_says_so() {
    let cluster = Cluster::new().released();
    let leader = cluster.replica("a");
    cluster.watch(10, &[&leader]).await;
    leader.way.cut.store(true, Ordering::SeqCst);
    assert_eq!(leader.candidacy.resign().await, Ok(Release::RunsOut));
    cluster.watch(1, &[]).await;
    assert_eq!(*leader.candidacy.leadership().borrow(), Leadership::Resigned);
    assert_eq!(leader.candidacy.resign().await, Err(Ended));
}

#[tokio::test(start_paused = true)]
async fn a_term_from_the_records_is_passed() {
    let cluster = Cluster::new();
    let leader = cluster.replica("a");
    leader.candidacy.known_term(Term(41)).await.expect("at work");
    cluster.watch(60, &[&leader]).await;
    assert_eq!(leader.guard().expect("leads").term(), Term(42));
}

#[tokio::test(start_paused = true)]
async fn the_own_wall_clock_can_only_shorten_a_guard() {
    let (env, _owner) = Env::simulated("2026-11-30T01:00:00Z".parse().expect("a time"), 7);
    let now = env.clock.now();
    let in_20 = now.saturating_add(SignedDuration::from_secs(20)).expect("a time");
    let rows = [
        ("both say 20 s", 0, true),
        ("the machine was suspended: 15 s are left by the wall", 5, true),
        ("it was suspended for longer than the tenure", 25, false),
        ("the wall clock was set back: no more than before", -3_600, true),
    ];
    for (name, skew, wanted) in rows {
        let clock = env.clock.skewed(SignedDuration::from_secs(skew));
        let validity = Validity { until: env.clock.instant() + Duration::from_secs(20), wall_until: in_20 };
        let guard = LeaseGuard::new(Term(1), clock, validity);
        assert_eq!(guard.check(Duration::from_secs(10)).is_ok(), wanted, "{name}");
        assert!(guard.check(Duration::from_secs(20)).is_err(), "{name}: never longer");
    }
}
