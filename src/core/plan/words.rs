//! What people said: halt, hold, resume, cancel, the record's deletion, and words said too early.
//!
//! Halt and hold are read here and not from the finding of gate `control`, which shows its worst problem only: a hold
//! would hide a halt that could not be read. What cannot be read is never taken for "not said".

use super::run::Run;
use crate::api::record::Word;
use crate::api::{Action, Document, Halt, Hold, MessageKind, Phase, is_over, names};
use crate::facts::{ConfigMap, Item, Node, Source};
use crate::planted::{self, Bug};

/// A halt or a hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nobody said it, or it is over.
    Free,
    /// Somebody did; by whom.
    Said(String),
    /// It could not be read, and may have been said.
    Unreadable(String),
}

impl Standing {
    pub(super) fn is_free(&self) -> bool {
        *self == Self::Free
    }
}

impl Run<'_> {
    /// Whether everything is halted.
    pub(super) fn halt(&self) -> Standing {
        let unreadable = |why: &str| Standing::Unreadable(why.to_owned());
        let Some(maps) = self.current(&self.input.facts.config_maps, ConfigMap::SPEC.max_age_seconds) else {
            return unreadable("whether maint is halted could not be read");
        };
        // Only a dump can show other namespaces; a map that lost the field is taken for ours.
        let namespace = &self.input.settings.namespace;
        let own = |at: &String| at == namespace || at.is_empty();
        let mut text = None;
        for item in maps {
            match item {
                Item::Good(map) if map.metadata.name == names::CONTROL_CONFIG_MAP && own(&map.metadata.namespace) => {
                    text = map.data.get(names::CONTROL_HALT_KEY);
                }
                Item::Good(_) => {}
                Item::Malformed(_) => return unreadable("whether maint is halted could not be understood"),
            }
        }
        match text.map(|text| Halt::parse(text)) {
            _ if planted::is(Bug::IgnoresHalt) => Standing::Free,
            None => Standing::Free,
            Some(Ok(halt)) if is_over(halt.until, self.input.now) => Standing::Free,
            Some(Ok(halt)) => Standing::Said(halt.by),
            Some(Err(error)) => Standing::Unreadable(format!("the halt {error}")),
        }
    }

    /// Whether somebody holds the node back.
    pub(super) fn hold_on(&self, node: &Node) -> Standing {
        match node.metadata.annotations.get(names::ANNOTATION_HOLD).map(|text| Hold::parse(text)) {
            _ if planted::is(Bug::IgnoresHold) => Standing::Free,
            None => Standing::Free,
            Some(Ok(hold)) if is_over(hold.until, self.input.now) => Standing::Free,
            Some(Ok(hold)) => Standing::Said(hold.by),
            Some(Err(error)) => Standing::Unreadable(format!("the hold {error}")),
        }
    }

    /// After commit a halt lets nothing be written to the node: says so, and whether it is so.
    pub(super) fn waits_for_unhalt(&mut self, what: &str) -> bool {
        match self.halt() {
            _ if planted::is(Bug::UncordonsUnderHalt) => return false,
            Standing::Free => return false,
            Standing::Said(by) => self.status.message = format!("{what}; halted by {by}: nothing moves until unhalt"),
            Standing::Unreadable(why) => self.status.message = format!("{what}; nothing moves: {why}"),
        }
        true
    }

    /// A `resume` that was not dealt with yet.
    pub(super) fn new_resume(&self) -> Option<Word> {
        let word = self.input.record.spec.resume.as_ref();
        word.filter(|word| self.status.heard_resume.as_ref() != Some(word)).cloned()
    }

    /// A `cancel` that was not dealt with yet; before commit any cancel counts.
    pub(super) fn new_cancel(&self) -> Option<Word> {
        let word = self.input.record.spec.cancel.as_ref();
        word.filter(|word| self.status.heard_cancel.as_ref() != Some(word)).cloned()
    }

    pub(super) fn heard_resume(&mut self) {
        self.status.heard_resume.clone_from(&self.input.record.spec.resume);
    }

    pub(super) fn heard_cancel(&mut self) {
        self.status.heard_cancel.clone_from(&self.input.record.spec.cancel);
    }

    /// Words that have nothing to do in this phase are heard, so that they do not come true hours later.
    pub(super) fn hear_what_is_idle(&mut self, phase: Phase) {
        if let Some(word) = self.new_resume()
            && !matches!(phase, Phase::Held | Phase::Verifying)
        {
            self.heard_resume();
            if phase.is_in_flight() {
                self.note(format!("{} said resume while nothing was held", word.by));
            }
        }
        if !phase.is_committed() {
            return;
        }
        if self.deleted() {
            self.warn("the record was deleted after it was committed: the node is proven all the same");
        }
        let Some(word) = self.new_cancel() else { return };
        match (phase, word.accept) {
            // `held` obeys it.
            (Phase::Held, true) => return,
            (Phase::Held, false) => self.warn(format!(
                "{} cancelled it while it was held: the node stays as it is until `maint cancel {} --accept`",
                word.by,
                self.name()
            )),
            _ => {
                self.warn(format!("{} cancelled it after it was committed: the node is proven all the same", word.by));
                self.call_person_off(phase, &word.by);
            }
        }
        self.heard_cancel();
    }

    /// Somebody was told to act, and now it is called off: he may not have acted yet.
    fn call_person_off(&mut self, phase: Phase, by: &str) {
        let person = matches!(self.action(), Ok(Action::External)) && !self.input.record.spec.command_waits;
        if person && phase == Phase::Returning {
            let text = format!(
                "{by} called it off after the go: do not act on {} if you have not yet; if you have: maint done {}",
                self.node_name(),
                self.name()
            );
            self.tell(MessageKind::Go, "warning", text);
        }
    }

    /// A claim or a `done` that came before anything was offered: it can be said only once, so that this record can
    /// never be acted on in order.
    pub(super) fn said_too_early(&self) -> Option<String> {
        let spec = &self.input.record.spec;
        if self.status.offered_at.is_some() || !matches!(self.action(), Ok(Action::External)) {
            return None;
        }
        let claimed = spec.claimed.as_ref().map(|word| (word, "claimed the command"));
        let (word, what) = claimed.or(spec.action_done.as_ref().map(|word| (word, "said done")))?;
        Some(format!("{} {what} before it was offered: look at the node, and ask anew", word.by))
    }

    /// The offered act was taken by a program, or is over.
    pub(super) fn was_taken(&self) -> bool {
        let spec = &self.input.record.spec;
        self.status.offered_at.is_some() && (spec.claimed.is_some() || spec.action_done.is_some())
    }
}
