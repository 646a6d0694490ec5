//! What a kured was told: all its flags, from command line and environment, as its own version reads them.
//!
//! Nothing that cannot be known is taken for its default: a value that does not parse, comes from a Secret, or depends
//! on a version that the image does not tell is a [`FlagProblem`] with the flag's name.

use std::collections::BTreeMap;

use super::duration;
use super::flag::{Flag, Kind};
use super::version::{self, UnknownVersion, Version};
use super::words::Words;
use crate::facts::Container;

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Nobody says anything.
    Default,
    /// Command or arguments.
    CommandLine,
    /// A variable `KURED_<FLAG>`.
    Environment,
}

/// Stands for every flag in a [`FlagProblem`].
pub const ALL_FLAGS: &str = "*";

/// Why the value of a flag is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} {problem}", if flag == ALL_FLAGS { "any flag".to_owned() } else { format!("--{flag}") })]
pub struct FlagProblem {
    /// The flag, or a word that is none.
    pub flag: String,
    /// The value as given, as far as it is known.
    pub value: String,
    /// What is wrong, for the end of a sentence.
    pub problem: String,
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Bool(bool),
    Int(i64),
    /// In nanoseconds.
    Duration(i64),
    Text(String),
    List(Vec<String>),
}

/// The flags of one kured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flags {
    /// Its version, by its image.
    pub version: Result<Version, UnknownVersion>,
    /// Words that kured does not take, and what hides all of them: with one of these it does not start, or nothing is
    /// known.
    pub odd: Vec<FlagProblem>,
    values: BTreeMap<Flag, (Result<Value, FlagProblem>, Origin)>,
}

/// What was given for a flag: none for a value from elsewhere.
type Given = Vec<Option<String>>;

impl Flags {
    /// Reads the flags of a container. `node` is the node that its pod runs on; none for a template.
    #[must_use]
    pub fn of(container: &Container, node: Option<&str>) -> Self {
        let words = Words::of(container, node);
        let version = version::of_image(&container.image);
        let mut odd = Vec::new();
        if let Some(program) = words.program.as_deref().filter(|program| program.rsplit('/').next() != Some("kured")) {
            odd.push(problem(
                ALL_FLAGS,
                program,
                "cannot be known: the container runs another program, which may start kured",
            ));
        }
        for source in &container.env_from {
            odd.push(problem(
                ALL_FLAGS,
                source,
                &format!("may be set by {source} (envFrom), which maint does not read"),
            ));
        }
        let line = command_line(&words, version.as_ref().ok(), &mut odd);
        let values = Flag::ALL
            .iter()
            .map(|flag| (*flag, value_of(*flag, line.get(flag), &words, version.as_ref().ok().copied())))
            .collect();
        Self { version, odd, values }
    }

    /// A flag that is on or off.
    ///
    /// # Errors
    /// Why its value is not known; the same holds for the others.
    pub fn bool(&self, flag: Flag) -> Result<bool, FlagProblem> {
        match self.value(flag)? {
            Value::Bool(on) => Ok(on),
            _ => Err(problem(flag.as_str(), "", "is no flag that is on or off")),
        }
    }

    /// A whole number.
    pub fn int(&self, flag: Flag) -> Result<i64, FlagProblem> {
        match self.value(flag)? {
            Value::Int(number) => Ok(number),
            _ => Err(problem(flag.as_str(), "", "is no number")),
        }
    }

    /// A length of time, in nanoseconds.
    pub fn nanoseconds(&self, flag: Flag) -> Result<i64, FlagProblem> {
        match self.value(flag)? {
            Value::Duration(length) => Ok(length),
            _ => Err(problem(flag.as_str(), "", "is no length of time")),
        }
    }

    /// A length of time in whole seconds, rounded up.
    pub fn seconds(&self, flag: Flag) -> Result<i64, FlagProblem> {
        Ok(self.nanoseconds(flag)?.saturating_add(999_999_999).div_euclid(1_000_000_000))
    }

    /// A text.
    pub fn text(&self, flag: Flag) -> Result<String, FlagProblem> {
        match self.value(flag)? {
            Value::Text(text) => Ok(text),
            _ => Err(problem(flag.as_str(), "", "is no text")),
        }
    }

    /// A list.
    pub fn list(&self, flag: Flag) -> Result<Vec<String>, FlagProblem> {
        match self.value(flag)? {
            Value::List(list) => Ok(list),
            _ => Err(problem(flag.as_str(), "", "is no list")),
        }
    }

    /// Where its value comes from.
    #[must_use]
    pub fn origin(&self, flag: Flag) -> Origin {
        self.values.get(&flag).map_or(Origin::Default, |(_, origin)| *origin)
    }

    /// All that is not known, flags in order.
    #[must_use]
    pub fn problems(&self) -> Vec<FlagProblem> {
        let values = self.values.values().filter_map(|(value, _)| value.as_ref().err());
        self.odd.iter().chain(values).cloned().collect()
    }

    /// Its value for people, in kured's spelling.
    #[must_use]
    pub fn shown(&self, flag: Flag) -> String {
        match self.values.get(&flag) {
            Some((Ok(Value::Bool(on)), _)) => on.to_string(),
            Some((Ok(Value::Int(number)), _)) => number.to_string(),
            Some((Ok(Value::Duration(length)), _)) => duration::shown(*length),
            Some((Ok(Value::Text(text)), _)) if text.is_empty() => "empty".to_owned(),
            Some((Ok(Value::Text(text)), _)) => text.clone(),
            Some((Ok(Value::List(list)), _)) => list.join(","),
            Some((Err(error), _)) if error.value.is_empty() => "not known".to_owned(),
            Some((Err(error), _)) => error.value.clone(),
            None => "not known".to_owned(),
        }
    }

    fn value(&self, flag: Flag) -> Result<Value, FlagProblem> {
        // What hides everything hides this one too.
        if let Some(hidden) = self.odd.iter().find(|odd| odd.flag == ALL_FLAGS) {
            return Err(FlagProblem { flag: flag.as_str().to_owned(), ..hidden.clone() });
        }
        match self.values.get(&flag) {
            Some((value, _)) => value.clone(),
            None => Err(problem(flag.as_str(), "", "is not known")),
        }
    }
}

fn problem(flag: &str, value: &str, text: &str) -> FlagProblem {
    FlagProblem { flag: flag.to_owned(), value: value.to_owned(), problem: text.to_owned() }
}

/// What stands on the command line, as pflag reads it: a flag takes the next word unless it is on or off, `--` ends the
/// flags, other words are overlooked.
fn command_line(words: &Words, version: Option<&Version>, odd: &mut Vec<FlagProblem>) -> BTreeMap<Flag, Given> {
    let mut given: BTreeMap<Flag, Given> = BTreeMap::new();
    let mut rest = words.line.iter();
    while let Some((raw, word)) = rest.next() {
        let Some(word) = word else {
            let named =
                raw.strip_prefix("--").and_then(|long| long.split_once('=')).map(|(name, _)| name.parse::<Flag>());
            match named {
                Some(Ok(flag)) => given.entry(flag).or_default().push(None),
                // Which flag it sets is hidden too.
                _ => odd.push(problem(
                    ALL_FLAGS,
                    raw,
                    "may be set by a word of the command line that comes from elsewhere (valueFrom)",
                )),
            }
            continue;
        };
        if word == "--" {
            break;
        }
        let Some(long) = word.strip_prefix("--") else {
            if word.len() > 1 && word.starts_with('-') {
                odd.push(problem(
                    word.trim_start_matches('-'),
                    word,
                    "is no flag of kured (one dash): it does not start",
                ));
            }
            continue;
        };
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value.to_owned())));
        let Ok(flag) = name.parse::<Flag>() else {
            odd.push(problem(
                name,
                value.as_deref().unwrap_or_default(),
                "is no flag of kured 1.23.0: kured of that version does not start with it",
            ));
            continue;
        };
        let since = flag.spec().since;
        if let Some(version) = version.filter(|version| **version < since) {
            odd.push(problem(
                name,
                "",
                &format!("is not known to kured {version} (since {since}): it does not start with it"),
            ));
        }
        let value = match value {
            Some(value) => Some(value),
            None if flag.spec().kind == Kind::Bool => Some("true".to_owned()),
            None => match rest.next() {
                Some((_, next)) => next.clone(),
                None => {
                    odd.push(problem(name, "", "has no value: kured does not start"));
                    continue;
                }
            },
        };
        given.entry(flag).or_default().push(value);
    }
    given
}

/// The value that counts, and where it comes from.
fn value_of(
    flag: Flag,
    line: Option<&Given>,
    words: &Words,
    version: Option<Version>,
) -> (Result<Value, FlagProblem>, Origin) {
    let spec = flag.spec();
    // An older version overlooks a variable that it has no flag for; on its command line it would not start.
    let known = version.is_none_or(|version| version >= spec.since);
    let variable = words.variable(&flag.variable()).filter(|_| known);
    let wins = version.map(|version| version >= Version::ENVIRONMENT_WINS);
    let variable = match (variable, wins, spec.kind) {
        // `--blocking-pod-selector` has no form in the environment any more.
        (Some(_), Some(true), Kind::Array) => None,
        // viper overlooked a variable that is empty.
        (Some(Some(text)), Some(false), _) if text.is_empty() => None,
        (variable, _, _) => variable,
    };
    match (line, variable) {
        (None, None) => (read(flag, &[Some(spec.default.to_owned())]), Origin::Default),
        (Some(line), None) => (read(flag, line), Origin::CommandLine),
        (None, Some(variable)) => {
            let value = read(flag, std::slice::from_ref(variable));
            // Without a version it is not known whether an empty or a listed one counts at all.
            let unsure = wins.is_none() && (variable.as_deref() == Some("") || spec.kind == Kind::Array);
            let value = if unsure { Err(needs_version(flag, variable.as_deref())) } else { value };
            (value, Origin::Environment)
        }
        (Some(line), Some(variable)) => match wins {
            // pflag adds to a list that was set before.
            Some(true) if spec.kind == Kind::Slice => {
                let both: Given = line.iter().chain([variable]).cloned().collect();
                (read(flag, &both), Origin::Environment)
            }
            Some(true) => (read(flag, std::slice::from_ref(variable)), Origin::Environment),
            Some(false) => (read(flag, line), Origin::CommandLine),
            None => {
                let (by_line, by_variable) = (read(flag, line), read(flag, std::slice::from_ref(variable)));
                let same = by_line.is_ok() && by_line == by_variable;
                (if same { by_line } else { Err(needs_version(flag, variable.as_deref())) }, Origin::Environment)
            }
        },
    }
}

fn needs_version(flag: Flag, variable: Option<&str>) -> FlagProblem {
    let text = format!(
        "is set by {}, and whether that counts depends on kured's version, which its image does not tell",
        flag.variable()
    );
    problem(flag.as_str(), variable.unwrap_or_default(), &text)
}

fn read(flag: Flag, given: &[Option<String>]) -> Result<Value, FlagProblem> {
    let mut texts = Vec::new();
    for text in given {
        let hidden = || problem(flag.as_str(), "", "cannot be known: its value comes from elsewhere (valueFrom)");
        texts.push(text.as_deref().ok_or_else(hidden)?);
    }
    let last = texts.last().copied().unwrap_or_default();
    let wrong = |why: &str| problem(flag.as_str(), last, &format!("is `{last}`: {why}"));
    match flag.spec().kind {
        Kind::Bool => match last {
            // Go's strconv.ParseBool.
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => Err(wrong("wanted true or false")),
        },
        Kind::Int => last.parse().map(Value::Int).map_err(|_| wrong("wanted a whole number")),
        Kind::Duration => duration::parse(last).map(Value::Duration).map_err(wrong),
        Kind::Text => Ok(Value::Text(last.to_owned())),
        Kind::Array => {
            Ok(Value::List(texts.iter().filter(|text| !text.is_empty()).map(|&text| text.to_owned()).collect()))
        }
        // One CSV record each time; an empty text is an empty list.
        Kind::Slice if texts.iter().any(|text| text.contains('"')) => Err(wrong("quotes in a list are not read here")),
        Kind::Slice => {
            let parts = texts.iter().filter(|text| !text.is_empty()).flat_map(|text| text.split(','));
            Ok(Value::List(parts.map(str::to_owned).collect()))
        }
    }
}

#[cfg(test)]
mod tests;
