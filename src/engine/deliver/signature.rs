//! Signatures after Standard Webhooks 1.0: `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use secrecy::{ExposeSecret, SecretString};

/// The signing secret is not one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the signing secret is not `whsec_` and the base64 of 24 to 64 bytes")]
pub struct SigningKeyError;

/// The value of `webhook-signature`.
pub(super) fn sign(secret: &SecretString, id: &str, timestamp: i64, body: &[u8]) -> Result<String, SigningKeyError> {
    let encoded = secret.expose_secret().strip_prefix("whsec_").ok_or(SigningKeyError)?;
    let key = STANDARD.decode(encoded).map_err(|_| SigningKeyError)?;
    if !(24..=64).contains(&key.len()) {
        return Err(SigningKeyError);
    }
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &key));
    context.update(format!("{id}.{timestamp}.").as_bytes());
    context.update(body);
    Ok(format!("v1,{}", STANDARD.encode(context.sign())))
}

/// A `webhook-id`: the entry's stable id, without the dots that separate what is signed, and with nothing that has no
/// place in a header.
pub(super) fn webhook_id(id: &str) -> String {
    id.chars().map(|letter| if letter.is_ascii_graphic() && letter != '.' { letter } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_of_the_standard() {
        // The test vector of the Standard Webhooks libraries.
        let secret = SecretString::from("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned());
        let body = br#"{"test": 2432232314}"#;
        let found = sign(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(found.as_deref(), Ok("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
        let short = format!("whsec_{}", STANDARD.encode([7; 23]));
        for (name, secret) in [("no prefix", "TWZLUTly"), ("no base64", "whsec_!"), ("too short", short.as_str())] {
            let secret = SecretString::from(secret.to_owned());
            assert_eq!(sign(&secret, "id", 1, b"{}"), Err(SigningKeyError), "{name}");
        }
    }

    #[test]
    fn ids_have_no_dots() {
        assert_eq!(webhook_id("0b1c/3/held"), "0b1c/3/held");
        assert_eq!(webhook_id("node.example é\n7"), "node-example---7");
    }
}
