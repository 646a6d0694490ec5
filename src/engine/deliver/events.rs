//! Events on their way: fire and forget, one at a time, with a bounded queue. Failing to tell one stops nothing; what
//! matters is in the records, and people are told by their outboxes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::BoxFuture;
use maint_core::report::events::EventNote;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::execute::{Calls, KubeCalls, WriteError};
use crate::request::Requests;
use crate::runtime::Env;

/// Events that wait at most; what comes while so many wait is dropped and counted.
const QUEUE: usize = 128;

/// Posts Events. As an object, so that who posts none needs no type for it.
pub trait Tell: Send + Sync + 'static {
    /// Posts one.
    ///
    /// # Errors
    /// If it could not be posted; nobody tries again.
    fn tell<'a>(&'a self, note: &'a EventNote) -> BoxFuture<'a, Result<(), WriteError>>;
}

/// Posts Events through the port of requests, in the name of a pod.
#[derive(Clone)]
pub struct EventPoster<C = KubeCalls> {
    /// The port.
    pub requests: Requests<C>,
    /// Name of our own pod.
    pub instance: String,
}

impl<C: Calls + 'static> Tell for EventPoster<C> {
    fn tell<'a>(&'a self, note: &'a EventNote) -> BoxFuture<'a, Result<(), WriteError>> {
        Box::pin(self.requests.tell(note, &self.instance))
    }
}

#[derive(Debug, Default)]
struct Counts {
    posted: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
}

/// How many Events there were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventCounts {
    /// The API took them.
    pub posted: u64,
    /// The API did not, or did not answer.
    pub failed: u64,
    /// The queue was full.
    pub dropped: u64,
}

/// Takes Events; a handle.
#[derive(Debug, Clone)]
pub struct Events {
    queue: Option<mpsc::Sender<EventNote>>,
    counts: Arc<Counts>,
}

impl Events {
    /// Starts to post. The task ends when it is aborted or no handle is left: only a leader has one.
    pub fn start(env: &Env, poster: Arc<dyn Tell>) -> (Self, JoinHandle<Option<()>>) {
        let (queue, mut waiting) = mpsc::channel::<EventNote>(QUEUE);
        let counts = Arc::new(Counts::default());
        let told = Arc::clone(&counts);
        let task = env.tasks.spawn(async move {
            while let Some(note) = waiting.recv().await {
                match poster.tell(&note).await {
                    Ok(()) => drop(told.posted.fetch_add(1, Ordering::Relaxed)),
                    Err(error) => {
                        told.failed.fetch_add(1, Ordering::Relaxed);
                        tracing::warn!(event = note.reason, category = error.category(), %error, "could not post an Event");
                    }
                }
            }
        });
        (Self { queue: Some(queue), counts }, task)
    }

    /// Tells nobody.
    #[must_use]
    pub fn nowhere() -> Self {
        Self { queue: None, counts: Arc::default() }
    }

    /// Hands an Event over, without waiting.
    pub fn offer(&self, note: EventNote) {
        let Some(queue) = &self.queue else { return };
        if let Err(error) = queue.try_send(note) {
            let dropped = self.counts.dropped.fetch_add(1, Ordering::Relaxed) + 1;
            tracing::warn!(%error, dropped, "dropped an Event");
        }
    }

    /// How many there were so far.
    #[must_use]
    pub fn counts(&self) -> EventCounts {
        EventCounts {
            posted: self.counts.posted.load(Ordering::Relaxed),
            failed: self.counts.failed.load(Ordering::Relaxed),
            dropped: self.counts.dropped.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use http::Method;
    use maint_core::report::events::Subject;

    use super::*;
    use crate::testing::{client, env, json, status};

    fn note(number: usize, count: i64) -> EventNote {
        let regarding = Subject {
            api_version: "v1",
            kind: "Node",
            name: "worker2".into(),
            namespace: String::new(),
            uid: "n-2".into(),
        };
        EventNote {
            name: format!("worker2.{number}"),
            regarding,
            related: None,
            reason: "NodeDraining".into(),
            action: "Draining",
            warning: false,
            note: "a sentence".into(),
            at: jiff::Timestamp::UNIX_EPOCH,
            count,
        }
    }

    /// Waits for each of its turns, so that a test says when it posts.
    struct Slow(Arc<tokio::sync::Semaphore>);

    impl Tell for Slow {
        fn tell<'a>(&'a self, note: &'a EventNote) -> BoxFuture<'a, Result<(), WriteError>> {
            Box::pin(async move {
                self.0.acquire().await.map_err(|error| WriteError::Server(error.to_string()))?.forget();
                if note.name.ends_with('3') { Err(WriteError::Server("no".into())) } else { Ok(()) }
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_that_is_full_drops_and_counts_and_nobody_waits() {
        let (env, _owner) = env();
        let turns = Arc::new(tokio::sync::Semaphore::new(0));
        let (events, _task) = Events::start(&env, Arc::new(Slow(Arc::clone(&turns))));
        for number in 0..QUEUE + 5 {
            events.offer(note(number, 1));
        }
        assert_eq!(events.counts(), EventCounts { dropped: 5, ..EventCounts::default() });
        turns.add_permits(4);
        env.clock.sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!(events.counts(), EventCounts { posted: 3, failed: 1, dropped: 5 });
        events.offer(note(0, 1));
        assert_eq!(events.counts().dropped, 5, "there is room again");
        Events::nowhere().offer(note(0, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_there_is_fine_and_a_series_is_counted_up() {
        // What the API says to a PATCH and to a POST, what must come of it, and how many requests that takes.
        let rows = [
            ("the first", 1, 0, 201, true, 1),
            ("told before", 1, 0, 409, true, 1),
            ("refused", 1, 0, 403, false, 1),
            ("counted up", 3, 200, 0, true, 1),
            ("gone meanwhile", 3, 404, 201, true, 2),
            ("counted up, refused", 3, 403, 0, false, 1),
        ];
        for (name, count, patch, post, fine, requests) in rows {
            let (env, _owner) = env();
            let seen = Arc::new(Mutex::new(Vec::new()));
            let log = Arc::clone(&seen);
            let client = client(move |request| {
                let code = if request.method() == Method::PATCH { patch } else { post };
                log.lock().expect("lock").push(format!("{} {}", request.method(), request.uri()));
                match code {
                    200 | 201 => json(code, &serde_json::json!({"kind": "Event"})),
                    _ => status(code, "Failure", "no"),
                }
            });
            let requests_port = Requests::new(client, env.clock.clone(), "maint".to_owned());
            let poster = EventPoster { requests: requests_port, instance: "maint-0".to_owned() };
            assert_eq!(poster.tell(&note(1, count)).await.is_ok(), fine, "{name}");
            let seen = seen.lock().expect("lock").clone();
            assert_eq!(seen.len(), requests, "{name}: {seen:?}");
            assert!(
                seen.iter().all(|line| line.contains("/apis/events.k8s.io/v1/namespaces/default/events")),
                "{seen:?}"
            );
        }
    }
}
