//! Two or three candidates, one Lease, and everything that goes wrong between them: never two that may act at the same
//! instant of true time, always a higher term, and a leader again once nothing goes wrong any more.
//!
//! The faults come from a tape of bytes, so that proptest shrinks a found night to the faults that matter.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;

use super::*;
use crate::config::Election;

/// Microseconds of true time.
type Time = u64;

const SECOND: Time = 1_000_000;
/// Faults stop then; a tape that ends earlier leaves quiet time.
const FAULTS_END: Time = 400 * SECOND;
/// Twice the Lease, with the slowest clock and a restart in between.
const HEALED_BY: Time = FAULTS_END + 70 * SECOND;
const END: Time = HEALED_BY + 60 * SECOND;

/// A tape of faults: zero and the end of the tape are "nothing wrong".
struct Tape<'a> {
    bytes: std::slice::Iter<'a, u8>,
}

impl Tape<'_> {
    fn next(&mut self, now: Time) -> u64 {
        let byte = self.bytes.next().copied().unwrap_or(0);
        if now >= FAULTS_END { 0 } else { u64::from(byte) }
    }
}

enum Happening {
    Event {
        life: u32,
        kind: EventKind,
    },
    /// A request arrives at the API.
    Arrives {
        life: u32,
        request: Request,
        number: u32,
        answer_after: Option<Time>,
    },
    /// An answer is back, or the client gave up.
    Back {
        life: u32,
        number: u32,
        answer: Answer,
    },
    Crash,
    Delete,
    Pause {
        until: Time,
    },
    Start,
}

struct Candidate {
    state: Option<State>,
    life: u32,
    /// Local microseconds per 1000 true ones.
    rate: u64,
    offset: Time,
    paused_until: Time,
    /// Cut off from the API until then.
    cut_until: Time,
    request_number: u32,
    wake: u32,
    /// Until when its guard says yes, in its own time.
    valid_until: Option<Duration>,
}

impl Candidate {
    fn local(&self, now: Time) -> Duration {
        Duration::from_micros(self.offset + now * self.rate / 1_000)
    }

    fn truly(&self, local: Duration) -> Time {
        let micros = u64::try_from(local.as_micros()).expect("small");
        (micros.saturating_sub(self.offset) * 1_000).div_ceil(self.rate)
    }

    fn may_act(&self, now: Time) -> bool {
        self.valid_until.is_some_and(|until| self.local(now) < until)
    }
}

/// The API: the versions of one Lease, none while deleted.
#[derive(Default)]
struct Api {
    history: Vec<Option<Seen>>,
    version: u64,
    uid: u64,
}

impl Api {
    fn now(&self) -> Option<&Seen> {
        self.history.last().and_then(Option::as_ref)
    }

    fn write(&mut self, record: LeaseRecord, uid: String) -> Answer {
        self.version += 1;
        let version = Version { uid, resource_version: self.version.to_string() };
        let seen = Seen { record, version };
        self.history.push(Some(seen.clone()));
        Answer::Seen(seen)
    }

    /// `stale` looks so many versions back.
    fn answer(&mut self, request: Request, stale: usize) -> Answer {
        match request {
            Request::Get => {
                let index = self.history.len().saturating_sub(1 + stale);
                self.history.get(index).and_then(Clone::clone).map_or(Answer::NotFound, Answer::Seen)
            }
            Request::Create(record) if self.now().is_none() => {
                self.uid += 1;
                self.write(record, self.uid.to_string())
            }
            Request::Create(_) => Answer::Conflict,
            Request::Update(record, version) => match self.now() {
                Some(seen) if seen.version == version => self.write(record, version.uid),
                _ => Answer::Conflict,
            },
        }
    }
}

struct Night<'a> {
    now: Time,
    tape: Tape<'a>,
    api: Api,
    candidates: Vec<Candidate>,
    queue: BinaryHeap<Reverse<(Time, u64)>>,
    happenings: std::collections::BTreeMap<u64, (usize, Happening)>,
    sequence: u64,
    last_term: i64,
    led_after: Option<Time>,
    /// What happened, kept only when a night is played again because it failed.
    log: Option<Vec<String>>,
}

impl<'a> Night<'a> {
    fn new(count: usize, rates: &[u64], tape: &'a [u8]) -> Self {
        let candidates = (0..count)
            .map(|index| Candidate {
                state: None,
                life: 0,
                rate: rates[index % rates.len()],
                offset: 1_000 * SECOND * index as u64,
                paused_until: 0,
                cut_until: 0,
                request_number: 0,
                wake: 0,
                valid_until: None,
            })
            .collect();
        let mut night = Self {
            now: 0,
            tape: Tape { bytes: tape.iter() },
            api: Api::default(),
            candidates,
            queue: BinaryHeap::new(),
            happenings: std::collections::BTreeMap::new(),
            sequence: 0,
            last_term: 0,
            led_after: None,
            log: None,
        };
        for index in 0..count {
            night.at(index as u64 * SECOND, index, Happening::Start);
        }
        night
    }

    fn at(&mut self, when: Time, index: usize, what: Happening) {
        self.sequence += 1;
        self.queue.push(Reverse((when.max(self.now), self.sequence)));
        self.happenings.insert(self.sequence, (index, what));
    }

    fn note(&mut self, line: impl FnOnce(f64) -> String) {
        if let Some(log) = &mut self.log {
            log.push(line(Duration::from_micros(self.now).as_secs_f64()));
        }
    }

    fn run(&mut self) -> Result<(), String> {
        while let Some(Reverse((when, number))) = self.queue.pop() {
            if when > END {
                break;
            }
            self.now = when;
            let (index, what) = self.happenings.remove(&number).expect("queued");
            self.happens(index, what)?;
            if self.now > HEALED_BY && !self.candidates.iter().any(|candidate| candidate.may_act(self.now)) {
                return Err(format!("nobody leads at {} s", self.now / SECOND));
            }
        }
        if self.led_after.is_none() { Err("nobody ever led".to_owned()) } else { Ok(()) }
    }

    fn happens(&mut self, index: usize, what: Happening) -> Result<(), String> {
        let paused_until = self.candidates[index].paused_until;
        match what {
            Happening::Start => {
                let candidate = &mut self.candidates[index];
                candidate.life += 1;
                candidate.valid_until = None;
                let identity = format!("c{index}_{}", candidate.life);
                let limits = Limits::try_from(&Election::default()).expect("good");
                candidate.state = Some(State::new(identity, limits));
                let life = candidate.life;
                self.at(self.now, index, Happening::Event { life, kind: EventKind::Wake });
            }
            Happening::Crash => {
                let candidate = &mut self.candidates[index];
                if candidate.state.take().is_some() {
                    candidate.valid_until = None;
                    self.at(self.now + SECOND, index, Happening::Start);
                }
            }
            Happening::Delete => self.api.history.push(None),
            Happening::Pause { until } => self.candidates[index].paused_until = until,
            Happening::Arrives { life, request, number, answer_after } => {
                let stale = if matches!(request, Request::Get) {
                    usize::try_from(self.tape.next(self.now) % 3).unwrap_or(0)
                } else {
                    0
                };
                let answer = self.api.answer(request, stale);
                self.note(|now| format!("{now:.3} api c{index}: {answer:?}"));
                if let Some(after) = answer_after {
                    self.at(self.now + after, index, Happening::Back { life, number, answer });
                }
            }
            // A stopped process sees nothing before it goes on; the API and the wires do not wait for it.
            Happening::Event { life, kind } if self.now < paused_until => {
                self.at(paused_until, index, Happening::Event { life, kind });
            }
            Happening::Back { life, number, answer } if self.now < paused_until => {
                self.at(paused_until, index, Happening::Back { life, number, answer });
            }
            Happening::Event { life, kind } => self.step(index, life, kind)?,
            Happening::Back { life, number, answer } => {
                let candidate = &mut self.candidates[index];
                if candidate.life == life && candidate.request_number == number {
                    candidate.request_number += 1;
                    self.step(index, life, EventKind::Answer(answer))?;
                }
            }
        }
        Ok(())
    }

    fn step(&mut self, index: usize, life: u32, kind: EventKind) -> Result<(), String> {
        let now = self.now;
        let candidate = &mut self.candidates[index];
        if candidate.life != life {
            return Ok(());
        }
        let Some(state) = candidate.state.take() else { return Ok(()) };
        let at = candidate.local(now);
        let event = |kind| Event { at, wall: Timestamp::UNIX_EPOCH, kind };
        // Records keep the term where the Lease does not: after somebody deleted it.
        let (state, _) = step(state, event(EventKind::KnownTerm(Term(self.last_term))));
        let (state, actions) = step(state, event(kind.clone()));
        candidate.state = Some(state);
        self.note(|now| format!("{now:.3} c{index} local {:.3} {kind:?} -> {actions:?}", at.as_secs_f64()));
        for action in actions {
            self.act(index, action)?;
        }
        // The guard's own timer.
        if let Some(until) = self.candidates[index].valid_until {
            let when = self.candidates[index].truly(until);
            let life = self.candidates[index].life;
            if when > now {
                self.at(when, index, Happening::Event { life, kind: EventKind::Wake });
            }
        }
        Ok(())
    }

    fn act(&mut self, index: usize, action: Action) -> Result<(), String> {
        match action {
            Action::Send { request, limit } => self.send(index, request, limit),
            Action::WakeAt { at, jitter_percent } => {
                let candidate = &mut self.candidates[index];
                candidate.wake += 1;
                let jitter = u64::from(jitter_percent) * SECOND / 50 * (u64::from(candidate.wake) * 7 % 3);
                let (when, life) = (candidate.truly(at) + jitter, candidate.life);
                self.at(when, index, Happening::Event { life, kind: EventKind::Wake });
            }
            Action::Lead { term, valid_until } => {
                if term.0 <= self.last_term {
                    return Err(format!("term {term} after {}", self.last_term));
                }
                self.last_term = term.0;
                self.led_after = Some(self.now);
                self.valid(index, valid_until)?;
            }
            Action::Renewed { valid_until } => self.valid(index, valid_until)?,
            Action::Lost(_) => {
                // The process ends and is started again.
                self.candidates[index].valid_until = None;
                self.at(self.now, index, Happening::Crash);
            }
            Action::Released { .. } | Action::Follow { .. } | Action::Unknown => {}
        }
        Ok(())
    }

    fn valid(&mut self, index: usize, valid_until: Duration) -> Result<(), String> {
        self.candidates[index].valid_until = Some(valid_until);
        let now = self.now;
        for (other, candidate) in self.candidates.iter().enumerate() {
            if other != index && candidate.may_act(now) {
                return Err(format!("c{index} and c{other} may both act at {:?}", Duration::from_micros(now)));
            }
        }
        Ok(())
    }

    /// Sends a request on its way, and lets the tape do to it what networks do.
    fn send(&mut self, index: usize, request: Request, limit: Duration) {
        let now = self.now;
        let (kind, much) = (self.tape.next(now), self.tape.next(now));
        let (there, back, late) = (10_000, Some(10_000), 25 * much * SECOND / 255);
        let (arrives, answer_after) = match kind % 16 {
            _ if now < self.candidates[index].cut_until => (None, None),
            // Never arrives.
            1 | 2 => (None, None),
            // Done, but the answer is lost.
            3 | 4 => (Some(there), None),
            // Done late, long after the client gave up.
            5 => (Some(there + late * 2), None),
            6 => (Some(there + late), back),
            7 => (Some(there), Some(late)),
            _ => (Some(there), back),
        };
        let candidate = &self.candidates[index];
        let (life, number) = (candidate.life, candidate.request_number);
        if let Some(after) = arrives {
            let when = if now < FAULTS_END { (now + after).min(FAULTS_END) } else { now + after };
            self.at(when, index, Happening::Arrives { life, request, number, answer_after });
        }
        let gives_up = self.candidates[index].truly(self.candidates[index].local(now) + limit);
        self.at(gives_up, index, Happening::Back { life, number, answer: Answer::Failed("late".to_owned()) });
        let (soon, later) = ((now + late / 4).min(FAULTS_END), (now + late / 4 + 2 * late).min(FAULTS_END));
        match kind / 16 {
            1 => self.at(soon, index, Happening::Pause { until: later }),
            2 => self.at(soon, index, Happening::Crash),
            3 if much > 128 => self.at(soon, index, Happening::Delete),
            4 => self.at(soon, index, Happening::Event { life, kind: EventKind::Abstain(much % 2 == 1) }),
            5 | 6 => self.candidates[index].cut_until = later,
            _ => {}
        }
    }
}

fn play(count: usize, rates: &[u64], tape: &[u8]) -> Result<(), String> {
    Night::new(count, rates, tape).run().map_err(|error| {
        let mut again = Night { log: Some(Vec::new()), ..Night::new(count, rates, tape) };
        let _ = again.run();
        let lines = again.log.unwrap_or_default();
        format!("{error}\n{}", lines[lines.len().saturating_sub(60)..].join("\n"))
    })
}

#[test]
fn without_faults_one_leads() {
    play(3, &[1_000], &[]).expect("quiet");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Clocks differ by up to a tenth each way.
    #[test]
    fn never_two_leaders_and_one_again_after_the_faults(
        count in 2_usize..=3,
        rates in proptest::collection::vec(900_u64..=1_100, 3),
        tape in proptest::collection::vec(prop_oneof![5 => Just(0_u8), 1 => any::<u8>()], 0..800),
    ) {
        play(count, &rates, &tape).map_err(TestCaseError::fail)?;
    }
}
