//! Asks each expected API server whether it is ready, at its own address.

use std::time::Duration;

use futures_util::future::join_all;
use maint_core::matrix::classify::{self, Answer};
use maint_core::matrix::{ApiServer, Readiness};

use super::expected::{Expected, Origin};
use crate::client::{ClientError, FALLBACK_SERVER_NAME, get};
use crate::ports::{Asked, Probes, Question, Servers};
use crate::runtime::Clock;

/// Limit of the question.
pub(crate) const READYZ_LIMIT: Duration = Duration::from_secs(5);
/// Length of a verbose answer that is read, in bytes: some 60 checks.
const READYZ_BYTES: usize = 16 * 1024;

/// An API server that was asked, and the client that reaches it.
#[derive(Clone)]
pub struct ServerClient<C = kube::Client> {
    /// What it said.
    pub server: ApiServer,
    /// The client; none where there is no address, or it cannot be used.
    pub client: Option<C>,
}

impl<C> std::fmt::Debug for ServerClient<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerClient").field("server", &self.server).finish_non_exhaustive()
    }
}

/// Asks all of them at once. The order stays.
pub async fn ask_all<S: Servers>(servers: &S, clock: &Clock, expected: Vec<Expected>) -> Vec<ServerClient<S::Client>> {
    join_all(expected.into_iter().map(|expected| ask(servers, clock, expected))).await
}

/// Asks a server again through its client, where it has one.
pub(crate) async fn ask_again<C: Probes>(clock: &Clock, asked: &ServerClient<C>) -> Readiness {
    match &asked.client {
        Some(client) => classify::readiness(&client.ask(clock, Question::Readyz).await.answer),
        None => asked.server.readiness.clone(),
    }
}

async fn ask<S: Servers>(servers: &S, clock: &Clock, expected: Expected) -> ServerClient<S::Client> {
    let Expected { name, node, address, origin } = expected;
    let (readiness, client) = match (&address, &origin) {
        (_, Origin::MalformedNode { problem }) => {
            let detail = format!("whether it runs an API server is not known: {problem}");
            (Readiness::Unknown { detail }, None)
        }
        (None, _) => (Readiness::Unknown { detail: "its Node has no InternalIP".to_owned() }, None),
        (Some(address), _) => at_address(servers, clock, address).await,
    };
    let readiness = match (readiness, origin) {
        (Readiness::Unreachable { detail }, Origin::KnownGood) => Readiness::Unreachable {
            detail: format!(
                "{detail}; it was good before (ConfigMap maint-state): if it is gone for good, remove it there"
            ),
        },
        (readiness, _) => readiness,
    };
    ServerClient { server: ApiServer { name, node, address: address.unwrap_or_default(), readiness }, client }
}

/// Asks at the address; where the certificate is good but does not name the address, once more for the name that
/// every API server's certificate has. Verification is never switched off.
async fn at_address<S: Servers>(servers: &S, clock: &Clock, address: &str) -> (Readiness, Option<S::Client>) {
    let first = match servers.client(address, None) {
        Ok(client) => client,
        Err(error) => return (no_client(&error), None),
    };
    let Asked { answer, wrong_name } = first.ask(clock, Question::Readyz).await;
    if !wrong_name {
        return (classify::readiness(&answer), Some(first));
    }
    let second = match servers.client(address, Some(FALLBACK_SERVER_NAME)) {
        Ok(client) => client,
        Err(error) => return (no_client(&error), None),
    };
    let named = second.ask(clock, Question::Readyz).await.answer;
    match named {
        // The first error tells more: it names the certificate's names.
        Answer::Tls { .. } => (classify::readiness(&answer), Some(first)),
        named => (classify::readiness(&named), Some(second)),
    }
}

fn no_client(error: &ClientError) -> Readiness {
    Readiness::Unknown { detail: format!("{error}; {}", error.remedy()) }
}

/// Asks an API server whether it is ready.
pub(crate) async fn readyz(client: &kube::Client, clock: &Clock) -> Asked {
    get(client, clock, "/readyz?verbose", &[], READYZ_LIMIT, READYZ_BYTES).await.into()
}
