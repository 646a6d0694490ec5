//! One client over several ways to the API: when one does not answer, the next request goes the next way.
//!
//! The server that reboots may be the one that we talk to. Nothing is retried here: a request that failed has failed,
//! and whoever sent it looks at the world again. Only the *next* request takes another way.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use http::{Request, Response};
use kube::client::Body;
use tower::{BoxError, Service};

/// Which of several ways the next request goes. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Rotation(Arc<AtomicUsize>);

impl Rotation {
    /// The way of the next request, of so many.
    pub fn turn(&self, ways: usize) -> Turn {
        Turn { current: Arc::clone(&self.0), way: self.0.load(Ordering::Relaxed), ways, answered: false }
    }
}

/// One request's way. It moves on to the next one unless told that an answer came: also when the request is dropped
/// because its time is over.
#[derive(Debug)]
#[must_use]
pub struct Turn {
    current: Arc<AtomicUsize>,
    way: usize,
    ways: usize,
    answered: bool,
}

impl Turn {
    /// Index of the way; none where there is none.
    #[must_use]
    pub const fn way(&self) -> Option<usize> {
        self.way.checked_rem(self.ways)
    }

    /// An answer came. Taken as a whole, so that the request's future owns it from the beginning.
    pub fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.answered {
            // Of many requests that fail on one way, one moves on.
            let next = self.way.wrapping_add(1);
            let _ = self.current.compare_exchange(self.way, next, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// Requests through the way that answered last.
#[derive(Clone)]
pub struct Failover {
    ways: Arc<Vec<kube::Client>>,
    rotation: Rotation,
}

impl Failover {
    /// A client that begins with the first way. Without any way every request fails.
    #[must_use]
    pub fn client(ways: Vec<kube::Client>) -> kube::Client {
        kube::Client::new(Self { ways: Arc::new(ways), rotation: Rotation::default() }, "default")
    }
}

impl Service<Request<Body>> for Failover {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let turn = self.rotation.turn(self.ways.len());
        let client = turn.way().and_then(|way| self.ways.get(way)).cloned();
        Box::pin(async move {
            let client = client.ok_or("no way to the API is known")?;
            let response = client.send(request).await?;
            turn.answered();
            Ok(response)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(name: &'static str, answers: bool) -> kube::Client {
        let service = tower::service_fn(move |_: Request<Body>| async move {
            if answers {
                Response::builder().header("way", name).body(Body::empty()).map_err(BoxError::from)
            } else {
                Err(BoxError::from("refused"))
            }
        });
        kube::Client::new(service, "default")
    }

    async fn ask(client: &kube::Client) -> Option<String> {
        let request = Request::get("/version").body(Body::empty()).expect("a request");
        let response = client.send(request).await.ok()?;
        response.headers().get("way").and_then(|way| way.to_str().ok()).map(str::to_owned)
    }

    #[tokio::test]
    async fn a_failed_request_fails_and_the_next_one_goes_another_way() {
        let client = Failover::client(vec![way("a", false), way("b", true)]);
        assert_eq!(ask(&client).await, None, "nothing is retried");
        assert_eq!(ask(&client).await.as_deref(), Some("b"));
        assert_eq!(ask(&client).await.as_deref(), Some("b"), "it stays where it works");
    }

    #[tokio::test]
    async fn without_a_way_every_request_fails() {
        assert_eq!(ask(&Failover::client(vec![])).await, None);
    }
}
