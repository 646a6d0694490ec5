//! A grant that was withdrawn: how it is closed, and when it is over.
//!
//! kured may act minutes after a `go`: what is withdrawn is therefore closed by taking kured's lock. It is over (spent)
//! once kured has asked again since and heard no, since its looks come one after the other, or its process is another
//! one, or the node booted.

use super::grant::id_of;
use super::lock::{LOOK_AT_LOCK, Released};
use super::run::{Run, SOON_SECONDS};
use super::time::{after, parse_time, stamp};
use crate::api::record::Closing;
use crate::api::{MessageKind, QuestionSource};
use crate::facts::Node;
use crate::kured::Places;
use crate::planted::{self, Bug};

/// How long our hold of the lock must have lasted before a question from an address that is not kured's counts.
const ELSEWHERE_SECONDS: i64 = 15 * 60;

impl Run<'_> {
    /// A wait has a limit: a person is told once that what was withdrawn is still not closed, or not known to be over.
    pub(super) fn tell_if_slow(&mut self, kind: MessageKind, severity: &str, what: &str) {
        let limit = self.status.limits.as_ref().map_or(0, |limits| limits.handover_seconds);
        let since = parse_time(self.status.step_started_at.as_ref());
        let late = since.is_none_or(|since| self.input.now >= after(since, limit));
        let warning = format!("what kured was granted was not over {limit} s after it was taken back");
        if late && !self.status.warnings.contains(&warning) {
            self.warn(warning);
            let text = format!("{}: {what}. Look: maint show {}", self.node_name(), self.name());
            self.tell(kind, severity, text);
        }
    }

    /// Whether nobody can act on a withdrawn grant any more.
    pub(super) fn is_spent(&self, closing: &Closing, node: Option<&Node>) -> bool {
        let Some(node) = node else { return true };
        if self.has_new_boot(node) {
            return true;
        }
        let asked = self.asked().filter(|asked| asked.epoch >= closing.epoch);
        let heard = asked.is_some_and(|asked| match asked.source {
            QuestionSource::Kured => true,
            // It may be forged, or its sender's address was rewritten on the way.
            QuestionSource::Elsewhere => parse_time(closing.taken_at.as_ref())
                .is_some_and(|taken| self.input.now >= after(taken, ELSEWHERE_SECONDS)),
        });
        heard || self.is_another_process(closing)
    }

    /// None of the processes that may have heard the `go` is left, and a kubelet that works runs another one.
    fn is_another_process(&self, closing: &Closing) -> bool {
        let Some(pods) = self.kured_pods() else { return false };
        let left = closing.pod.split(',').any(|id| pods.iter().any(|pod| id_of(pod) == id));
        !closing.pod.is_empty() && !left && pods.iter().any(|pod| pod.is_ready())
    }

    /// What ends the wait for a spent grant, for people.
    pub(super) fn until_spent(&self) -> String {
        let node = self.node_name();
        let pods = self.kured_pods().unwrap_or_default();
        let faster = pods.first().map_or_else(String::new, |pod| {
            let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
            format!(", or its pod is replaced: kubectl -n {namespace} delete pod {name}")
        });
        format!("until kured on {node} has asked again{faster}")
    }

    /// Takes back what was offered. With action kured it is closed from then on.
    pub(super) fn withdraw(&mut self) {
        if self.status.intent.take().is_some() && self.is_kureds() {
            self.begin_closing(false);
        }
    }

    pub(super) fn begin_closing(&mut self, used: bool) {
        self.raise_epoch();
        let kured = self.kured_mut();
        let (epoch, pod) = (kured.ask_epoch, kured.pod.clone());
        kured.closing = Some(Closing { taken_at: None, epoch, pod, used });
        self.note("what kured was granted is taken back");
    }

    pub(super) fn note_taken(&mut self) {
        let (now, pods) = (stamp(self.input.now), self.kured_pods_line());
        if let Some(closing) = self.status.kured.as_mut().and_then(|kured| kured.closing.as_mut()) {
            closing.taken_at.get_or_insert(now);
            if closing.pod.is_empty() {
                // Known late: if this one goes, an older one went before it.
                closing.pod = pods;
            }
        }
    }
}

/// Takes kured's lock while a withdrawn grant may still be acted on. True once that cannot be any more, so that
/// what is ours may be put back.
pub(super) fn is_closed(run: &mut Run<'_>, node: Option<&Node>) -> bool {
    let Some(closing) = run.closing().cloned() else { return true };
    if matches!(run.locks(), Places::NotInstalled) || run.is_spent(&closing, node) || planted::is(Bug::NeverCloses) {
        return true;
    }
    let ours = run.our_hold();
    if ours.held {
        run.note_taken();
        if !closing.used {
            return true;
        }
        run.status.message = format!("waits {}: it gave its lock up and may still be at work", run.until_spent());
    } else {
        let why =
            ours.why_not.map_or_else(|| "its lock is being taken".to_owned(), |why| format!("{why} ({LOOK_AT_LOCK})"));
        run.status.message = format!("closes what kured was granted; the node stays cordoned meanwhile: {why}");
        run.acts.extend(ours.take);
    }
    run.look_again_in(SOON_SECONDS);
    false
}

/// A grant that was withdrawn earlier: spent, and our hold given back, before there is another one.
pub(super) fn reopened(run: &mut Run<'_>, node: &Node) -> bool {
    let Some(closing) = run.closing().cloned() else { return true };
    if !run.is_spent(&closing, Some(node)) {
        if is_closed(run, Some(node)) {
            run.status.message = format!("kured's lock is ours {}", run.until_spent());
        }
        run.look_again_in(SOON_SECONDS);
        return false;
    }
    if !is_without_us(run) {
        return false;
    }
    run.kured_mut().closing = None;
    true
}

/// Nothing of ours is in kured's lock: with a hold of ours in it a grant would be worth nothing.
pub(super) fn is_without_us(run: &mut Run<'_>) -> bool {
    match run.release_lock() {
        Ok(Released::Nothing) => true,
        Ok(Released::Asked) => {
            run.look_again_in(0);
            false
        }
        Err(why) => {
            run.status.message = format!("waits: {why}");
            run.look_again_in(SOON_SECONDS);
            false
        }
    }
}
