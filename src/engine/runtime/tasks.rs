//! Tasks that belong to somebody: a replica of maint owns all that it spawns, so that dropping it is a crash.

#![expect(clippy::disallowed_methods, reason = "the one place that spawns")]

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Clock, TimedOut};

/// Spawns tasks of one owner. Clones are handles; they do not keep the tasks alive.
#[derive(Debug, Clone)]
pub struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
    crash: CancellationToken,
    pause: Pause,
}

/// Lets the tasks of an owner stand still and go on, as SIGSTOP and SIGCONT do with a process: time passes, timers run
/// out, answers arrive, and nothing of it is seen until they go on.
#[derive(Debug, Clone, Default)]
pub struct Pause(Arc<Mutex<Paused>>);

#[derive(Debug, Default)]
struct Paused {
    paused: bool,
    waiting: Vec<Waker>,
}

impl Pause {
    fn with<T>(&self, act: impl FnOnce(&mut Paused) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on no task of the owner is polled. A poll that is under way goes on to its end.
    pub fn pause(&self) {
        self.with(|state| state.paused = true);
    }

    /// The tasks go on, in the order in which they were woken meanwhile.
    pub fn resume(&self) {
        let waiting = self.with(|state| {
            state.paused = false;
            std::mem::take(&mut state.waiting)
        });
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Whether they stand still; if so, `waker` is woken when they go on.
    pub fn holds(&self, waker: &Waker) -> bool {
        self.with(|state| {
            if state.paused && !state.waiting.iter().any(|known| known.will_wake(waker)) {
                state.waiting.push(waker.clone());
            }
            state.paused
        })
    }
}

/// A future that is not polled while its owner is paused.
struct Pausable<F> {
    pause: Pause,
    future: Pin<Box<F>>,
}

impl<F: Future> Future for Pausable<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        if self.pause.holds(context.waker()) {
            return Poll::Pending;
        }
        self.future.as_mut().poll(context)
    }
}

/// The owner of all tasks that its [`Tasks`] spawn. Dropping it drops them where they stand.
#[derive(Debug)]
pub struct TaskOwner(Tasks);

impl TaskOwner {
    /// An owner without tasks.
    pub(super) fn new() -> Self {
        Self(Tasks {
            tracker: TaskTracker::new(),
            stop: CancellationToken::new(),
            crash: CancellationToken::new(),
            pause: Pause::default(),
        })
    }

    /// Lets the tasks stand still and go on.
    #[must_use]
    pub fn pause(&self) -> Pause {
        self.0.pause.clone()
    }

    /// A handle to spawn with.
    #[must_use]
    pub fn tasks(&self) -> Tasks {
        self.0.clone()
    }

    /// Ends every task at the point it waits at, without any clean-up of its own, and waits until they are gone: what
    /// a killed process leaves behind.
    pub async fn crash(self) {
        self.0.crash.cancel();
        self.0.tracker.close();
        self.0.tracker.wait().await;
    }

    /// Asks every task to stop, and waits for them.
    ///
    /// # Errors
    /// If some are still at work after `limit`; they are dropped then.
    pub async fn stop(self, clock: &Clock, limit: Duration) -> Result<(), TimedOut> {
        self.0.stop.cancel();
        self.0.tracker.close();
        clock.timeout(limit, self.0.tracker.wait()).await
    }
}

impl Drop for TaskOwner {
    fn drop(&mut self) {
        self.0.crash.cancel();
    }
}

impl Tasks {
    /// Spawns a task. Its handle answers `None` when the owner is gone before it ends.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<Option<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let crash = self.crash.clone();
        let future = Pausable { pause: self.pause.clone(), future: Box::pin(future) };
        tokio::spawn(self.tracker.track_future(async move { crash.run_until_cancelled_owned(future).await }))
    }

    /// Cancelled when the owner asks its tasks to stop. A child of it stops a part of them.
    #[must_use]
    pub fn stopping(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// How many are at work.
    #[must_use]
    pub fn count(&self) -> usize {
        self.tracker.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Env;
    use super::*;

    fn env() -> (Env, TaskOwner) {
        Env::simulated("2026-03-01T02:00:00Z".parse().expect("a time"), 1)
    }

    #[tokio::test(start_paused = true)]
    async fn dropping_the_owner_drops_its_tasks_where_they_stand() {
        let (env, owner) = env();
        let alive = Arc::new(());
        let held = Arc::clone(&alive);
        // The task holds a handle of its own owner, as every driver does: that must not keep it alive.
        let inner = env.clone();
        let handle = env.tasks.spawn(async move {
            inner.clock.sleep(Duration::from_secs(60)).await;
            drop(held);
        });
        env.clock.sleep(Duration::from_secs(1)).await;
        assert_eq!((env.tasks.count(), Arc::strong_count(&alive)), (1, 2));
        drop(owner);
        assert_eq!(handle.await.expect("no panic"), None);
        assert_eq!((env.tasks.count(), Arc::strong_count(&alive)), (0, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_paused_owner_sees_nothing_until_it_goes_on() {
        let (env, owner) = env();
        let (clock, pause) = (env.clock.clone(), owner.pause());
        let handle = env.tasks.spawn(async move {
            clock.sleep(Duration::from_secs(10)).await;
            clock.now()
        });
        env.clock.sleep(Duration::from_secs(1)).await;
        pause.pause();
        env.clock.sleep(Duration::from_secs(60)).await;
        assert!(!handle.is_finished());
        pause.resume();
        assert_eq!(handle.await.expect("no panic").expect("not crashed").to_string(), "2026-03-01T02:01:01Z");

        pause.pause();
        env.tasks.spawn(std::future::pending::<()>());
        let tasks = env.tasks.clone();
        owner.crash().await;
        assert_eq!(tasks.count(), 0, "a stopped process can be killed");
    }

    #[tokio::test(start_paused = true)]
    async fn stopping_waits_and_says_when_it_waited_too_long() {
        let (env, owner) = env();
        let stopping = env.tasks.stopping();
        env.tasks.spawn(async move { stopping.cancelled().await });
        assert_eq!(owner.stop(&env.clock, Duration::from_secs(5)).await, Ok(()));

        let (env, owner) = self::env();
        env.tasks.spawn(std::future::pending::<()>());
        let limit = Duration::from_secs(5);
        assert_eq!(owner.stop(&env.clock, limit).await, Err(TimedOut { limit }));

        let (env, owner) = self::env();
        env.tasks.spawn(std::future::pending::<()>());
        owner.crash().await;
        assert_eq!(env.tasks.count(), 0);
    }
}
