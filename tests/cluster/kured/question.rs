//! The question, byte for byte as kured's Prometheus client sends it, over one connection that is kept.
//!
//! It has no time limit but that of the dial. A compressed answer is offered, as the real one does, and not played:
//! its body is then no JSON, and kured blocked.

use std::time::Duration;

use anyhow::{Context as _, Result};
use http::{Method, Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use maint_sim::doubles::kured::answer::{Answer, Next, next};
use tokio::net::TcpStream;

/// Go's limit of a dial.
const DIAL: Duration = Duration::from_secs(30);
/// Go follows so many redirects.
const REDIRECTS: usize = 10;

/// Asks at one URL.
pub struct Asker {
    url: String,
    connection: Option<(String, SendRequest<Full<Bytes>>)>,
}

/// Where a request goes: `host:port` and path.
fn target(url: &str) -> Option<(String, String)> {
    let rest = url.strip_prefix("http://")?;
    let (authority, path) = rest.split_once('/').map_or((rest, String::new()), |(a, p)| (a, p.to_string()));
    let authority = if authority.contains(':') { authority.to_string() } else { format!("{authority}:80") };
    Some((authority, format!("/{path}")))
}

impl Asker {
    /// The client appends its path to the URL.
    pub fn new(url: &str) -> Self {
        Self { url: format!("{}/api/v1/query", url.trim_end_matches('/')), connection: None }
    }

    /// Asks once, and once more by GET or where a redirect leads; waits as long as it takes.
    pub async fn ask(&mut self) -> Answer {
        let now = Timestamp::now();
        #[expect(clippy::cast_precision_loss, reason = "Go's client loses it in the same way")]
        let seconds = now.as_second() as f64 + f64::from(now.subsec_nanosecond()) / 1e9;
        let form = format!("query=ALERTS&time={seconds}");
        let (mut url, mut body, mut by_post) = (self.url.clone(), Some(form.clone()), true);
        for _ in 0..=REDIRECTS {
            let (status, location, text) = match self.send(&url, body.as_deref()).await {
                Ok(answer) => answer,
                Err(answer) => {
                    self.connection = None;
                    return answer;
                }
            };
            match next(status, by_post) {
                Next::Judge => return Answer::Http { status, body: text },
                Next::AskByGet => {
                    (url, body, by_post) = (format!("{}?{form}", self.url), None, false);
                }
                Next::Follow => url = follow(&url, &location),
                Next::FollowByGet => {
                    url = follow(&url, &location);
                    body = None;
                }
            }
        }
        Answer::Closed
    }

    async fn send(&mut self, url: &str, form: Option<&str>) -> Result<(u16, String, String), Answer> {
        let Some((authority, path)) = target(url) else { return Err(Answer::Unresolved) };
        let request = request(&authority, &path, form).map_err(|_| Answer::Closed)?;
        let mut sender = self.sender(&authority).await?;
        let response = sender.send_request(request).await.map_err(|error| broken(&error))?;
        let status = response.status().as_u16();
        let location = response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
        let location = location.unwrap_or_default().to_string();
        let bytes = response.into_body().collect().await.map_err(|error| broken(&error))?.to_bytes();
        self.connection = Some((authority, sender));
        Ok((status, location, String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// The kept connection, unless it leads elsewhere or the other end has closed it.
    async fn sender(&mut self, authority: &str) -> Result<SendRequest<Full<Bytes>>, Answer> {
        if let Some((kept, mut sender)) = self.connection.take()
            && kept == authority
            && !sender.is_closed()
            && sender.ready().await.is_ok()
        {
            return Ok(sender);
        }
        let stream = match tokio::time::timeout(DIAL, TcpStream::connect(authority)).await {
            Err(_) => return Err(Answer::Dropped),
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => return Err(Answer::Refused),
            Ok(Err(error)) if error.raw_os_error().is_none() => return Err(Answer::Unresolved),
            Ok(Err(_)) => return Err(Answer::Dropped),
            Ok(Ok(stream)) => stream,
        };
        let handshake = Builder::new().title_case_headers(true).handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(|error| broken(&error))?;
        tokio::spawn(connection);
        Ok(sender)
    }
}

/// The five headers, in the order of Go's client.
fn request(authority: &str, path: &str, form: Option<&str>) -> Result<Request<Full<Bytes>>> {
    let host = authority.strip_suffix(":80").unwrap_or(authority);
    let method = if form.is_some() { Method::POST } else { Method::GET };
    let mut request = Request::builder().method(method).uri(path).header(header::HOST, host);
    request = request.header(header::USER_AGENT, "Go-http-client/1.1");
    if let Some(form) = form {
        request = request.header(header::CONTENT_LENGTH, form.len());
        request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    }
    request = request.header(header::ACCEPT_ENCODING, "gzip");
    request.body(Full::new(Bytes::from(form.unwrap_or_default().to_string()))).context("a bad request")
}

fn follow(from: &str, location: &str) -> String {
    if location.starts_with("http://") {
        return location.to_string();
    }
    let authority = target(from).map_or_else(String::new, |(authority, _)| authority);
    format!("http://{authority}{location}")
}

fn broken(error: &hyper::Error) -> Answer {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        if kind == Some(std::io::ErrorKind::ConnectionReset) {
            return Answer::Reset;
        }
        cause = error.source();
    }
    Answer::Closed
}
