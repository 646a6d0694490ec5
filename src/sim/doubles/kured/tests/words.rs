//! Effects and requests in a few words.

use crate::doubles::kured::Effect;
use crate::doubles::kured::calls::Call;

pub fn name(effect: &Effect) -> String {
    match effect {
        Effect::Api { call, .. } => shorthand(call),
        Effect::Ask(_) => "ask".to_owned(),
        Effect::Sentinel(_) => "sentinel".to_owned(),
        Effect::Sleep(..) => "sleep".to_owned(),
        Effect::Reboot(_) => "reboot".to_owned(),
        Effect::Log(_, text) => format!("log {text}"),
        Effect::Exit(code) => format!("exit {code}"),
    }
}

/// `PATCH node`, `GET daemonset`, `LIST pods`, ...
pub fn shorthand(call: &Call) -> String {
    let parts: Vec<&str> = call.path.split('/').filter(|part| !part.is_empty()).collect();
    match (call.method, parts.as_slice()) {
        ("GET", ["api", "v1", "pods"]) => "LIST pods".to_owned(),
        (method, ["api", "v1", "nodes", _]) => format!("{method} node"),
        (method, [.., "daemonsets", _]) => format!("{method} daemonset"),
        (method, [.., "pods", _]) => format!("{method} pod"),
        (method, [.., "eviction"]) => format!("{method} eviction"),
        (method, _) => format!("{method} {}", call.path),
    }
}
