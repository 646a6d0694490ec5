//! Who is told: receivers of messages. Their URLs and secrets are never in the configuration itself, only the file or
//! the environment variable that holds them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Receivers of messages.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Notify {
    /// Webhooks that understand Slack's `{"text": ...}` and answer `ok`.
    pub slack: Vec<SlackReceiver>,
    /// Webhooks after Standard Webhooks 1.0.
    pub webhook: Vec<WebhookReceiver>,
}

/// A webhook that understands Slack's `{"text": ...}`. Its URL is a secret: whoever has it can post.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SlackReceiver {
    /// Name in records, logs and metrics; different from every other receiver's.
    pub name: String,
    /// File with the URL, read anew at each message.
    pub url_file: Option<String>,
    /// Environment variable with the URL; exactly one of the two is set.
    pub url_env: Option<String>,
    /// Allow `http://`, where anyone on the way can read URL and text.
    pub allow_insecure: bool,
}

/// A webhook after Standard Webhooks 1.0: `webhook-id`, `webhook-timestamp`, and with a secret `webhook-signature`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebhookReceiver {
    /// Name in records, logs and metrics; different from every other receiver's.
    pub name: String,
    /// File with the URL, read anew at each message.
    pub url_file: Option<String>,
    /// Environment variable with the URL; exactly one of the two is set.
    pub url_env: Option<String>,
    /// File with the signing secret, `whsec_` and base64 of 24 to 64 bytes. Without secret nothing is signed.
    pub secret_file: Option<String>,
    /// Environment variable with the signing secret; at most one of the two is set.
    pub secret_env: Option<String>,
    /// Allow `http://`, where anyone on the way can read URL and text.
    pub allow_insecure: bool,
}

/// Where a secret is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// In a file, by its path.
    File(String),
    /// In an environment variable, by its name.
    Environment(String),
}

/// What is wrong with the receivers as configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotifyError {
    /// A receiver has no name.
    #[error("[[notify.{kind}]] number {number} has no `name`")]
    NoName {
        /// `slack` or `webhook`.
        kind: &'static str,
        /// Which, from 1.
        number: usize,
    },
    /// Two receivers have one name: records could not tell who got a message.
    #[error("two receivers are named `{0}`: records tell by name who got a message")]
    NameTwice(String),
    /// Neither or both of `..._file` and `..._env` are set.
    #[error("receiver `{receiver}`: set exactly one of `{what}_file` and `{what}_env`")]
    NotOneSource {
        /// The receiver's name.
        receiver: String,
        /// `url` or `secret`.
        what: &'static str,
    },
}

impl Notify {
    /// Looks for what is wrong with the receivers, without reading any secret.
    ///
    /// # Errors
    /// The first fault found, in the order of the file.
    pub fn check(&self) -> Result<(), NotifyError> {
        let slack = self.slack.iter().enumerate().map(|(index, receiver)| ("slack", index, receiver.name.as_str()));
        let webhook =
            self.webhook.iter().enumerate().map(|(index, receiver)| ("webhook", index, receiver.name.as_str()));
        let mut names = BTreeSet::new();
        for (kind, index, name) in slack.chain(webhook) {
            if name.is_empty() {
                return Err(NotifyError::NoName { kind, number: index + 1 });
            }
            if !names.insert(name) {
                return Err(NotifyError::NameTwice(name.to_owned()));
            }
        }
        self.slack.iter().try_for_each(|receiver| receiver.url().map(drop))?;
        self.webhook.iter().try_for_each(|receiver| receiver.url().and(receiver.secret()).map(drop))
    }
}

impl SlackReceiver {
    /// Where its URL is.
    ///
    /// # Errors
    /// If neither or both sources are set.
    pub fn url(&self) -> Result<SecretSource, NotifyError> {
        required(&self.name, "url", self.url_file.as_ref(), self.url_env.as_ref())
    }
}

impl WebhookReceiver {
    /// Where its URL is.
    ///
    /// # Errors
    /// If neither or both sources are set.
    pub fn url(&self) -> Result<SecretSource, NotifyError> {
        required(&self.name, "url", self.url_file.as_ref(), self.url_env.as_ref())
    }

    /// Where its signing secret is, if it has one.
    ///
    /// # Errors
    /// If both sources are set.
    pub fn secret(&self) -> Result<Option<SecretSource>, NotifyError> {
        match (&self.secret_file, &self.secret_env) {
            (None, None) => Ok(None),
            (file, environment) => required(&self.name, "secret", file.as_ref(), environment.as_ref()).map(Some),
        }
    }
}

fn required(
    receiver: &str,
    what: &'static str,
    file: Option<&String>,
    environment: Option<&String>,
) -> Result<SecretSource, NotifyError> {
    match (file, environment) {
        (Some(path), None) => Ok(SecretSource::File(path.clone())),
        (None, Some(name)) => Ok(SecretSource::Environment(name.clone())),
        _ => Err(NotifyError::NotOneSource { receiver: receiver.to_owned(), what }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receivers_are_checked() {
        let rows = [
            ("none", "", Ok(())),
            (
                "two kinds",
                "[[slack]]\nname = 'team'\nurl_file = '/s/url'\n[[webhook]]\nname = 'pager'\nurl_env = 'U'\nsecret_file = '/s/k'\n",
                Ok(()),
            ),
            ("no name", "[[webhook]]\nurl_env = 'U'\n", Err("[[notify.webhook]] number 1 has no `name`")),
            (
                "one name twice, across kinds",
                "[[slack]]\nname = 'team'\nurl_env = 'U'\n[[webhook]]\nname = 'team'\nurl_env = 'V'\n",
                Err("two receivers are named `team`: records tell by name who got a message"),
            ),
            (
                "no URL",
                "[[slack]]\nname = 'team'\n",
                Err("receiver `team`: set exactly one of `url_file` and `url_env`"),
            ),
            (
                "two URLs",
                "[[slack]]\nname = 'team'\nurl_env = 'U'\nurl_file = '/s/url'\n",
                Err("receiver `team`: set exactly one of `url_file` and `url_env`"),
            ),
            (
                "two secrets",
                "[[webhook]]\nname = 'pager'\nurl_env = 'U'\nsecret_env = 'K'\nsecret_file = '/s/k'\n",
                Err("receiver `pager`: set exactly one of `secret_file` and `secret_env`"),
            ),
        ];
        for (name, text, wanted) in rows {
            let notify: Notify = toml::from_str(text).expect(name);
            let found = notify.check().map_err(|error| error.to_string());
            assert_eq!(found, wanted.map_err(str::to_owned), "{name}");
        }
    }

    #[test]
    fn a_url_has_no_place_in_the_configuration() {
        let error =
            toml::from_str::<Notify>("[[slack]]\nname = 'team'\nurl = 'https://h/x'\n").expect_err("unknown key");
        assert!(error.to_string().contains("unknown field `url`"), "{error}");
    }
}
