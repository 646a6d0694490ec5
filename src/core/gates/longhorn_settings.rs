//! Longhorn's own settings, as far as the verdicts of its gates need them.

use std::collections::BTreeMap;

use super::{Draft, GateInput, Read};
use crate::api::{Evidence, Reason, SourceId};
use crate::facts::{Item, Malformed};

/// The settings by name. One that cannot be understood counts only where an answer depends on it.
#[derive(Debug)]
pub(super) struct LonghornSettings<'a> {
    /// None if they could not be read: the draft holds the unknown.
    values: Option<BTreeMap<&'a str, Result<&'a str, String>>>,
    /// One that does not tell its name: it may be any that is not among the values.
    nameless: Option<String>,
}

/// What a setting says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Setting {
    /// This value.
    Is(String),
    /// Longhorn has no such setting (an older release).
    Missing,
    /// It could not be read or understood, and why.
    Unreadable(String),
}

/// What Longhorn does with a node that is being drained (`node-drain-policy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DrainPolicy {
    /// Every replica needs another healthy one on a schedulable node.
    BlockIfLast,
    /// As above, but only replicas that run; those of detached volumes may stay.
    AllowIfStopped,
    /// Longhorn first moves the replicas away, as many as the policy names.
    Evicts,
    /// Nothing holds the drain.
    Always,
}

impl<'a> LonghornSettings<'a> {
    /// Where a moment needs none of them.
    pub const fn unread() -> Self {
        Self { values: None, nameless: None }
    }

    /// Reads them. None at all is an unknown: an empty list of volumes may be that of a wrong namespace.
    pub fn read(draft: &mut Draft<'a>, input: &'a GateInput<'a>) -> Self {
        let items = match draft.observe(SourceId::LonghornSettings, &input.facts.longhorn_settings) {
            Read::Known(items) => items,
            Read::Unreadable => return Self::unread(),
            Read::Absent | Read::NotAsked => {
                let evidence = Evidence::new("longhorn-settings", "read", "no answer", "a list");
                let message = "nothing is known of longhorn-settings, although Longhorn is installed";
                draft.unknown(Reason::ObservationFailed, message, evidence);
                return Self::unread();
            }
        };
        if items.is_empty() {
            // Longhorn makes all its settings at its first start. None means that the volumes are elsewhere too, and
            // an empty list of volumes must not pass for a whole one.
            let namespace = &input.settings.longhorn.namespace;
            draft.unknown(
                Reason::ObservationFailed,
                format!(
                    "Longhorn's kinds exist, but namespace {namespace} holds no setting of it: set [longhorn] \
                     namespace to where it runs, or remove the leftover CRDs"
                ),
                Evidence::new(format!("Namespace {namespace}"), "settings.longhorn.io", "0", "Longhorn's settings"),
            );
        }
        let values = items.iter().filter_map(|item| match item {
            Item::Good(setting) => Some((setting.metadata.name.as_str(), Ok(setting.value.as_str()))),
            Item::Malformed(bad) if is_nameless(bad) => None,
            Item::Malformed(bad) => bad.object.rsplit(['/', ' ']).next().map(|name| (name, Err(bad.to_string()))),
        });
        let nameless = items.iter().find_map(|item| match item {
            Item::Malformed(bad) if is_nameless(bad) => Some(bad.to_string()),
            _ => None,
        });
        Self { values: Some(values.collect()), nameless }
    }

    /// The value of a setting for a data engine: since 1.10 some are `{"v1":"..","v2":".."}`.
    pub fn get(&self, name: &str, data_engine: &str) -> Setting {
        let Some(values) = &self.values else {
            return Setting::Unreadable("the settings could not be read".to_owned());
        };
        match values.get(name) {
            None => self.nameless.clone().map_or(Setting::Missing, Setting::Unreadable),
            Some(Err(why)) => Setting::Unreadable(why.clone()),
            Some(Ok(value)) if value.trim_start().starts_with('{') => of_engine(value, data_engine),
            Some(Ok(value)) => Setting::Is(value.trim().to_owned()),
        }
    }

    /// A whole number, `default` where Longhorn has no such setting.
    ///
    /// # Errors
    /// Why it cannot be told.
    pub fn number(&self, name: &str, data_engine: &str, default: i64) -> Result<i64, String> {
        match self.get(name, data_engine) {
            Setting::Is(value) => {
                value.parse().map_err(|_| format!("setting {name} is `{value}`, which is no whole number"))
            }
            Setting::Missing => Ok(default),
            Setting::Unreadable(why) => Err(why),
        }
    }

    /// What holds the drain of a node.
    ///
    /// # Errors
    /// Why it cannot be told: unreadable, or a word of a release that this version does not know.
    pub fn drain_policy(&self) -> Result<(DrainPolicy, String), String> {
        let word = match self.get("node-drain-policy", "v1") {
            Setting::Is(word) => word,
            // Before 1.5 there was a yes or no, whose default is what became this policy.
            Setting::Missing => "block-if-contains-last-replica".to_owned(),
            Setting::Unreadable(why) => return Err(why),
        };
        let policy = match word.as_str() {
            "block-if-contains-last-replica" => DrainPolicy::BlockIfLast,
            "allow-if-replica-is-stopped" => DrainPolicy::AllowIfStopped,
            "block-for-eviction" | "block-for-eviction-if-contains-last-replica" => DrainPolicy::Evicts,
            "always-allow" => DrainPolicy::Always,
            other => return Err(format!("setting node-drain-policy is `{other}`, which is no known policy")),
        };
        Ok((policy, word))
    }
}

/// Its name is all that tells which setting it is.
fn is_nameless(bad: &Malformed) -> bool {
    bad.object.ends_with(" without a name")
}

fn of_engine(value: &str, data_engine: &str) -> Setting {
    let engine = if data_engine.is_empty() { "v1" } else { data_engine };
    let unreadable = || Setting::Unreadable(format!("`{value}` says nothing of data engine {engine}"));
    let Ok(serde_json::Value::Object(map)) = serde_json::from_str(value) else { return unreadable() };
    match map.get(engine) {
        Some(serde_json::Value::String(text)) => Setting::Is(text.clone()),
        Some(number @ (serde_json::Value::Number(_) | serde_json::Value::Bool(_))) => Setting::Is(number.to_string()),
        _ => unreadable(),
    }
}
