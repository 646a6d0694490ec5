//! What a replica remembers of questions: when each node was last looked at, and the last refusal.
//!
//! A go is never remembered. Only nodes that were seen to exist have a place here; how often unknown names may cost a
//! look is one figure for all of them.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use maint_core::api::QuestionSource;
use maint_core::kured::answer::Answer;
use serde_json::{Value, json};

use crate::runtime::Instant;

/// Least time between two looks at the cluster for one node and one kind of sender.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Looks a second for names that are not known yet.
const UNKNOWN_A_SECOND: u32 = 20;
/// Nodes remembered; beyond it the one that asked longest ago is forgotten.
const NODES: usize = 10_000;

/// What is remembered of all nodes.
#[derive(Debug, Default)]
pub(super) struct Memory {
    nodes: BTreeMap<String, Heard>,
    /// Beginning of the present second of looks for unknown names, and how many there were.
    unknown: Option<(Instant, u32)>,
}

/// What is remembered of one node.
#[derive(Debug, Default)]
struct Heard {
    /// Last looks: for kured's own addresses, and for all others, so that nobody else can use up kured's.
    looked: [Option<Instant>; 2],
    refusal: Option<Answer>,
    /// Addresses of kured on the node, as last seen.
    addresses: Vec<String>,
    /// When it was last asked, what was answered, where from.
    asked: Option<(Timestamp, String, Option<QuestionSource>)>,
    /// A note of a question is on its way.
    noting: bool,
}

/// What to do with a question.
#[derive(Debug, PartialEq)]
pub(super) enum Admission {
    /// Look at the cluster.
    Look,
    /// Answer this.
    Remembered(Answer),
}

impl Memory {
    /// Decides about a question that came in now.
    pub fn admit(&mut self, node: &str, address: Option<&str>, now: Instant) -> Admission {
        let Some(heard) = self.nodes.get_mut(node) else {
            let used = match self.unknown {
                Some((since, used)) if now.duration_since(since) < Duration::from_secs(1) => (since, used + 1),
                _ => (now, 1),
            };
            if used.1 > UNKNOWN_A_SECOND {
                return Admission::Remembered(Answer::no(format!("too many questions at once to look at {node}")));
            }
            self.unknown = Some(used);
            return Admission::Look;
        };
        let kured = address.is_some_and(|address| heard.addresses.iter().any(|known| known == address));
        let looked = &mut heard.looked[usize::from(!kured)];
        if looked.is_none_or(|last| now.duration_since(last) >= LOOK_EVERY) {
            *looked = Some(now);
            return Admission::Look;
        }
        let again = || Answer::no(format!("{node} was asked for a moment ago; only a fresh look can say go"));
        Admission::Remembered(heard.refusal.clone().unwrap_or_else(again))
    }

    /// Keeps what came of a look, `existing` being whether the node exists, as far as that is known.
    pub fn keep(&mut self, node: &str, answer: &Answer, existing: Option<bool>, (at, now): (Timestamp, Instant)) {
        match existing {
            Some(false) => {
                self.nodes.remove(node);
                return;
            }
            None if !self.nodes.contains_key(node) => return,
            Some(true) | None => {}
        }
        if self.nodes.len() >= NODES && !self.nodes.contains_key(node) {
            self.forget_one();
        }
        let new = !self.nodes.contains_key(node);
        let heard = self.nodes.entry(node.to_owned()).or_default();
        if new {
            heard.looked = [Some(now), Some(now)];
        }
        heard.refusal = (*answer != Answer::Go).then(|| answer.clone());
        let source = heard.asked.as_ref().and_then(|(.., source)| *source);
        heard.asked = Some((at, answer.word(), source));
    }

    /// Marks that a note of the node's question is being written; false where one is already.
    pub fn begin_note(&mut self, node: &str) -> bool {
        self.nodes.get_mut(node).is_some_and(|heard| !std::mem::replace(&mut heard.noting, true))
    }

    /// The note is written or given up.
    pub fn end_note(&mut self, node: &str) {
        if let Some(heard) = self.nodes.get_mut(node) {
            heard.noting = false;
        }
    }

    /// Keeps where kured is on the node, and where the last question came from.
    pub fn know(&mut self, node: &str, addresses: Vec<String>, source: QuestionSource) {
        if let Some(heard) = self.nodes.get_mut(node) {
            heard.addresses = addresses;
            if let Some((.., known)) = &mut heard.asked {
                *known = Some(source);
            }
        }
    }

    /// What each node was answered last, by name, for people.
    pub fn shown(&self) -> Value {
        let shown = self.nodes.iter().filter_map(|(node, heard)| {
            let (at, answer, source) = heard.asked.as_ref()?;
            Some(json!({"node": node, "at": maint_core::plan::stamp(*at), "answer": answer, "source": source}))
        });
        Value::Array(shown.collect())
    }

    fn forget_one(&mut self) {
        let oldest = self.nodes.iter().min_by_key(|(_, heard)| heard.asked.as_ref().map(|(at, ..)| *at));
        if let Some(name) = oldest.map(|(name, _)| name.clone()) {
            self.nodes.remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Clock;

    const KURED: Option<&str> = Some("10.42.1.7");
    const OTHER: Option<&str> = Some("10.42.1.8");

    fn begin() -> (Memory, Instant, Timestamp) {
        (Memory::default(), Clock::real().instant(), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_refusal_is_remembered_for_two_seconds_and_a_go_never() {
        let (mut memory, now, at) = begin();
        let no = Answer::no("worker2 waits");
        let after = |milliseconds| now + Duration::from_millis(milliseconds);
        assert_eq!(memory.admit("worker2", KURED, now), Admission::Look);
        memory.keep("worker2", &no, Some(true), (at, now));
        assert_eq!(memory.admit("worker2", KURED, after(1_999)), Admission::Remembered(no.clone()));
        assert_eq!(memory.admit("worker2", KURED, after(2_000)), Admission::Look);
        memory.keep("worker2", &Answer::Go, Some(true), (at, after(2_000)));
        let Admission::Remembered(answer) = memory.admit("worker2", KURED, after(2_300)) else { panic!("no look yet") };
        assert!(matches!(answer, Answer::No(_)), "{answer:?}");
        // What could not be read keeps the node known.
        memory.keep("worker2", &no, None, (at, after(2_000)));
        assert_eq!(memory.admit("worker2", KURED, after(2_300)), Admission::Remembered(no));
    }

    #[test]
    fn others_cannot_use_up_the_looks_of_kured() {
        let (mut memory, now, at) = begin();
        let no = Answer::no("a");
        memory.keep("worker2", &no, Some(true), (at, now));
        memory.know("worker2", vec!["10.42.1.7".to_owned()], QuestionSource::Kured);
        let later = now + LOOK_EVERY;
        assert_eq!(memory.admit("worker2", OTHER, later), Admission::Look);
        assert_eq!(memory.admit("worker2", OTHER, later), Admission::Remembered(no.clone()));
        assert_eq!(memory.admit("worker2", KURED, later), Admission::Look);
        assert_eq!(memory.admit("worker2", KURED, later), Admission::Remembered(no));
    }

    #[test]
    fn unknown_names_cost_few_looks_and_no_memory() {
        let (mut memory, now, at) = begin();
        let mut looks = 0;
        for number in 0..500 {
            let name = format!("nobody-{number}");
            if memory.admit(&name, OTHER, now) == Admission::Look {
                looks += 1;
                memory.keep(&name, &Answer::trouble("there is no such node"), Some(false), (at, now));
            }
        }
        assert_eq!((looks, memory.nodes.len()), (UNKNOWN_A_SECOND, 0));
        assert_eq!(memory.admit("nobody", OTHER, now + Duration::from_secs(1)), Admission::Look);
        for number in 0..NODES + 5 {
            let at = Timestamp::from_second(i64::try_from(number).expect("small")).expect("a time");
            memory.keep(&format!("node-{number}"), &Answer::no("a"), Some(true), (at, now));
        }
        assert_eq!(memory.nodes.len(), NODES);
        assert!(!memory.nodes.contains_key("node-0") && memory.nodes.contains_key("node-5"));
    }

    #[test]
    fn one_note_of_a_node_at_a_time() {
        let (mut memory, now, at) = begin();
        assert!(!memory.begin_note("worker2"), "not known");
        memory.keep("worker2", &Answer::no("a"), Some(true), (at, now));
        assert!(memory.begin_note("worker2"));
        assert!(!memory.begin_note("worker2"));
        memory.end_note("worker2");
        assert!(memory.begin_note("worker2"));
        memory.know("worker2", vec![], QuestionSource::Elsewhere);
        let shown = memory.shown();
        assert_eq!(shown[0]["node"], "worker2");
        assert_eq!((&shown[0]["answer"], &shown[0]["source"]), (&json!("maint: a"), &json!("elsewhere")));
        assert_eq!(shown[0]["at"], "1970-01-01T00:00:00Z");
    }
}
