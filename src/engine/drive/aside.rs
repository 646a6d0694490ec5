//! What a driver leaves beside its run: looks for the leader's memory, Events for people. Neither ever holds it up.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use maint_core::api::record::{Maintenance, MaintenanceStatus};
use maint_core::config::Settings;
use maint_core::facts::Facts;
use maint_core::plan::Step;
use maint_core::report::events;
use maint_core::state::Look;

use super::keeper::Notes;
use crate::deliver::Events;

/// Where it is left; a handle.
#[derive(Debug, Clone)]
pub struct Aside {
    /// Events.
    pub events: Events,
    /// Looks.
    pub notes: Arc<Notes>,
}

/// The hands of one driver.
pub(super) struct Herald {
    aside: Aside,
    /// What holds the run up and was told, with its count.
    standing: BTreeMap<String, i64>,
}

impl Herald {
    pub(super) const fn new(aside: Aside) -> Self {
        Self { aside, standing: BTreeMap::new() }
    }

    /// The world was looked at and a step was decided on it.
    pub(super) fn looked(&self, facts: &Facts, step: &Step, settings: &Settings, now: Timestamp) {
        let asked = step.asked.as_ref().map(|(moment, findings)| (*moment, findings.as_slice()));
        self.aside.notes.add(Look::of(facts, asked, settings, now));
    }

    /// The record says so now, where it said `old` before.
    pub(super) fn wrote(&mut self, old: Option<&MaintenanceStatus>, record: &Maintenance, now: Timestamp) {
        let Some(status) = &record.status else { return };
        for note in events::changes(record, old, status) {
            self.aside.events.offer(note);
        }
        let standing = events::standing(record, status, now);
        let told = std::mem::take(&mut self.standing);
        for note in standing {
            let count = note.count;
            let name = note.name.clone();
            if told.get(&name) != Some(&count) {
                self.aside.events.offer(note);
            }
            self.standing.insert(name, count);
        }
    }
}
