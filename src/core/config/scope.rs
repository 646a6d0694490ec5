//! Scopes: why a node is maintained, and what follows from it.

use serde::{Deserialize, Serialize};

use super::Settings;
use crate::api::{Strategy, UnknownName};

/// A row of the scope table as a configuration file may write it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScopeSettings {
    /// What follows for pods.
    pub strategy: Strategy,
    /// Whether the boot ID must change.
    pub reboots: bool,
}

/// A resolved scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// Its name, kebab-case.
    pub name: String,
    /// What follows for pods.
    pub strategy: Strategy,
    /// Whether the boot ID must change.
    pub reboots: bool,
}

impl Scope {
    /// The built-in rows: name, strategy, boot ID must change.
    pub const BUILT_IN: &'static [(&'static str, Strategy, bool)] = &[
        ("service-restart", Strategy::CordonOnly, false),
        ("reboot", Strategy::Drain, true),
        ("power-off", Strategy::Drain, true),
    ];
    /// What `check` and `plan` assume.
    pub const DEFAULT: &'static str = "reboot";

    /// Why this strategy, in a few words.
    #[must_use]
    pub const fn strategy_reason(&self) -> &'static str {
        match (self.strategy, self.reboots) {
            (Strategy::Drain, true) => "the node goes down and its pods with it",
            (Strategy::CordonOnly, false) => "its containers keep running",
            _ => "the configuration says so",
        }
    }

    /// Looks a scope up: the configuration first, then the built-in ones.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn find(settings: &Settings, name: &str) -> Result<Self, UnknownName> {
        if let Some(row) = settings.scopes.get(name) {
            return Ok(Self { name: name.to_owned(), strategy: row.strategy, reboots: row.reboots });
        }
        if let Some((_, strategy, reboots)) = Self::BUILT_IN.iter().find(|(known, ..)| *known == name) {
            return Ok(Self { name: name.to_owned(), strategy: *strategy, reboots: *reboots });
        }
        let known = Self::BUILT_IN.iter().map(|(known, ..)| (*known).to_owned()).chain(settings.scopes.keys().cloned());
        Err(UnknownName::new("scope", name, known.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_scope_names_the_known_ones() {
        let error = Scope::find(&Settings::default(), "rebot").expect_err("unknown");
        assert_eq!(error.nearest.as_deref(), Some("reboot"));
    }
}
