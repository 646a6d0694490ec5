//! Receivers: Slack-compatible webhooks, and webhooks after Standard Webhooks 1.0.

use jiff::Timestamp;
use maint_core::api::record::OutboxEntry;
use maint_core::config::{Notify, NotifyError, SecretSource};
use maint_core::planted::{self, Bug};
use maint_core::report::delivery::Attempt;
use reqwest::{Response, StatusCode, Url, header};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use super::client::{causes, client};
use super::lanes::Post;
use super::secret;
use super::signature::{sign, webhook_id};

/// A message on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// Name of the record that it comes from.
    pub record: String,
    /// Node that the record is about; empty for reports.
    pub node: String,
    /// The message.
    pub entry: OutboxEntry,
}

/// A receiver. It holds no secret, only where its secrets are.
#[derive(Debug, Clone)]
pub struct Receiver {
    name: String,
    url: SecretSource,
    allow_insecure: bool,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Slack,
    Webhook { secret: Option<SecretSource> },
}

/// Bytes of text that a message carries at most: Slack refuses much more, and Standard Webhooks wants small bodies.
const TEXT_BYTES: usize = 12_000;
/// Bytes of an answer that are looked at.
const ANSWER_BYTES: usize = 256;

/// The receivers of the settings.
///
/// # Errors
/// If one of them is not configured in full.
pub fn receivers(settings: &Notify) -> Result<Vec<Receiver>, NotifyError> {
    settings.check()?;
    let slack = settings.slack.iter().map(|slack| {
        let (name, allow_insecure) = (slack.name.clone(), slack.allow_insecure);
        Ok(Receiver { name, url: slack.url()?, allow_insecure, kind: Kind::Slack })
    });
    let webhook = settings.webhook.iter().map(|webhook| {
        let (name, allow_insecure) = (webhook.name.clone(), webhook.allow_insecure);
        let kind = Kind::Webhook { secret: webhook.secret()? };
        Ok(Receiver { name, url: webhook.url()?, allow_insecure, kind })
    });
    slack.chain(webhook).collect()
}

impl Post for Receiver {
    fn name(&self) -> &str {
        &self.name
    }

    /// Sends once. Configuration that is wrong now may be right at the next try: only the receiver's own word is final.
    async fn post(&self, letter: &Letter, now: Timestamp) -> Attempt {
        match self.try_post(letter, now).await {
            Ok(attempt) => attempt,
            Err(error) => Attempt::Later { retry_after_seconds: None, error },
        }
    }
}

impl Receiver {
    async fn try_post(&self, letter: &Letter, now: Timestamp) -> Result<Attempt, String> {
        let url = secret::read(&self.url).await.map_err(|error| format!("URL: {error}"))?;
        let target = self.target(&url)?;
        let mut request = client()?.post(target).header(header::CONTENT_TYPE, "application/json");
        let mut key = None;
        match &self.kind {
            Kind::Slack => request = request.body(slack_body(letter)),
            Kind::Webhook { secret } => {
                let (id, timestamp, body) = (webhook_id(&letter.entry.id), now.as_second(), webhook_body(letter));
                if let Some(source) = secret {
                    let read = secret::read(source).await.map_err(|error| format!("secret: {error}"))?;
                    let signature = sign(&read, &id, timestamp, body.as_bytes()).map_err(|error| error.to_string())?;
                    request = request.header("webhook-signature", signature);
                    key = Some(read);
                }
                request = request.header("webhook-id", id).header("webhook-timestamp", timestamp).body(body);
            }
        }
        let redact = |text: String| redacted(text, &url, key.as_ref());
        match request.send().await {
            Ok(response) => Ok(self.judge(response).await),
            Err(error) if error.is_timeout() => Err("no answer within 10 s".to_owned()),
            Err(error) => Err(redact(causes(&error.without_url()))),
        }
    }

    fn target(&self, url: &SecretString) -> Result<Url, String> {
        let target = Url::parse(url.expose_secret()).map_err(|_| "what should be the URL is none".to_owned())?;
        match target.scheme() {
            "https" => Ok(target),
            "http" if self.allow_insecure => Ok(target),
            "http" => Err("the URL is http, which allow_insecure does not allow".to_owned()),
            _ => Err("the URL is neither https nor http".to_owned()),
        }
    }

    async fn judge(&self, response: Response) -> Attempt {
        let status = response.status();
        let retry_after_seconds = response
            .headers()
            .get(header::RETRY_AFTER)
            .and_then(|value| value.to_str().ok())
            .and_then(|text| text.trim().parse::<i64>().ok())
            .filter(|seconds| *seconds >= 0);
        let word = match self.kind {
            Kind::Slack => word(response).await,
            Kind::Webhook { .. } => None,
        };
        let error = match &word {
            Some(word) if word != "ok" => format!("status {}, {word}", status.as_u16()),
            _ => format!("status {}", status.as_u16()),
        };
        // A proxy's page answers 200 too: Slack and those who speak like it say `ok`.
        let taken = status.is_success() && (matches!(self.kind, Kind::Webhook { .. }) || word.as_deref() == Some("ok"));
        if taken {
            return Attempt::Delivered;
        }
        let passing =
            [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY].contains(&status);
        if status.is_client_error() && !passing {
            return Attempt::Refused { error };
        }
        let error = if status.is_redirection() { format!("{error}: redirects are not followed") } else { error };
        let error = if status.is_success() { format!("{error}, but the answer is not `ok`") } else { error };
        Attempt::Later { retry_after_seconds, error }
    }
}

/// Slack's answer, if it is one of its plain words, such as `ok` or `channel_is_archived`.
async fn word(mut response: Response) -> Option<String> {
    let mut text = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        text.extend_from_slice(&chunk);
        if text.len() > ANSWER_BYTES {
            return None;
        }
    }
    let text = String::from_utf8(text).ok()?.trim().to_owned();
    let plain =
        !text.is_empty() && text.len() <= 60 && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    plain.then_some(text)
}

/// The text, with what Slack would read as commands made harmless: text from the cluster must not call `<!channel>`.
fn slack_body(letter: &Letter) -> String {
    let escaped = letter.entry.text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let mark = match letter.entry.severity.as_str() {
        "critical" => "CRITICAL: ",
        "warning" => "Warning: ",
        _ => "",
    };
    json!({"text": format!("{mark}{}", cut(&escaped))}).to_string()
}

fn webhook_body(letter: &Letter) -> String {
    let OutboxEntry { id, kind, severity, text, created_at, .. } = &letter.entry;
    json!({
        "type": format!("maint.run.{}", kind.replace('-', "_")),
        "timestamp": created_at,
        "data": {
            "id": id,
            "record": letter.record,
            "node": letter.node,
            "kind": kind,
            "severity": severity,
            "text": cut(text),
        },
    })
    .to_string()
}

fn cut(text: &str) -> String {
    if text.len() <= TEXT_BYTES {
        return text.to_owned();
    }
    let end = (0..=TEXT_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}...", &text[..end])
}

/// The text of an error without URL, its parts and the key.
#[must_use]
pub fn redacted(text: String, url: &SecretString, key: Option<&SecretString>) -> String {
    let mut hidden = vec![url.expose_secret().to_owned()];
    if let Ok(url) = Url::parse(url.expose_secret()) {
        let parts = [Some(url.path()), url.query(), url.password(), Some(url.username())];
        hidden.extend(parts.into_iter().flatten().map(str::to_owned));
    }
    hidden.extend(key.map(|key| key.expose_secret().to_owned()));
    hidden
        .iter()
        .filter(|part| part.len() > 3 && !planted::is(Bug::ShowsSecrets))
        .fold(text, |text, part| text.replace(part.as_str(), "***"))
}
