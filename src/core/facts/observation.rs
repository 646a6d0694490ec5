//! What a source said: known, absent, failed, or not asked.

use jiff::Timestamp;

/// The answer of one source.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Observation<T> {
    /// This input cannot answer, or nothing asked.
    #[default]
    NotAsked,
    /// Read completely.
    Known {
        /// What was read.
        value: T,
        /// When the answer was asked for (the earlier end of the request).
        at: Timestamp,
    },
    /// The API says that the kind does not exist here.
    Absent {
        /// When the API said so.
        at: Timestamp,
    },
    /// Could not be read: nothing is known, and nothing may be assumed.
    Failed {
        /// In what way.
        kind: FailureKind,
        /// The error's text.
        detail: String,
        /// When.
        at: Timestamp,
    },
}

/// A list whose items were decoded one by one.
pub type Listed<T> = Observation<Vec<Item<T>>>;

impl<T> Observation<T> {
    /// The value, if it was read.
    #[must_use]
    pub const fn known(&self) -> Option<&T> {
        match self {
            Self::Known { value, .. } => Some(value),
            _ => None,
        }
    }

    /// When it was observed.
    #[must_use]
    pub const fn at(&self) -> Option<Timestamp> {
        match self {
            Self::NotAsked => None,
            Self::Known { at, .. } | Self::Absent { at } | Self::Failed { at, .. } => Some(*at),
        }
    }
}

impl<T> Observation<Vec<Item<T>>> {
    /// The items that could be decoded; empty when nothing is known. For look-ups that only add a name to a
    /// sentence; a judgement reads through `Draft::read`, which does not forget the bad ones.
    pub fn good(&self) -> impl Iterator<Item = &T> {
        self.known().into_iter().flatten().filter_map(|item| match item {
            Item::Good(value) => Some(value),
            Item::Malformed(_) => None,
        })
    }
}

crate::api::names! {
    /// How reading failed.
    FailureKind, "failure kind", {
        /// The API refused: 401 or 403.
        Forbidden = "forbidden",
        /// No answer in time.
        Timeout = "timeout",
        /// No connection, TLS, or a cut one.
        Transport = "transport",
        /// The server answered with an error, or with something that is no list.
        Server = "server",
        /// Some pages or parts were read, others not.
        Partial = "partial",
    }
}

/// One object of a list.
#[derive(Debug, Clone, PartialEq)]
pub enum Item<T> {
    /// Decoded.
    Good(T),
    /// Not understood.
    Malformed(Malformed),
}

/// An object with a field that is missing or of the wrong type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {path} {problem}")]
pub struct Malformed {
    /// `Kind namespace/name`, as far as they could be read.
    pub object: String,
    /// Path of the field.
    pub path: String,
    /// What is wrong: `is missing`, `is a number, wanted text` ...
    pub problem: String,
}
