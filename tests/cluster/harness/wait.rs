//! The one place where the harness waits: every wait has a limit with a name, and its error says what was waited for.

use std::fmt::Display;
use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

/// How long a wait may take, with the name that its error shows.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    pub name: &'static str,
    pub length: Duration,
}

impl Limit {
    pub const fn seconds(name: &'static str, seconds: u64) -> Self {
        Self { name, length: Duration::from_secs(seconds) }
    }
}

/// A stopped process may still be busy writing; etcd alone takes 2 s.
pub const STOP: Limit = Limit::seconds("process-stop", 5);
/// 6.5 s measured with two busy cores.
pub const SERVER_READY: Limit = Limit::seconds("api-server-ready", 60);
/// 16.6 s measured: a server that loses the first write race tries again after 10 s.
pub const CONTROL_PLANE: Limit = Limit::seconds("control-plane", 90);
/// The grace period of 16 s, the check period, and room for a controller-manager that was just started again.
pub const NODE_STATE: Limit = Limit::seconds("node-state", 75);
/// Deployments, endpoints, autoscaler: one sync period each, more after a change of the controller-manager's leader.
pub const CONTROLLERS: Limit = Limit::seconds("controllers", 90);
/// Nothing but one or two requests.
pub const SHORT: Limit = Limit::seconds("short", 15);

const INTERVAL: Duration = Duration::from_millis(150);

/// Asks again until the probe gives a value. "Not yet" and errors both mean another try; the last one is in the error.
pub async fn until<T, F, Fut>(limit: Limit, what: impl Display, mut probe: F) -> Result<T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<Option<T>>>,
{
    let start = Instant::now();
    let mut last;
    loop {
        match probe().await {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => last = "not yet".to_string(),
            Err(error) => last = format!("{error:#}"),
        }
        if start.elapsed() >= limit.length {
            return Err(expired(limit, what, &last));
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Looks again and again for so long: the first error is the answer. For what must not happen.
pub async fn holds<F, Fut>(length: Duration, mut probe: F) -> Result<()>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<()>>,
{
    let end = Instant::now() + length;
    while Instant::now() < end {
        probe().await?;
        tokio::time::sleep(INTERVAL).await;
    }
    Ok(())
}

/// The same as `until` without a runtime, for the ends of processes.
pub fn until_blocking<T>(limit: Limit, what: impl Display, mut probe: impl FnMut() -> Option<T>) -> Result<T> {
    let start = Instant::now();
    loop {
        if let Some(value) = probe() {
            return Ok(value);
        }
        if start.elapsed() >= limit.length {
            return Err(expired(limit, what, "not yet"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn expired(limit: Limit, what: impl Display, last: &str) -> anyhow::Error {
    anyhow!(
        "limit `{}` of {} s reached while waiting for {what}; last answer: {last}",
        limit.name,
        limit.length.as_secs()
    )
}
