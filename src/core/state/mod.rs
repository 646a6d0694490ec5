//! What the leader remembers in ConfigMap `maint-state`: API servers that were good, the last green matrix, and since
//! when findings about the cluster are so. Pure: from what is there and what was seen to what is written, or nothing.
//!
//! - Keys that this version does not know are left alone; each write names only the keys that it changes.
//! - A key that cannot be read is reported, and replaced only by what was proven from live reads; until then it stays
//!   as it is, and whoever rests on it goes on to call it unknown.
//! - The term of the writing leader is part of it, and a new leader writes its own first: what an old one still has on
//!   its way then conflicts, as it does in records.
//! - An API server is remembered once it was ready, and forgotten only when its Node is gone: one that loses its label,
//!   or its entry in the EndpointSlice, is missed.

mod document;
mod look;
mod since;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::api::names;
use crate::config::Settings;
use crate::facts::Facts;

pub use document::{GreenMatrix, SinceEntry, parse_api_servers};
pub use look::{GateLook, Look, ServersLook};
pub use since::Since;

/// The time of the last green matrix is written anew at most this often while nothing else of it changes, in seconds.
const MATRIX_AGAIN_SECONDS: i64 = 600;

/// A key that is there and cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ConfigMap {}: data.{key} cannot be read: {problem}", names::STATE_CONFIG_MAP)]
pub struct Unreadable {
    /// The key.
    pub key: &'static str,
    /// What is wrong with it.
    pub problem: String,
    /// Its text, for the log: whoever wrote it may want it back.
    pub text: String,
    /// Whether this decision replaces it.
    pub replaced: bool,
}

/// What is to be done about the ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decision {
    /// Keys to be written, with their new text; empty where nothing changed.
    pub data: BTreeMap<&'static str, String>,
    /// Keys that cannot be understood.
    pub unreadable: Vec<Unreadable>,
    /// A later leader has written it: ours is over.
    pub overtaken: bool,
}

/// Decides what is written over `old` (empty where there is no ConfigMap yet).
#[must_use]
pub fn decide(old: &BTreeMap<String, String>, look: &Look, term: i64, now: Timestamp) -> Decision {
    let mut change = Change { old, decision: Decision::default() };
    let written = change.read(names::STATE_TERM_KEY, parse_term);
    if matches!(written, Key::Known(known) if known > term) {
        return Decision { overtaken: true, ..change.decision };
    }
    change.write(names::STATE_TERM_KEY, term.to_string());
    servers(&mut change, look);
    matrix(&mut change, look);
    findings(&mut change, look, now);
    change.decision
}

/// The data of ConfigMap `maint-state`, where it was read and is there.
#[must_use]
pub fn data_of<'a>(facts: &'a Facts, settings: &Settings) -> Option<&'a BTreeMap<String, String>> {
    let own = |at: &str| at == settings.namespace || at.is_empty();
    let mut maps = facts.config_maps.good();
    let map = maps.find(|map| map.metadata.name == names::STATE_CONFIG_MAP && own(&map.metadata.namespace));
    map.map(|map| &map.data)
}

/// The term of the leader that wrote it last. The next one must be higher, even if somebody deleted Lease and records.
#[must_use]
pub fn term_of(facts: &Facts, settings: &Settings) -> Option<i64> {
    parse_term(data_of(facts, settings)?.get(names::STATE_TERM_KEY)?).ok()
}

fn parse_term(text: &str) -> Result<i64, String> {
    match text.trim().parse::<i64>() {
        Ok(term) if term >= 0 => Ok(term),
        Ok(_) => Err("it is negative".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// What a key holds.
enum Key<T> {
    Missing,
    Known(T),
    Unreadable,
}

struct Change<'a> {
    old: &'a BTreeMap<String, String>,
    decision: Decision,
}

impl Change<'_> {
    fn read<T>(&mut self, key: &'static str, parse: impl Fn(&str) -> Result<T, String>) -> Key<T> {
        let Some(text) = self.old.get(key) else { return Key::Missing };
        match parse(text) {
            Ok(value) => Key::Known(value),
            Err(problem) => {
                let unreadable = Unreadable { key, problem, text: text.clone(), replaced: false };
                self.decision.unreadable.push(unreadable);
                Key::Unreadable
            }
        }
    }

    fn write(&mut self, key: &'static str, text: String) {
        if self.old.get(key) == Some(&text) {
            return;
        }
        for unreadable in self.decision.unreadable.iter_mut().filter(|one| one.key == key) {
            unreadable.replaced = true;
        }
        self.decision.data.insert(key, text);
    }
}

fn servers(change: &mut Change<'_>, look: &Look) {
    let key = names::STATE_API_SERVERS_KEY;
    let known = change.read(key, parse_api_servers);
    let Some(seen) = &look.servers else { return };
    let next = match known {
        Key::Unreadable => match &seen.whole {
            // The labels of the nodes and the API servers' own entries agree: that is proof enough to begin anew.
            Some(whole) => whole.clone(),
            None => return,
        },
        Key::Missing => seen.good.clone(),
        Key::Known(mut known) => {
            let before = known.clone();
            known.extend(seen.good.clone());
            known.retain(|name, address| seen.may_still_be(name, address));
            // Nothing at all is no answer: the last ones that were good stay expected.
            if known.is_empty() { before } else { known }
        }
    };
    if !next.is_empty() || change.old.contains_key(key) {
        change.write(key, document::text(&next));
    }
}

fn matrix(change: &mut Change<'_>, look: &Look) {
    let known = change.read(names::STATE_MATRIX_KEY, GreenMatrix::parse);
    let Some(green) = &look.matrix else { return };
    let again = match &known {
        Key::Known(old) => !old.is_like(green) || green.at.duration_since(old.at).as_secs() >= MATRIX_AGAIN_SECONDS,
        Key::Missing | Key::Unreadable => true,
    };
    if again {
        change.write(names::STATE_MATRIX_KEY, document::text(green));
    }
}

fn findings(change: &mut Change<'_>, look: &Look, now: Timestamp) {
    let known = change.read(names::STATE_SINCE_KEY, SinceEntry::parse_list);
    if look.gates.is_empty() {
        return;
    }
    let missing = matches!(known, Key::Missing);
    let old = if let Key::Known(old) = known { old } else { Vec::new() };
    let next = since::next(old, look, now);
    if !(missing && next.is_empty()) {
        change.write(names::STATE_SINCE_KEY, document::text(&next));
    }
}
