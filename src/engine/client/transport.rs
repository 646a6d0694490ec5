//! What went wrong below HTTP, told from the chain of errors that kube hands up.

use std::error::Error as StdError;

use maint_core::matrix::classify::one_line;

/// Why a request has no response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// In what way.
    pub class: FailureClass,
    /// The texts of all causes, outermost first.
    pub detail: String,
}

/// The token of an account cannot be had; nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no token for service account {account}: {why}")]
pub struct NoToken {
    /// `namespace/name`
    pub account: String,
    /// Why.
    pub why: String,
}

/// In what way a request failed below HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    /// A limit of the connection was reached.
    Timeout,
    /// The certificate is good but does not name the address.
    TlsName,
    /// Any other TLS failure.
    Tls,
    /// Credentials could not be had; nothing was sent.
    Credentials,
    /// Refused, reset, cut, no route, no such name.
    Connection,
}

/// Classifies an error of a client.
#[must_use]
pub fn classify(error: &kube::Error) -> Failure {
    let mut class = match error {
        kube::Error::Auth(_) => FailureClass::Credentials,
        _ => FailureClass::Connection,
    };
    let mut texts: Vec<String> = Vec::new();
    let mut next: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(cause) = next {
        let text = cause.to_string();
        // Many wrappers repeat the text of their cause; once is enough for people.
        texts.retain(|known| !known.ends_with(&text) || known == &text);
        if texts.last() != Some(&text) {
            texts.push(text);
        }
        if class == FailureClass::Connection {
            class = class_of(cause).unwrap_or(class);
        }
        next = inner(cause);
    }
    Failure { class, detail: one_line(&texts.join(": ")) }
}

/// `io::Error::source` skips the error it wraps, which is just the one that tells TLS from the rest.
fn inner<'a>(cause: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    match cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
        Some(wrapped) => Some(wrapped),
        None => cause.source(),
    }
}

fn class_of(cause: &(dyn StdError + 'static)) -> Option<FailureClass> {
    if cause.is::<NoToken>() {
        return Some(FailureClass::Credentials);
    }
    if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
        use rustls::CertificateError::{NotValidForName, NotValidForNameContext};
        return Some(match tls {
            rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. }) => FailureClass::TlsName,
            _ => FailureClass::Tls,
        });
    }
    match cause.downcast_ref::<std::io::Error>()?.kind() {
        std::io::ErrorKind::TimedOut => Some(FailureClass::Timeout),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(error: impl Into<Box<dyn StdError + Send + Sync>>) -> kube::Error {
        kube::Error::Service(error.into())
    }

    #[test]
    fn causes_are_found_through_wrapped_io_errors() {
        let io = |kind, inner: Box<dyn StdError + Send + Sync>| std::io::Error::new(kind, inner);
        let name = rustls::Error::InvalidCertificate(rustls::CertificateError::NotValidForName);
        let expired = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        let rows = [
            ("refused", service(std::io::Error::from(std::io::ErrorKind::ConnectionRefused)), FailureClass::Connection),
            ("late", service(io(std::io::ErrorKind::TimedOut, "deadline".into())), FailureClass::Timeout),
            (
                "name, twice wrapped",
                service(io(std::io::ErrorKind::Other, Box::new(io(std::io::ErrorKind::InvalidData, Box::new(name))))),
                FailureClass::TlsName,
            ),
            ("expired", service(io(std::io::ErrorKind::InvalidData, Box::new(expired))), FailureClass::Tls),
            ("anything", service("odd"), FailureClass::Connection),
        ];
        for (row, error, class) in rows {
            let failure = classify(&error);
            assert_eq!(failure.class, class, "{row}: {}", failure.detail);
            assert!(!failure.detail.is_empty(), "{row}");
        }
    }
}
