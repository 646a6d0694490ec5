//! From the text of a configuration file to settings, or to all that is wrong with it at once.
//!
//! Serde stops at the first error. So whatever it complains about is noted, taken out of the parsed document, and the
//! rest is read again, until nothing is left to complain about; then the values are judged.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::Settings;
use super::rules::RULES;
use crate::api::UnknownName;

/// One thing that is wrong in a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// Bytes of the text that it is about.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What to write instead, or why it matters.
    pub help: Option<String>,
}

/// All that is wrong in a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.render(false))]
pub struct ConfigErrors {
    /// Name of the file, as shown.
    pub file_name: String,
    /// Its text.
    pub text: String,
    /// The errors in the order of the text; never empty.
    pub errors: Vec<ConfigError>,
}

impl ConfigErrors {
    /// Label of metrics and Events.
    #[must_use]
    pub const fn category(&self) -> &'static str {
        "config-invalid"
    }

    /// `file:line:column: message`, one line each, without the excerpts.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.errors
            .iter()
            .map(|error| {
                let (line, column) = position(&self.text, error.span.start);
                format!("{}:{line}:{column}: {}", self.file_name, error.message)
            })
            .collect()
    }

    /// As a compiler shows errors: the line, a caret, the help.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let groups: Vec<Group<'_>> = self
            .errors
            .iter()
            .map(|error| {
                let annotation = AnnotationKind::Primary.span(error.span.clone());
                let snippet = Snippet::source(self.text.as_str()).path(self.file_name.as_str()).annotation(annotation);
                let group = Level::ERROR.primary_title(error.message.as_str()).element(snippet);
                match &error.help {
                    Some(help) => group.element(Level::HELP.message(help.as_str())),
                    None => group,
                }
            })
            .collect();
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        // One report for each, since groups of one report share the width of the line numbers only.
        groups.iter().map(|group| renderer.render(std::slice::from_ref(group))).collect::<Vec<_>>().join("\n\n")
    }
}

/// How a rule says that a key is not there.
const IS_MISSING: &str = "is missing";

/// Whether what a rule misses in an entry of a list is there, and was taken out for an error of its own.
fn is_taken_out(path: &[String], problem: &str, rest: &DeTable<'_>, whole: &DeTable<'_>) -> bool {
    let [list, number, key] = path else { return false };
    let of =
        |table: &DeTable<'_>, wanted: &dyn Fn(usize, &Range<usize>) -> bool| -> Option<(Range<usize>, Vec<String>)> {
            let (_, value) = table.iter().find(|(name, _)| name.get_ref() == list.as_str())?;
            let entry = entries(value).iter().enumerate().find(|(index, entry)| wanted(*index, &entry.span()))?.1;
            let DeValue::Table(inner) = entry.get_ref() else { return None };
            Some((entry.span(), inner.iter().map(|(key, _)| key.get_ref().to_string()).collect()))
        };
    let Some((span, left)) = of(rest, &|index, _| number.parse() == Ok(index)) else { return false };
    let Some((_, written)) = of(whole, &|_, found| *found == span) else { return false };
    let told = |one: &String| one == key || problem.contains(&format!("`{one}`"));
    written.iter().any(|one| told(one) && !left.contains(one))
}

/// Line and column of a byte, both from 1; the column counts characters.
fn position(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
}

impl Settings {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// With everything that is wrong: syntax alone if the syntax is wrong, else unknown keys, wrong types and values
    /// that make no sense, in the order of the text.
    pub fn parse(text: &str, file_name: &str) -> Result<Self, ConfigErrors> {
        let fail = |mut errors: Vec<ConfigError>| {
            errors.sort_by_key(|error| error.span.start);
            Err(ConfigErrors { file_name: file_name.to_owned(), text: text.to_owned(), errors })
        };
        let (document, syntax) = DeTable::parse_recoverable(text);
        if !syntax.is_empty() {
            return fail(syntax.iter().map(|error| of_toml(error, text)).collect());
        }
        let mut errors: Vec<ConfigError> = Vec::new();
        let mut taken_out: Vec<Range<usize>> = Vec::new();
        let settings = loop {
            match Self::deserialize(toml::Deserializer::from(rest(&document, &taken_out))) {
                Ok(settings) => break settings,
                Err(error) => {
                    let error = of_toml(&error, text);
                    let can_go_on = remove_at(rest(&document, &taken_out).get_mut(), &error.span);
                    taken_out.push(error.span.clone());
                    if !is_consequence(document.get_ref(), &error) {
                        errors.push(error);
                    }
                    // What cannot be taken out ends the search: the errors so far are still all true.
                    if !can_go_on {
                        return fail(errors);
                    }
                }
            }
        };
        let rest = rest(&document, &taken_out);
        for rule in RULES {
            for (path, problem) in (rule.broken)(&settings) {
                if problem.starts_with(IS_MISSING) && is_taken_out(&path, &problem, rest.get_ref(), document.get_ref())
                {
                    continue;
                }
                // Numbers of list entries count what is left; what was taken out of a table is found in the whole.
                let span = span_of(rest.get_ref(), &path).or_else(|| span_of(document.get_ref(), &path));
                let message = format!("`{}` {problem}", dotted(&as_written(&path, rest.get_ref(), document.get_ref())));
                let span = span.unwrap_or(0..0);
                errors.push(ConfigError { span, message, help: Some(rule.why.to_owned()) });
            }
        }
        if errors.is_empty() { Ok(settings) } else { fail(errors) }
    }
}

impl Settings {
    /// The settings as a configuration file.
    ///
    /// # Errors
    /// If a value cannot be written as TOML; those that were read from TOML always can.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }
}

/// The document without what was complained about.
fn rest<'i>(document: &Spanned<DeTable<'i>>, taken_out: &[Range<usize>]) -> Spanned<DeTable<'i>> {
    let mut rest = document.clone();
    for span in taken_out {
        remove_at(rest.get_mut(), span);
    }
    rest
}

/// Whether a field is only missing because we took it out for another error.
fn is_consequence(table: &DeTable<'_>, error: &ConfigError) -> bool {
    let Some(field) = error.message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) else {
        return false;
    };
    tables_of(table).any(|(span, inner)| {
        (span == error.span && inner.iter().any(|(key, _)| key.get_ref() == field)) || is_consequence(inner, error)
    })
}

/// The tables in a table, those in its lists too, and where they are written.
fn tables_of<'t, 'i>(table: &'t DeTable<'i>) -> impl Iterator<Item = (Range<usize>, &'t DeTable<'i>)> {
    table.iter().flat_map(|(_, value)| entries(value)).filter_map(|value| match value.get_ref() {
        DeValue::Table(inner) => Some((value.span(), inner)),
        _ => None,
    })
}

/// The entries of a list, or the value itself.
fn entries<'t, 'i>(value: &'t Spanned<DeValue<'i>>) -> &'t [Spanned<DeValue<'i>>] {
    match value.get_ref() {
        DeValue::Array(list) => list.as_ref(),
        _ => std::slice::from_ref(value),
    }
}

/// Removes the innermost entry whose key or value is at the span. Tables of headers do not enclose their entries, so
/// the children are searched first.
fn remove_at(table: &mut DeTable<'_>, span: &Range<usize>) -> bool {
    for (_, value) in table.iter_mut() {
        let removed = match value.get_mut() {
            DeValue::Table(inner) => remove_at(inner, span),
            DeValue::Array(list) => remove_from(list, span),
            _ => false,
        };
        if removed {
            return true;
        }
    }
    let found = table
        .iter()
        .find(|(key, value)| encloses(&key.span(), span) || encloses(&value.span(), span))
        .map(|(key, _)| key.clone());
    found.is_some_and(|key| table.remove(&key).is_some())
}

/// The same in a list: in one of its tables, or the entry itself.
fn remove_from(list: &mut DeArray<'_>, span: &Range<usize>) -> bool {
    for entry in list.iter_mut() {
        if let DeValue::Table(inner) = entry.get_mut()
            && remove_at(inner, span)
        {
            return true;
        }
    }
    let left: DeArray<'_> = list.iter().filter(|entry| !encloses(&entry.span(), span)).cloned().collect();
    let removed = left.len() < list.len();
    *list = left;
    removed
}

fn encloses(outer: &Range<usize>, span: &Range<usize>) -> bool {
    outer.start <= span.start && span.end <= outer.end
}

/// A path with its number in the file, where entries before it were taken out of a list.
fn as_written(path: &[String], rest: &DeTable<'_>, whole: &DeTable<'_>) -> Vec<String> {
    let list = |table: &DeTable<'_>, key: &str| -> Vec<Range<usize>> {
        let found = table.iter().find(|(name, _)| name.get_ref() == key);
        found.into_iter().flat_map(|(_, value)| entries(value)).map(Spanned::span).collect()
    };
    let mut path = path.to_vec();
    if let [key, number, ..] = path.as_mut_slice()
        && let Some(span) = number.parse().ok().and_then(|number: usize| list(rest, key).get(number).cloned())
        && let Some(at) = list(whole, key).iter().position(|written| *written == span)
    {
        *number = at.to_string();
    }
    path
}

/// A path as people write it: `windows[0].end`.
fn dotted(path: &[String]) -> String {
    let mut text = String::new();
    for part in path {
        match part.parse::<usize>() {
            Ok(_) => text.extend(["[", part, "]"]),
            Err(_) if text.is_empty() => text.push_str(part),
            Err(_) => text.extend([".", part]),
        }
    }
    text
}

/// Where a value is written.
fn span_of(table: &DeTable<'_>, path: &[String]) -> Option<Range<usize>> {
    let (first, deeper) = path.split_first()?;
    let (key, value) = table.iter().find(|(key, _)| key.get_ref() == first.as_str())?;
    match (deeper, value.get_ref()) {
        ([], DeValue::Table(_)) => Some(key.span()),
        ([], _) => Some(value.span()),
        (_, DeValue::Table(inner)) => span_of(inner, deeper).or_else(|| Some(key.span())),
        ([index, deeper @ ..], DeValue::Array(list)) => {
            let entry = list.get(index.parse::<usize>().ok()?)?;
            match entry.get_ref() {
                DeValue::Table(inner) => span_of(inner, deeper).or_else(|| Some(entry.span())),
                _ => Some(entry.span()),
            }
        }
        _ => Some(value.span()),
    }
}

/// An error of the parser or of serde, with a nearest key where the key is unknown.
fn of_toml(error: &toml::de::Error, text: &str) -> ConfigError {
    let span = error.span().unwrap_or(0..0);
    let span = span.start.min(text.len())..span.end.min(text.len());
    let message = error.message().trim().to_owned();
    if let Some((unknown, expected)) =
        message.strip_prefix("unknown field `").and_then(|rest| rest.split_once("`, expected "))
    {
        let known: Vec<String> = expected.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        let unknown = UnknownName::new("key", unknown, known);
        let help = unknown.nearest.as_ref().map_or_else(
            || format!("known here: {}", unknown.known.join(", ")),
            |nearest| format!("did you mean `{nearest}`?"),
        );
        return ConfigError { span, message: format!("unknown key `{}`", unknown.name), help: Some(help) };
    }
    // Our own names carry the nearest one and the list in their text; it reads better as help.
    if message.starts_with("unknown ")
        && let Some((what, help)) = message.split_once(", did you mean ").or_else(|| message.split_once("; known: "))
    {
        let prefix = if message.contains(", did you mean ") { "did you mean " } else { "known: " };
        return ConfigError {
            span,
            message: what.to_owned(),
            help: Some(format!("{prefix}{}", help.replace("?; ", "? "))),
        };
    }
    let help = message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'));
    let help =
        help.map(|field| format!("write `{field} = ...` there; config/maint.toml of the project explains every key"));
    ConfigError { span, message: message.replace(" as i128", ""), help }
}

#[cfg(test)]
mod tests;
