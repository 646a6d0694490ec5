//! A client's way to one API server: where servers are cut, and where faults happen. Both shells go through it.

use std::future::pending;
use std::io::ErrorKind;
use std::task::Poll;
use std::time::Duration;

use jiff::Timestamp;

use super::error::Refusal;
use super::http::{Cluster, Cut, Inner};
use crate::faults::Fault;
use crate::kinds::FaultKind;

/// Something that is asked of an API server, in whatever form.
pub trait Served {
    /// What it is answered with.
    type Answer;

    /// Whether it may change something.
    fn is_mutating(&self) -> bool;

    /// Whether it is an eviction.
    fn is_eviction(&self) -> bool {
        false
    }

    /// Leaves in the trace that it had no effect: it never arrived (code 0), or was refused by a fault.
    fn without_effect(&self, inner: &mut Inner, way: &Passage<'_>, code: u16, at: Timestamp);

    /// Answers it and says so in the trace.
    fn serve(&self, inner: &mut Inner, way: &Passage<'_>, at: Timestamp) -> Self::Answer;

    /// The answer of a server in trouble.
    fn refused(&self, refusal: Refusal) -> Self::Answer;

    /// How long an answer takes; none is never.
    fn delay(answer: &Self::Answer) -> Option<Duration> {
        let _ = answer;
        Some(Duration::ZERO)
    }
}

/// A way to one API server.
#[derive(Debug, Clone, Copy)]
pub struct Passage<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// The API server.
    pub server: usize,
    /// Who faults and trace say it is.
    pub client: &'a str,
    /// Who rights are asked for.
    pub user: &'a str,
}

impl Passage<'_> {
    /// Asks, with whatever befalls the question.
    ///
    /// # Errors
    /// As a connection fails: refused, or broken in the middle.
    pub async fn pass<S: Served>(self, asked: &S) -> Result<S::Answer, ErrorKind> {
        self.thawed().await;
        let queue = self.cluster.lock().queue(self.now());
        if !queue.is_zero() {
            crate::clock::sleep(queue).await;
        }
        let fault = {
            let mut inner = self.cluster.lock();
            let (down, cut) =
                inner.servers.get(self.server).map_or((false, Cut::No), |server| (server.down, server.cut));
            if down || cut == Cut::Refuse {
                asked.without_effect(&mut inner, &self, 0, self.now());
                // A server that is down with its node is no fault of its own.
                let cut = (!down).then_some(FaultKind::CutServer);
                inner.faults.received(self.client, cut);
                return Err(ErrorKind::ConnectionRefused);
            }
            if cut == Cut::Hang {
                inner.faults.received(self.client, Some(FaultKind::CutServer));
                Some(Fault::HangBefore)
            } else {
                let fault = inner.faults.next(self.client, asked.is_mutating());
                fault.or_else(|| asked.is_eviction().then(|| inner.faults.next_eviction(self.client)).flatten())
            }
        };
        let answer = self.under(fault, asked).await?;
        match S::delay(&answer) {
            None => pending::<()>().await,
            Some(Duration::ZERO) => {}
            Some(delay) => crate::clock::sleep(delay).await,
        }
        Ok(answer)
    }

    fn now(&self) -> Timestamp {
        self.cluster.clock().now()
    }

    /// What a caller that stands still has sent arrives when it goes on; the futures that run in the same poll as the
    /// one that stopped it are held here too.
    async fn thawed(&self) {
        let Some(pause) = self.cluster.lock().faults.pause_of(self.client) else { return };
        std::future::poll_fn(|context| if pause.holds(context.waker()) { Poll::Pending } else { Poll::Ready(()) })
            .await;
    }

    fn serve<S: Served>(&self, asked: &S) -> S::Answer {
        asked.serve(&mut self.cluster.lock(), self, self.now())
    }

    async fn under<S: Served>(&self, fault: Option<Fault>, asked: &S) -> Result<S::Answer, ErrorKind> {
        match fault {
            None | Some(Fault::StopAnswered) => Ok(self.serve(asked)),
            Some(Fault::Delay(delay)) => {
                crate::clock::sleep(delay).await;
                Ok(self.serve(asked))
            }
            Some(Fault::Freeze) => {
                self.cluster.lock().faults.freeze(self.client);
                self.thawed().await;
                Ok(self.serve(asked))
            }
            Some(Fault::Refuse(code)) => {
                asked.without_effect(&mut self.cluster.lock(), self, code, self.now());
                Ok(asked.refused(refused(code)))
            }
            Some(fault) => {
                let applied = matches!(fault, Fault::StopUnanswered | Fault::LoseAnswer | Fault::HangAfter);
                if applied {
                    self.serve(asked);
                } else {
                    asked.without_effect(&mut self.cluster.lock(), self, 0, self.now());
                }
                match fault {
                    Fault::StopBefore | Fault::StopUnanswered => {
                        self.cluster.lock().faults.stop(self.client);
                        pending().await
                    }
                    Fault::LoseRequest | Fault::LoseAnswer => Err(ErrorKind::ConnectionReset),
                    _ => pending().await,
                }
            }
        }
    }
}

/// The answers of a server in trouble.
fn refused(code: u16) -> Refusal {
    match code {
        409 => {
            let why = "the object has been modified; please apply your changes to the latest version and try again";
            Refusal::new(409, "Conflict", format!("Operation cannot be fulfilled: {why}"))
        }
        429 => Refusal::Overloaded,
        503 => Refusal::new(503, "ServiceUnavailable", "the server is currently unable to handle the request"),
        504 => Refusal::new(504, "Timeout", "Timeout: request did not complete within the allotted timeout"),
        code => Refusal::new(code, "InternalError", "Internal error occurred: etcdserver: request timed out"),
    }
}
