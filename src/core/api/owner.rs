//! Small JSON documents that maint keeps in annotations and in its ConfigMap: who owns a cordon, who holds a node,
//! which boot was proven, who halted everything.
//!
//! People edit these by hand at three in the morning. A document that cannot be read is therefore its own answer
//! ([`UnreadableDocument`]), never "not there": the gates turn it into an unknown. Fields that this version does not
//! know are left alone.

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Node annotation `maint.dev/owner`: the run that the cordon belongs to, written in the same request as the cordon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// uid of the Maintenance; never empty.
    pub maintenance: String,
    /// Term of the leader that wrote it last.
    pub term: i64,
}

/// Node annotation `maint.dev/hold`: nothing of ours touches the node until it is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hold {
    /// Who holds it.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When it is over by itself; none means until `maint release`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// Node annotation `maint.dev/proven`: the boot that a run or a post-check found good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Proven {
    /// `status.nodeInfo.bootID` of that boot; never empty.
    #[serde(rename = "bootID")]
    pub boot_id: String,
    /// When it was found good.
    pub at: Timestamp,
}

/// Key `halt` of ConfigMap `maint-control`: everything waits until it is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Halt {
    /// Who halted.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
    /// When it is over by itself; none means until `maint unhalt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// Annotation `maint.dev/asked` of a record: the last question of kured for its node that any replica heard and wrote
/// down (at most every ten minutes, and once for each new `epoch`).
///
/// `epoch` is what makes it a proof without comparing clocks: the leader raises `status.kured.askEpoch` after it saw
/// something done (the cordon, the lock taken), a replica copies the epoch that it read *after* the question came in,
/// and answers no. kured's ticks are serial, so whatever it does after that answer it does on a later look at the
/// cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    /// When, by the clock of the replica that heard it; for people and for the end of a wish.
    pub at: Timestamp,
    /// What it heard: `go`, or the name of the refusal.
    pub answer: String,
    /// `status.kured.askEpoch` of the record as it was read after the question came in; 0 before there was one.
    #[serde(default)]
    pub epoch: i64,
    /// Where it came from.
    pub source: QuestionSource,
}

/// Where a question came from, as far as its sender's address tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuestionSource {
    /// The address of kured's pod on the node, or of the node.
    Kured,
    /// Another address: somewhere between kured and us addresses are rewritten, or it was somebody else.
    Elsewhere,
}

/// A document that is there and cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is no readable {kind} document: {problem}")]
pub struct UnreadableDocument {
    /// `owner`, `hold`, `proven`, `halt` or `asked`.
    pub kind: &'static str,
    /// What is wrong, with the path.
    pub problem: String,
}

/// One of the documents of this file.
pub trait Document: DeserializeOwned {
    /// Its name in errors, which is also its key.
    const KIND: &'static str;

    /// What serde cannot see, such as an empty uid.
    ///
    /// # Errors
    /// The problem in words.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }

    /// Reads it.
    ///
    /// # Errors
    /// If the text is no JSON object with the wanted fields.
    fn parse(text: &str) -> Result<Self, UnreadableDocument> {
        let unreadable = |problem: String| UnreadableDocument { kind: Self::KIND, problem };
        let value: serde_json::Value = serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
        // Derived readers take a list for a struct as well; nobody means that.
        if !value.is_object() {
            return Err(unreadable("it is no JSON object".to_owned()));
        }
        let document: Self = serde_path_to_error::deserialize(value).map_err(|error| unreadable(error.to_string()))?;
        document.validate().map_err(unreadable)?;
        Ok(document)
    }
}

impl Document for Owner {
    const KIND: &'static str = "owner";

    fn validate(&self) -> Result<(), String> {
        if self.maintenance.is_empty() {
            Err("maintenance is empty".to_owned())
        } else if self.term < 0 {
            Err("term is negative".to_owned())
        } else {
            Ok(())
        }
    }
}

impl Document for Hold {
    const KIND: &'static str = "hold";
}

impl Document for Proven {
    const KIND: &'static str = "proven";

    fn validate(&self) -> Result<(), String> {
        if self.boot_id.is_empty() { Err("bootID is empty".to_owned()) } else { Ok(()) }
    }
}

impl Document for Halt {
    const KIND: &'static str = "halt";
}

impl Document for Asked {
    const KIND: &'static str = "asked";

    fn validate(&self) -> Result<(), String> {
        if self.epoch < 0 { Err("epoch is negative".to_owned()) } else { Ok(()) }
    }
}

/// Whether something that ends at `until` is over; without an end it never is.
#[must_use]
pub fn is_over(until: Option<Timestamp>, now: Timestamp) -> bool {
    until.is_some_and(|until| now >= until)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_round_trip_in_the_agreed_spelling() {
        let at: Timestamp = "2026-11-30T01:00:00Z".parse().expect("a time");
        let owner = Owner { maintenance: "u-1".into(), term: 7 };
        let proven = Proven { boot_id: "b-1".into(), at };
        let hold = Hold { by: "anna".into(), reason: "disk".into(), until: None };
        let halt = Halt { by: "anna".into(), reason: "disk".into(), since: at, until: Some(at) };
        let text = |value: serde_json::Result<String>| value.expect("JSON");
        let rows = [
            (text(serde_json::to_string(&owner)), r#"{"maintenance":"u-1","term":7}"#),
            (text(serde_json::to_string(&proven)), r#"{"bootID":"b-1","at":"2026-11-30T01:00:00Z"}"#),
            (text(serde_json::to_string(&hold)), r#"{"by":"anna","reason":"disk"}"#),
            (
                text(serde_json::to_string(&halt)),
                r#"{"by":"anna","reason":"disk","since":"2026-11-30T01:00:00Z","until":"2026-11-30T01:00:00Z"}"#,
            ),
        ];
        for (written, wanted) in rows {
            assert_eq!(written, wanted);
        }
        assert_eq!(Owner::parse(r#"{"maintenance":"u-1","term":7}"#), Ok(owner));
        assert_eq!(Proven::parse(r#"{"bootID":"b-1","at":"2026-11-30T01:00:00Z"}"#), Ok(proven));
        assert_eq!(Hold::parse(r#"{"by":"anna","reason":"disk","until":null,"later":[1]}"#), Ok(hold));
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let rows = [
            ("empty", "", "EOF while parsing a value"),
            ("a bare word", "true", "it is no JSON object"),
            ("a list", r#"["u-1", 7]"#, "it is no JSON object"),
            ("a field is missing", r#"{"term": 7}"#, "missing field `maintenance`"),
            ("null", r#"{"maintenance": null, "term": 7}"#, "maintenance: invalid type: null"),
            ("odd type", r#"{"maintenance": "u-1", "term": "7"}"#, "term: invalid type: string"),
            ("negative", r#"{"maintenance": "u-1", "term": -7}"#, "term is negative"),
            ("empty uid", r#"{"maintenance": "", "term": 7}"#, "maintenance is empty"),
        ];
        for (row, text, problem) in rows {
            let error = Owner::parse(text).expect_err(row);
            assert!(error.problem.contains(problem), "{row}: {error}");
            assert!(error.to_string().starts_with("is no readable owner document: "), "{row}: {error}");
        }
        assert!(Hold::parse(r#"{"by":"anna","reason":"disk","until":"tomorrow"}"#).is_err());
        assert!(Hold::parse(r#"{"by":"anna","reason":"disk","until":0}"#).is_err());
        assert!(Proven::parse(r#"{"bootID":"","at":"2026-11-30T01:00:00Z"}"#).is_err());
        assert!(Halt::parse(r#"{"by":"anna","reason":"disk"}"#).is_err());
    }

    #[test]
    fn an_end_is_over_from_its_second_on() {
        let at = |second| Timestamp::from_second(second).expect("a time");
        let rows = [(None, false), (Some(at(99)), true), (Some(at(100)), true), (Some(at(101)), false)];
        for (until, over) in rows {
            assert_eq!(is_over(until, at(100)), over, "{until:?}");
        }
    }
}
