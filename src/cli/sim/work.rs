//! Workers that play nights side by side, and what they came to.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use maint_core::jiff::Timestamp;
use maint_engine::runtime::Clock;
use maint_sim::night::Shell;
use maint_sim::sweep::{self, Outcome, Shrunk, Tally};
use tokio::sync::mpsc;

use super::super::interrupt::Interrupts;
use super::super::terminal;
use super::play;

/// Outcomes that wait to be counted.
const WAITING: usize = 64;
/// Bad nights that are shrunk; each takes dozens of nights.
const SHRUNK: usize = 5;
/// Nights between two lines of progress.
const PROGRESS: u64 = 25;

/// What is played.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    /// How the cluster is reached.
    pub shell: Shell,
    /// The first seed.
    pub first: u64,
    /// The last one.
    pub last: u64,
    /// Workers.
    pub jobs: usize,
    /// Whether every night is told.
    pub tells: bool,
}

/// What it came to.
#[derive(Debug, Default)]
pub struct Worked {
    /// What the nights came to.
    pub tally: Tally,
    /// The nights whose story was asked for.
    pub told: Vec<Outcome>,
    /// Bad nights that were shrunk, by seed.
    pub shrunk: Vec<Shrunk>,
    /// Time of all workers at their nights.
    pub time: Duration,
    /// The night that took longest, and how long that was.
    pub slowest: Option<(u64, Duration)>,
    /// Whether somebody ended it early.
    pub interrupted: bool,
}

impl Work {
    /// Plays all of them.
    ///
    /// # Errors
    /// If a runtime cannot be had, or nothing can be written.
    pub async fn run(&self) -> anyhow::Result<Worked> {
        let (sender, mut played) = mpsc::channel(WAITING);
        let (next, stop) = (Arc::new(AtomicU64::new(self.first)), Arc::new(AtomicBool::new(false)));
        let workers: Vec<_> = (0..self.jobs)
            .map(|_| {
                let (work, sender, next, stop) = (*self, sender.clone(), Arc::clone(&next), Arc::clone(&stop));
                tokio::task::spawn_blocking(move || work.work(&sender, &next, &stop))
            })
            .collect();
        drop(sender);
        let mut interrupts = Interrupts::listen()?;
        let mut progress = Progress::new(self);
        let mut worked = Worked::default();
        loop {
            tokio::select! {
                biased;
                () = interrupts.next(), if !worked.interrupted => {
                    // What is being played is played to its end.
                    stop.store(true, Ordering::Relaxed);
                    worked.interrupted = true;
                }
                night = played.recv() => match night {
                    Some((outcome, took)) => {
                        worked.add(self.tells, outcome, took);
                        progress.show(&worked.tally)?;
                    }
                    None => break,
                },
            }
        }
        progress.clear()?;
        for worker in workers {
            worker.await??;
        }
        Ok(worked)
    }

    /// Plays one night after another until there is none, or until it shall stop.
    fn work(
        &self,
        sender: &mpsc::Sender<(Outcome, Duration)>,
        next: &AtomicU64,
        stop: &AtomicBool,
    ) -> std::io::Result<()> {
        while !stop.load(Ordering::Relaxed) {
            // After the last seed each worker takes one more and ends.
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed > self.last || seed < self.first {
                break;
            }
            if sender.blocking_send(play(self.shell, seed, self.tells)?).is_err() {
                break;
            }
        }
        Ok(())
    }
}

impl Worked {
    fn add(&mut self, tells: bool, outcome: Outcome, took: Duration) {
        self.time += took;
        if self.slowest.is_none_or(|(_, longest)| took > longest) {
            self.slowest = Some((outcome.drawn.seed, took));
        }
        if tells {
            self.told.push(outcome.clone());
        }
        self.tally.add(outcome);
    }

    /// Nights in one second of a core.
    pub fn rate(&self) -> f64 {
        let nights = f64::from(u32::try_from(self.tally.total()).unwrap_or(u32::MAX));
        nights / self.time.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Shrinks the first bad nights.
    ///
    /// # Errors
    /// If a runtime cannot be had.
    pub async fn shrink(&mut self, shell: Shell) -> anyhow::Result<()> {
        let first: Vec<Outcome> = self.tally.bad.values().take(SHRUNK).cloned().collect();
        for bad in first {
            self.shrunk.push(tokio::task::spawn_blocking(move || sweep::shrink(shell, &bad)).await??);
        }
        Ok(())
    }
}

/// The progress on a terminal; elsewhere there is none.
struct Progress {
    total: u64,
    shown: bool,
    on: bool,
}

impl Progress {
    fn new(work: &Work) -> Self {
        let total = work.last - work.first + 1;
        Self { total, shown: false, on: total > 1 && std::io::stderr().is_terminal() }
    }

    fn show(&mut self, tally: &Tally) -> std::io::Result<()> {
        let done = tally.total();
        if !self.on || !done.is_multiple_of(PROGRESS) {
            return Ok(());
        }
        self.shown = true;
        terminal::talk(&format!("\r\u{1b}[K{done} of {} nights, {} bad", self.total, tally.bad.len()))
    }

    fn clear(&self) -> std::io::Result<()> {
        if self.shown { terminal::talk("\r\u{1b}[K") } else { Ok(()) }
    }
}

/// How long a thread has been at work. Other work on the machine shall not look like a slow night, so it is the first
/// number of Linux' schedstat, in nanoseconds; where there is none, it is the time that passed.
pub struct Stopwatch {
    at_work: Option<Duration>,
    begun: Timestamp,
}

impl Stopwatch {
    /// Starts in this thread.
    pub fn start() -> Self {
        Self { at_work: at_work(), begun: Clock::real().now() }
    }

    /// Since its start, in the same thread.
    pub fn read(&self) -> Duration {
        match (self.at_work, at_work()) {
            (Some(before), Some(after)) => after.saturating_sub(before),
            _ => Duration::try_from(Clock::real().now().duration_since(self.begun)).unwrap_or_default(),
        }
    }
}

fn at_work() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}
