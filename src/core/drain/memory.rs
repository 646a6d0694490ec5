//! What the API answered lately: the last answer for each pod, bounded.

use super::Answered;

/// Answers kept at most; those of a whole node and some more.
const MAX_ANSWERS: usize = 512;

/// The last answer for each pod, by its uid, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Memory(Vec<Answered>);

impl Memory {
    /// Keeps an answer; an earlier one for the same pod makes way, and beyond the limit the oldest of all.
    pub fn keep(&mut self, answered: Answered) {
        self.0.retain(|known| known.eviction.uid != answered.eviction.uid);
        if self.0.len() >= MAX_ANSWERS {
            self.0.remove(0);
        }
        self.0.push(answered);
    }

    /// All of them, oldest first.
    #[must_use]
    pub fn answers(&self) -> &[Answered] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Answer, Eviction, Lane};
    use super::*;

    fn answered(uid: &str, answer: Answer) -> Answered {
        let eviction = Eviction {
            namespace: "default".to_owned(),
            name: format!("pod-{uid}"),
            uid: uid.to_owned(),
            lane: Lane::Pod(uid.to_owned()),
        };
        Answered { eviction, answer, at: jiff::Timestamp::UNIX_EPOCH }
    }

    #[test]
    fn one_answer_a_pod_is_kept_and_not_more_than_the_limit() {
        let mut memory = Memory::default();
        memory.keep(answered("a", Answer::UidConflict));
        memory.keep(answered("b", Answer::Gone));
        memory.keep(answered("a", Answer::Accepted));
        let found: Vec<_> = memory.answers().iter().map(|one| (&*one.eviction.uid, &one.answer)).collect();
        assert_eq!(found, [("b", &Answer::Gone), ("a", &Answer::Accepted)]);
        for index in 0..MAX_ANSWERS {
            memory.keep(answered(&index.to_string(), Answer::Accepted));
        }
        assert_eq!(memory.answers().len(), MAX_ANSWERS);
        assert_eq!(memory.answers()[0].eviction.uid, "0");
    }
}
