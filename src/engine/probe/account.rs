//! With whose credentials single API servers are asked: our own, those of a token file, or those of an account that does
//! nothing but probe, whose token we ask for (TokenRequest) and renew.
//!
//! `get nodes/proxy` is the right to run commands in every pod, so the service's own account does not have it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, HeaderValue};
use http::{Method, StatusCode};
use kube::client::Body;
use maint_core::matrix::classify::one_line;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tower::BoxError;

use crate::client::{Access, ClientError, NoToken};
use crate::execute::{Form, send};
use crate::ports::Servers;
use crate::runtime::{Clock, Instant};

/// Lifetime that is asked for, in seconds: the least that the API grants (authentication.k8s.io/v1 TokenRequest).
const LIFETIME_SECONDS: u64 = 600;
/// Limit of one TokenRequest. It is shorter than the question whether a server is ready, so that a missing token is
/// never taken for a silent server.
const LIMIT: Duration = Duration::from_secs(3);
/// How long a failure is told again before another request is sent.
const PAUSE: Duration = Duration::from_secs(5);
/// A token is not used in its last seconds: a probe may take some.
const MARGIN: Duration = Duration::from_secs(30);

/// Whose credentials probes have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ProbeIdentity {
    /// Those of all other requests.
    #[default]
    Own,
    /// The token in this file, read again at least once a minute.
    TokenFile(PathBuf),
    /// This service account of maint's namespace, by tokens that we ask for.
    Account(String),
}

/// Clients for single API servers, with the credentials of probes.
#[derive(Debug, Clone)]
pub struct ProbeServers {
    access: Access,
    account: Option<Arc<AccountToken>>,
}

impl ProbeServers {
    /// With the credentials that `identity` names. Nothing is sent yet. `client` asks for tokens, in `namespace`.
    #[must_use]
    pub fn new(access: &Access, identity: &ProbeIdentity, client: kube::Client, clock: Clock, namespace: &str) -> Self {
        match identity {
            ProbeIdentity::Own => access.clone().into(),
            ProbeIdentity::TokenFile(path) => access.with_token_file(path).into(),
            ProbeIdentity::Account(account) => Self {
                access: access.anonymous(),
                account: Some(Arc::new(AccountToken::new(client, clock, namespace, account))),
            },
        }
    }

    /// Where it leads, for people.
    #[must_use]
    pub fn source(&self) -> String {
        self.access.source()
    }
}

impl From<Access> for ProbeServers {
    fn from(access: Access) -> Self {
        Self { access, account: None }
    }
}

impl Servers for ProbeServers {
    type Client = kube::Client;

    fn client(&self, address: &str, tls_server_name: Option<&str>) -> Result<kube::Client, ClientError> {
        let client = Servers::client(&self.access, address, tls_server_name)?;
        Ok(match &self.account {
            None => client,
            Some(token) => with_token(client, token),
        })
    }
}

/// A client whose requests carry the account's token.
fn with_token(client: kube::Client, token: &Arc<AccountToken>) -> kube::Client {
    let token = Arc::clone(token);
    let service = tower::service_fn(move |mut request: http::Request<Body>| {
        let (client, token) = (client.clone(), Arc::clone(&token));
        async move {
            let bearer = token.bearer().await?;
            request.headers_mut().insert(AUTHORIZATION, bearer.clone());
            let response = client.send(request).await?;
            if response.status() == StatusCode::UNAUTHORIZED {
                token.forget(&bearer).await;
            }
            Ok::<_, BoxError>(response)
        }
    });
    kube::Client::new(service, "default")
}

/// The token of a service account, asked for when it is needed.
struct AccountToken {
    client: kube::Client,
    clock: Clock,
    account: String,
    path: String,
    /// Held during a request: of many probes one asks.
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    token: Option<Token>,
    failed: Option<(NoToken, Instant)>,
}

struct Token {
    /// Marked as sensitive, so no `Debug` shows it.
    bearer: HeaderValue,
    asked_at: Instant,
    lifetime: Duration,
}

impl Token {
    fn is_younger_than(&self, age: Duration, now: Instant) -> bool {
        now.duration_since(self.asked_at) < age
    }
}

impl std::fmt::Debug for AccountToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccountToken").field("account", &self.account).finish_non_exhaustive()
    }
}

impl AccountToken {
    fn new(client: kube::Client, clock: Clock, namespace: &str, account: &str) -> Self {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        Self { client, clock, account: format!("{namespace}/{account}"), path, known: Mutex::default() }
    }

    /// `Bearer ...`, asked for anew after half of its lifetime. While that fails the old one serves to its end.
    async fn bearer(&self) -> Result<HeaderValue, NoToken> {
        let mut known = self.known.lock().await;
        let now = self.clock.instant();
        if let Some(token) = known.token.as_ref().filter(|token| token.is_younger_than(token.lifetime / 2, now)) {
            return Ok(token.bearer.clone());
        }
        let rests = known.failed.as_ref().is_some_and(|(_, since)| now.duration_since(*since) < PAUSE);
        if !rests {
            match self.ask(now).await {
                Ok(token) => {
                    let bearer = token.bearer.clone();
                    *known = Known { token: Some(token), failed: None };
                    return Ok(bearer);
                }
                Err(error) => known.failed = Some((error, self.clock.instant())),
            }
        }
        let usable = |token: &&Token| token.is_younger_than(token.lifetime.saturating_sub(MARGIN), now);
        match (known.token.as_ref().filter(usable), &known.failed) {
            (Some(token), _) => Ok(token.bearer.clone()),
            (None, Some((error, _))) => Err(error.clone()),
            (None, None) => Err(self.no("it was not asked for")),
        }
    }

    /// Drops a token that an API server did not take, unless it is so new that asking again would not help.
    async fn forget(&self, bearer: &HeaderValue) {
        let mut known = self.known.lock().await;
        let now = self.clock.instant();
        if known.token.as_ref().is_some_and(|token| token.bearer == *bearer && !token.is_younger_than(MARGIN, now)) {
            known.token = None;
        }
    }

    async fn ask(&self, now: Instant) -> Result<Token, NoToken> {
        let body = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"expirationSeconds": LIFETIME_SECONDS},
        });
        let asked = send(&self.client, &self.clock, Method::POST, &self.path, Form::Json, Some(&body));
        let answer = match self.clock.timeout(LIMIT, asked).await {
            Ok(answer) => answer.map_err(|error| self.no(&error.to_string()))?,
            Err(late) => return Err(self.no(&late.to_string())),
        };
        let token = answer.pointer("/status/token").and_then(Value::as_str).filter(|token| !token.is_empty());
        let token = token.ok_or_else(|| self.no("the answer has no status.token"))?;
        let mut bearer = HeaderValue::try_from(format!("Bearer {token}"))
            .map_err(|_| self.no("the answer's token does not fit into a header"))?;
        bearer.set_sensitive(true);
        // What was granted; the server may shorten it.
        let granted = answer.pointer("/spec/expirationSeconds").and_then(Value::as_u64).unwrap_or(LIFETIME_SECONDS);
        Ok(Token { bearer, asked_at: now, lifetime: Duration::from_secs(granted) })
    }

    fn no(&self, why: &str) -> NoToken {
        NoToken { account: self.account.clone(), why: one_line(why) }
    }
}

#[cfg(test)]
#[path = "account/tests.rs"]
mod tests;
