//! Labels of pods as `kubectl -l` takes them: `app=web,tier in (front,back),!canary`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::facts::LabelSelector;

/// Which pods are meant, by their labels; the empty text means all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodSelection {
    text: String,
    selector: LabelSelector,
}

impl PodSelection {
    /// What it says.
    #[must_use]
    pub const fn selector(&self) -> &LabelSelector {
        &self.selector
    }

    /// It selects by no label.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.selector == LabelSelector::default()
    }
}

impl FromStr for PodSelection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut selector = LabelSelector::default();
        for part in parts(text)? {
            let odd = |why: &str| format!("`{part}` {why}, wanted such as app=web, tier!=db, env in (a,b), x or !x");
            let (key, operator, values) = requirement(part).ok_or_else(|| odd("is no requirement"))?;
            if !is_key(key) {
                return Err(odd("has no label's key"));
            }
            if let Some(bad) = values.iter().find(|value| !is_value(value)) {
                return Err(odd(&format!("has the value `{bad}`, which no label can have")));
            }
            selector.expressions.push((key.to_owned(), operator.to_owned(), values));
        }
        Ok(Self { text: text.to_owned(), selector })
    }
}

/// The text at its commas, but for those in brackets.
fn parts(text: &str) -> Result<Vec<&str>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let (mut found, mut begins, mut inside) = (Vec::new(), 0, false);
    for (at, sign) in text.char_indices() {
        match sign {
            '(' if !inside => inside = true,
            ')' if inside => inside = false,
            '(' | ')' => return Err(format!("`{text}` has brackets that do not close")),
            ',' if !inside => {
                found.push(text[begins..at].trim());
                begins = at + 1;
            }
            _ => {}
        }
    }
    found.push(text[begins..].trim());
    if inside { Err(format!("`{text}` has brackets that do not close")) } else { Ok(found) }
}

/// Key, operator of a LabelSelector, values.
fn requirement(part: &str) -> Option<(&str, &'static str, Vec<String>)> {
    if let Some((before, list)) = part.strip_suffix(')').and_then(|rest| rest.split_once('(')) {
        let (key, word) = before.trim_end().rsplit_once(char::is_whitespace)?;
        let operator = match word {
            "in" => "In",
            "notin" => "NotIn",
            _ => return None,
        };
        return Some((key.trim_end(), operator, list.split(',').map(|value| value.trim().to_owned()).collect()));
    }
    if let Some((key, value)) = part.split_once("!=") {
        return Some((key.trim_end(), "NotIn", vec![value.trim_start().to_owned()]));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Some((key.trim_end(), "In", vec![value.trim_start().to_owned()]));
    }
    match part.strip_prefix('!') {
        Some(key) => Some((key.trim_start(), "DoesNotExist", Vec::new())),
        None => Some((part, "Exists", Vec::new())),
    }
}

/// A name of up to 63, perhaps with a DNS prefix of up to 253 before a slash (labels, Kubernetes).
fn is_key(key: &str) -> bool {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let dns = |prefix: &str| {
        let sign = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || matches!(sign, '-' | '.');
        (1..=253).contains(&prefix.len()) && prefix.chars().all(sign)
    };
    !name.is_empty() && is_value(name) && prefix.is_none_or(dns)
}

fn is_value(value: &str) -> bool {
    let ends = |sign: Option<char>| sign.is_none_or(|sign| sign.is_ascii_alphanumeric());
    value.len() <= 63
        && value.chars().all(|sign| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.'))
        && ends(value.chars().next())
        && ends(value.chars().last())
}

impl fmt::Display for PodSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for PodSelection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for PodSelection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_a_selection_selects() {
        let labels: BTreeMap<String, String> =
            [("app", "web"), ("example.org/tier", "front")].map(|(key, value)| (key.into(), value.into())).into();
        let rows = [
            ("", true),
            ("app=web", true),
            ("app == web", true),
            ("app=db", false),
            ("app!=db", true),
            ("app != web", false),
            ("app in (db, web)", true),
            ("app notin (db,web)", false),
            ("x notin (a)", true),
            ("app", true),
            ("!app", false),
            ("! x", true),
            ("app=web,example.org/tier in (front,back),!canary", true),
            ("app=web,example.org/tier=back", false),
            ("app=", false),
        ];
        for (text, wanted) in rows {
            let selection: PodSelection = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(selection.selector().matches(&labels), wanted, "{text}");
            assert_eq!(selection.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_selection() {
        let rows = [
            ("app=web,", "`` has no label's key"),
            ("=web", "`=web` has no label's key"),
            ("app in web", "`app in web` has no label's key"),
            ("app within (web)", "`app within (web)` is no requirement"),
            ("app in (web", "`app in (web` has brackets that do not close"),
            ("app in ((web))", "has brackets that do not close"),
            ("app=a b", "has the value `a b`, which no label can have"),
            ("Exa mple/app", "has no label's key"),
            ("/app", "has no label's key"),
            ("app=-web", "has the value `-web`"),
        ];
        for (text, wanted) in rows {
            let error = text.parse::<PodSelection>().expect_err(text);
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }
}
