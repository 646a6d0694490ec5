//! One request and its answer, with a limit in time and size: kube's own helpers lose headers and mix up errors.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Body as _;
use kube::client::Body;
use maint_core::matrix::classify::{Answer, Response, one_line};

use super::{Failure, FailureClass, classify};
use crate::runtime::Clock;

/// How an exchange ended.
#[derive(Debug)]
pub enum Exchange {
    /// Head and body (or its allowed beginning).
    Complete {
        /// Status, version and headers.
        head: http::response::Parts,
        /// The body, at most as many bytes as were allowed.
        body: Vec<u8>,
        /// Whether the body was longer.
        truncated: bool,
    },
    /// The head came, and the body was cut off.
    Cut {
        /// Status code of the head.
        status: http::StatusCode,
        /// What went wrong.
        failure: Failure,
    },
    /// No response.
    Failed(Failure),
    /// No complete response within the limit.
    TimedOut(Duration),
}

impl Exchange {
    /// As the pure part judges it.
    #[must_use]
    pub fn into_answer(self) -> Answer {
        match self {
            Self::Complete { head, body, .. } => Answer::Response(Response {
                status: head.status.as_u16(),
                http_1_1: head.version == http::Version::HTTP_11,
                audit_id: head.headers.contains_key("audit-id"),
                content_type: header(&head, &http::header::CONTENT_TYPE),
                body: String::from_utf8_lossy(&body).into_owned(),
            }),
            Self::Cut { failure, .. } | Self::Failed(failure) => match failure.class {
                FailureClass::Timeout | FailureClass::Connection => Answer::NoConnection { detail: failure.detail },
                FailureClass::Tls | FailureClass::TlsName => Answer::Tls { detail: failure.detail },
                FailureClass::Credentials => Answer::NotSent { detail: failure.detail },
            },
            Self::TimedOut(limit) => Answer::TimedOut { seconds: limit.as_secs() },
        }
    }
}

/// A header as text; empty if it is not there or no text.
pub(crate) fn header(head: &http::response::Parts, name: &http::HeaderName) -> String {
    head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

/// Sends a GET and reads at most `body_limit` bytes, all within `limit`.
pub async fn get(
    client: &kube::Client,
    clock: &Clock,
    path: &str,
    headers: &[(&'static str, &'static str)],
    limit: Duration,
    body_limit: usize,
) -> Exchange {
    let mut request = http::Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = match request.body(Body::empty()) {
        Ok(request) => request,
        Err(error) => {
            let detail = one_line(&format!("the request cannot be built: {error}"));
            return Exchange::Failed(Failure { class: FailureClass::Credentials, detail });
        }
    };
    match clock.timeout(limit, exchange(client, request, body_limit)).await {
        Ok(exchange) => exchange,
        Err(late) => Exchange::TimedOut(late.limit),
    }
}

async fn exchange(client: &kube::Client, request: http::Request<Body>, body_limit: usize) -> Exchange {
    let (head, mut stream) = match client.send(request).await {
        Ok(response) => response.into_parts(),
        Err(error) => return Exchange::Failed(classify(&error)),
    };
    let expected = usize::try_from(stream.size_hint().lower()).unwrap_or(0).min(body_limit);
    let mut body = Vec::with_capacity(expected);
    while let Some(frame) = stream.frame().await {
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => return Exchange::Cut { status: head.status, failure: classify(&error) },
        };
        let Some(data) = frame.data_ref() else { continue };
        let room = body_limit - body.len();
        body.extend_from_slice(data.get(..room).unwrap_or(data));
        if data.len() > room {
            return Exchange::Complete { head, body, truncated: true };
        }
    }
    Exchange::Complete { head, body, truncated: false }
}
