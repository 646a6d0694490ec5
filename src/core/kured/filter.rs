//! Whether kured's alert filters would let our answer through.
//!
//! Our answer is one alert, firing, value 1, whose name begins with [`PREFIX`]. kured (pkg/alerts) overlooks names that
//! match `--alert-filter-regexp`; with `--alert-filter-match-only` it overlooks those that do not. Which names we will
//! send is not known, so the question is put to the expression's automaton: is there a name with our prefix that it
//! matches, or one that it does not? Go's expressions are taken byte by byte with ASCII classes, which is what Go means by
//! `\w`, `\d` and `\b`.

use std::collections::BTreeSet;

use regex_automata::dfa::{Automaton, StartError, dense};
use regex_automata::util::primitives::StateID;
use regex_automata::util::{start, syntax};
use regex_automata::{Anchored, nfa::thompson};

/// How the name of every alert of ours begins.
pub const PREFIX: &str = "maint: ";
/// Largest automaton that is built, in bytes.
const SIZE_LIMIT: usize = 4 * 1024 * 1024;

/// What an expression does to our names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matches {
    /// It matches none of them.
    None,
    /// It matches some, or may.
    Some,
    /// It matches all of them.
    All,
}

/// What an expression does to names with our prefix.
///
/// # Errors
/// If it is no expression that can be understood here.
pub fn matches(expression: &str) -> Result<Matches, String> {
    let automaton = dense::Builder::new()
        .configure(dense::Config::new().dfa_size_limit(Some(SIZE_LIMIT)).determinize_size_limit(Some(SIZE_LIMIT)))
        .syntax(syntax::Config::new().unicode(false).utf8(false))
        .thompson(thompson::Config::new().utf8(false).nfa_size_limit(Some(SIZE_LIMIT)))
        .build(expression)
        .map_err(|error| std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string))?;
    let told = |error: StartError| error.to_string();
    let mut state = automaton.start_state(&start::Config::new().anchored(Anchored::No)).map_err(told)?;
    for byte in PREFIX.bytes() {
        state = automaton.next_state(state, byte);
        if automaton.is_match_state(state) {
            // A match is seen one byte late: it lies within the prefix, whatever follows.
            return Ok(Matches::All);
        }
    }
    Ok(match (all_match(&automaton, state), reaches_a_match(&automaton, state)) {
        (true, _) => Matches::All,
        (false, true) => Matches::Some,
        (false, false) => Matches::None,
    })
}

/// Whether every text that goes on from here is matched: no end is reached without a match before it.
fn all_match(automaton: &dense::DFA<Vec<u32>>, from: StateID) -> bool {
    let (mut seen, mut open) = (BTreeSet::from([from]), vec![from]);
    while let Some(state) = open.pop() {
        if automaton.is_match_state(state) {
            continue;
        }
        if automaton.is_quit_state(state) || !automaton.is_match_state(automaton.next_eoi_state(state)) {
            return false;
        }
        open.extend((0..=u8::MAX).map(|byte| automaton.next_state(state, byte)).filter(|next| seen.insert(*next)));
    }
    true
}

fn reaches_a_match(automaton: &dense::DFA<Vec<u32>>, from: StateID) -> bool {
    let (mut seen, mut open) = (BTreeSet::from([from]), vec![from]);
    while let Some(state) = open.pop() {
        if automaton.is_match_state(state) || automaton.is_match_state(automaton.next_eoi_state(state)) {
            return true;
        }
        // A state that gives up would have to be searched otherwise: taken for a match.
        if automaton.is_quit_state(state) {
            return true;
        }
        open.extend((0..=u8::MAX).map(|byte| automaton.next_state(state, byte)).filter(|next| seen.insert(*next)));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_ours_is_asked_for_at_once() {
        let rows = [
            ("^RebootRequired$", Matches::None),
            ("^(RebootRequired|Watchdog)$", Matches::None),
            ("RebootRequired", Matches::Some),
            ("^Reboot", Matches::None),
            ("Watchdog|InfoInhibitor", Matches::Some),
            ("^main$", Matches::None),
            ("^maint: $", Matches::Some),
            ("^maint: ", Matches::All),
            ("^maint:", Matches::All),
            ("maint", Matches::All),
            ("^m", Matches::All),
            ("^maint: longhorn", Matches::Some),
            ("^maint: .*$", Matches::Some),
            ("(?s)^maint: .*$", Matches::All),
            (".*", Matches::All),
            (".", Matches::All),
            ("", Matches::All),
            (r"^\w+$", Matches::None),
            (r"\bnode\b", Matches::Some),
            (r"^[^:]+$", Matches::None),
            ("^MAINT: ", Matches::None),
            ("(?i)^MAINT: ", Matches::All),
        ];
        for (expression, wanted) in rows {
            assert_eq!(matches(expression), Ok(wanted), "{expression}");
        }
    }

    #[test]
    fn what_is_no_expression_is_an_error() {
        for expression in ["(", "a{2,1}", r"\pL", "[z-a]"] {
            assert!(matches(expression).is_err(), "{expression}");
        }
        assert!(matches("(a{1000}){1000}").is_err(), "too large");
    }
}
