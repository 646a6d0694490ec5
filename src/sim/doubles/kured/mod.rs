//! A double of kured, releases 1.10.0 to 1.23.0: one process on one node, as a pure reducer.
//!
//! An [`Event`] goes in with the time, the [`Effect`]s that the process wants come out; a shell performs them and
//! reports back under their number. Nothing here has a clock, chance or a connection. A process that is killed is a
//! [`Kured`] that gets no more events; the next one begins anew, with no memory but what the cluster keeps.
//!
//! The rules are those of `rebootAsRequired` and its helpers in the real program; what it does in time, its requests
//! and its log lines were measured on 1.23.0. Not played: notifications, `--skip-wait-for-delete-timeout`, the deletion
//! of pods on servers without evictions.

pub mod answer;
pub mod calls;
mod drain;
pub mod lock;
mod locking;
pub mod log;
pub mod objects;
pub mod settings;
mod startup;
#[cfg(test)]
mod tests;
pub mod ticker;
mod ticks;
pub mod window;

use jiff::Timestamp;
use serde_json::Value;

use answer::Answer;
use calls::{Call, Failure, Reply};
use drain::Drain;
use locking::LockStep;
use log::Level;
use settings::Settings;
use ticker::{Fraction, Group, Limiter, Ticker};

/// What a process is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// It begins.
    Start,
    /// A sleep is over.
    Woken(u64),
    /// The API server answered, or the connection failed.
    Api(u64, Reply),
    /// The question was answered. [`Answer::Hang`] is never reported.
    Asked(u64, Answer),
    /// Whether the sentinel says that a reboot is required.
    Sentinel(u64, bool),
    /// The reboot command ended: well, or with this error.
    Rebooted(u64, Result<(), String>),
}

/// What a process wants. Those with a number are answered by an event with the same number.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// A request to the API server; the client's limiter does not let it leave earlier.
    Api {
        /// Number.
        id: u64,
        /// When it may leave.
        not_before: Timestamp,
        /// The request.
        call: Call,
    },
    /// The question to `--prometheus-url`.
    Ask(u64),
    /// A look at the sentinel.
    Sentinel(u64),
    /// A sleep.
    Sleep(u64, Timestamp),
    /// The reboot command.
    Reboot(u64),
    /// A line for the log.
    Log(Level, String),
    /// The process ends.
    Exit(i32),
}

/// Chance for the two first ticks of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fractions {
    /// Of the start-up phase.
    pub startup: Fraction,
    /// Of the loop.
    pub first_tick: Fraction,
}

impl Fractions {
    /// In millionths.
    #[must_use]
    pub const fn millionths(startup: u64, first_tick: u64) -> Self {
        Self { startup: Fraction::millionths(startup), first_tick: Fraction::millionths(first_tick) }
    }
}

/// Where a process is: what it waits for.
#[derive(Debug, Clone, PartialEq)]
enum At {
    /// Not begun.
    Off,
    /// A tick of the start-up phase.
    StartTick,
    /// The node, when the lock was found held at the start.
    StartNode,
    /// Whether the reboot was a success, for the annotation.
    StartSentinel,
    /// The removal of the annotation.
    StartAnnotation,
    /// The node, for the taint helper.
    TaintNew,
    /// Whether the taint goes at once.
    TaintSentinel,
    /// A tick of the loop.
    Tick,
    /// The sentinel of a tick.
    TickSentinel,
    /// The node of a tick.
    TickNode,
    /// The node once more, to write it back with annotations.
    AnnotateNode,
    /// That write.
    AnnotatePatch,
    /// The answer to the question.
    Question,
    /// The pods of the n-th selector.
    Selector(usize),
    /// A step of a lock operation.
    Lock(LockStep),
    /// The node, for adding (true) or removing the taint.
    TaintNode(bool, AfterTaint),
    /// The patch for it.
    TaintPatch(bool, AfterTaint),
    /// Labels before the drain.
    PreLabels,
    /// `--drain-delay`
    DrainDelay,
    /// The cordon.
    Cordon,
    /// The drain.
    Drain(Box<Drain>),
    /// The uncordon.
    Uncordon(AfterUncordon),
    /// Labels after the uncordon.
    PostLabels(AfterUncordon),
    /// `--reboot-delay`
    RebootDelay,
    /// The reboot command.
    Reboot,
    /// The end by the reboot.
    Rebooting,
    /// Exited.
    Ended,
}

/// Where the taint leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterTaint {
    /// The loop begins.
    Loop,
    /// The tick is over.
    EndTick,
}

/// Where an uncordon leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterUncordon {
    /// The start-up phase goes on.
    StartUp,
    /// The tick is over.
    EndTick,
}

/// One process.
#[derive(Debug, Clone)]
pub struct Kured {
    settings: Settings,
    node: String,
    fractions: Fractions,
    now: Timestamp,
    effects: Vec<Effect>,
    at: At,
    awaited: u64,
    numbers: u64,
    limiters: [Limiter; 3],
    ticker: Ticker,
    /// What goes into the lock: whether the node was cordoned before.
    unschedulable: bool,
    /// The node as it was last read by the tick or the start-up.
    object: Value,
    /// Whether the process believes its taint to be set.
    tainted: bool,
}

impl Kured {
    /// A process that has not begun.
    #[must_use]
    pub fn new(settings: Settings, node: &str, fractions: Fractions) -> Self {
        let ticker = Ticker::start(Timestamp::UNIX_EPOCH, settings.startup_period, fractions.startup);
        Self {
            settings,
            node: node.to_owned(),
            fractions,
            now: Timestamp::UNIX_EPOCH,
            effects: Vec::new(),
            at: At::Off,
            awaited: 0,
            numbers: 0,
            limiters: Default::default(),
            ticker,
            unschedulable: false,
            object: Value::Null,
            tainted: false,
        }
    }

    /// Takes an event at a time; gives what the process wants, in order. What it does not wait for changes nothing.
    #[must_use]
    pub fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        self.now = now;
        match (event, self.at.clone()) {
            (Event::Start, At::Off) => self.begin(),
            (event, At::Drain(drain)) => self.on_drain(*drain, event),
            (Event::Woken(id), at) if id == self.awaited => self.on_woken(at),
            (Event::Api(id, reply), at) if id == self.awaited => self.on_reply(at, reply.result()),
            (Event::Asked(id, answer), At::Question) if id == self.awaited => self.on_answer(&answer),
            (Event::Sentinel(id, required), at) if id == self.awaited => self.on_sentinel(&at, required),
            (Event::Rebooted(id, result), At::Reboot) if id == self.awaited => self.on_rebooted(result),
            _ => {}
        }
        std::mem::take(&mut self.effects)
    }

    /// Whether it has exited.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.at == At::Ended
    }

    /// Whether its reboot command has succeeded and it waits for its end.
    #[must_use]
    pub fn is_rebooting(&self) -> bool {
        self.at == At::Rebooting
    }

    fn on_woken(&mut self, at: At) {
        match at {
            At::StartTick => self.startup_tick(),
            At::Tick => self.tick(),
            At::Lock(step) => self.lock_woken(step),
            At::DrainDelay => self.begin_drain(),
            At::RebootDelay => self.reboot(),
            At::Rebooting => self.wait_for_reboot(),
            _ => {}
        }
    }

    fn on_reply(&mut self, at: At, result: Result<Value, Failure>) {
        match at {
            At::StartNode => self.startup_node(result),
            At::StartAnnotation => self.startup_annotation(&result),
            At::TaintNew => self.taint_helper(result),
            At::TickNode => self.tick_node(result),
            At::AnnotateNode => self.annotate_node(result),
            At::AnnotatePatch => self.annotated(&result),
            At::Selector(index) => self.on_pods(index, result),
            At::Lock(step) => self.lock_reply(step, result),
            At::TaintNode(wanted, then) => self.taint_node(wanted, then, result),
            At::TaintPatch(wanted, then) => self.taint_patched(wanted, then, &result),
            At::PreLabels => self.pre_labelled(&result),
            At::Cordon => self.cordoned(result),
            At::Uncordon(then) => self.uncordoned(then, &result),
            At::PostLabels(then) => self.post_labelled(then, &result),
            _ => {}
        }
    }

    fn on_sentinel(&mut self, at: &At, required: bool) {
        match at {
            At::StartSentinel => self.startup_sentinel(required),
            At::TaintSentinel => self.first_sentinel(required),
            At::TickSentinel => self.tick_sentinel(required),
            _ => {}
        }
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn log(&mut self, level: Level, text: impl Into<String>) {
        self.effects.push(Effect::Log(level, text.into()));
    }

    fn info(&mut self, text: impl Into<String>) {
        self.log(Level::Info, text);
    }

    /// `log.Fatalf`
    fn fatal(&mut self, text: impl Into<String>) {
        self.log(Level::Fatal, text);
        self.effects.push(Effect::Exit(1));
        self.at = At::Ended;
    }

    /// Sends a request and gives its number.
    fn send(&mut self, call: Call) -> u64 {
        let id = self.number();
        let limiter = match call.group {
            Group::Core => Some(0),
            Group::Apps => Some(1),
            Group::Policy => Some(2),
            Group::Discovery => None,
        };
        let now = self.now;
        let not_before = limiter.and_then(|index| self.limiters.get_mut(index)).map_or(now, |one| one.reserve(now));
        self.effects.push(Effect::Api { id, not_before, call });
        id
    }

    fn call(&mut self, at: At, call: Call) {
        self.awaited = self.send(call);
        self.at = at;
    }

    fn sleep(&mut self, at: At, until: Timestamp) {
        self.awaited = self.number();
        self.at = at;
        self.effects.push(Effect::Sleep(self.awaited, until));
    }

    fn look(&mut self, at: At) {
        self.awaited = self.number();
        self.at = at;
        self.effects.push(Effect::Sentinel(self.awaited));
    }

    fn node_is_cordoned(&self) -> bool {
        self.object.pointer("/spec/unschedulable").and_then(Value::as_bool) == Some(true)
    }

    /// kubectl's cordon helper remembers what it wrote, whether or not the write went through.
    fn remember_cordon(&mut self, cordoned: bool) {
        let spec = calls::member(&mut self.object, "spec");
        spec["unschedulable"] = Value::Bool(cordoned);
    }
}
