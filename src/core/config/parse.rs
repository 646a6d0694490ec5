//! From the text of a configuration file to settings, or to all that is wrong with it at once.
//!
//! Serde stops at the first error. So whatever it complains about is noted, taken out of the parsed document, and the
//! rest is read again, until nothing is left to complain about; then the values are judged.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

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
        for rule in RULES {
            for (path, problem) in (rule.broken)(&settings) {
                let span = span_of(document.get_ref(), &path).unwrap_or(0..0);
                let message = format!("`{}` {problem}", path.join("."));
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
    table.iter().any(|(_, value)| match value.get_ref() {
        DeValue::Table(inner) => {
            (value.span() == error.span && inner.iter().any(|(key, _)| key.get_ref() == field))
                || is_consequence(inner, error)
        }
        _ => false,
    })
}

/// Removes the innermost entry whose key or value is at the span. Tables of headers do not enclose their entries, so
/// the children are searched first.
fn remove_at(table: &mut DeTable<'_>, span: &Range<usize>) -> bool {
    for (_, value) in table.iter_mut() {
        if let DeValue::Table(inner) = value.get_mut()
            && remove_at(inner, span)
        {
            return true;
        }
    }
    let encloses = |outer: Range<usize>| outer.start <= span.start && span.end <= outer.end;
    let found =
        table.iter().find(|(key, value)| encloses(key.span()) || encloses(value.span())).map(|(key, _)| key.clone());
    found.is_some_and(|key| table.remove(&key).is_some())
}

/// Where a value is written.
fn span_of(table: &DeTable<'_>, path: &[String]) -> Option<Range<usize>> {
    let (first, deeper) = path.split_first()?;
    let (key, value) = table.iter().find(|(key, _)| key.get_ref() == first.as_str())?;
    match (deeper, value.get_ref()) {
        ([], DeValue::Table(_)) => Some(key.span()),
        ([], _) => Some(value.span()),
        (_, DeValue::Table(inner)) => span_of(inner, deeper).or_else(|| Some(key.span())),
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
    ConfigError { span, message, help: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        Settings::parse(text, "maint.toml").expect_err("wrong").lines()
    }

    #[test]
    fn nothing_written_means_the_defaults() {
        assert_eq!(Settings::parse("", "f"), Ok(Settings::default()));
        assert_eq!(Settings::parse("# only a comment\n[limits]\n", "f"), Ok(Settings::default()));
    }

    #[test]
    fn the_shipped_file_has_every_key_at_its_default() {
        let text = include_str!("../../../config/maint.toml");
        assert_eq!(Settings::parse(text, "config/maint.toml"), Ok(Settings::default()));
        let shipped: toml::Table = text.parse().expect("TOML");
        let defaults = toml::Table::try_from(Settings::default()).expect("settings are TOML");
        assert_eq!(shipped, defaults, "config/maint.toml lacks or adds a key");
        let shown = Settings::default().to_toml().expect("TOML");
        assert_eq!(Settings::parse(&shown, "shown"), Ok(Settings::default()));
    }

    #[test]
    fn one_error_at_its_place() {
        let rows: &[(&str, &str, &str)] = &[
            ("unknown key at the top", "namspace = \"x\"\n", "1:1: unknown key `namspace`"),
            ("unknown key in a table", "[limits]\nmax_unavailble = 1\n", "2:1: unknown key `max_unavailble`"),
            ("unknown table", "[longhron]\nnamespace = \"x\"\n", "1:2: unknown key `longhron`"),
            ("dotted key", "limits.max_unavailble = 1\n", "1:8: unknown key `max_unavailble`"),
            ("inline table", "limits = { max = 1 }\n", "1:12: unknown key `max`"),
            ("wrong type", "[limits]\nmax_unavailable = \"1\"\n", "2:19: invalid type: string \"1\", expected u32"),
            ("negative", "[limits]\nmax_unavailable = -1\n", "2:19: invalid value: integer `-1`, expected u32"),
            ("unknown gate", "[gates]\nlonghorn-volume = \"warn\"\n", "2:1: unknown gate `longhorn-volume`"),
            ("unknown policy", "[gates]\nattachments = \"of\"\n", "2:15: unknown policy `of`"),
            ("scope lacks a field", "[scopes.disk]\nstrategy = \"drain\"\n", "1:1: missing field `reboots`"),
            ("syntax", "namespace = \n", "1:13: string values must be quoted, expected literal string"),
            (
                "columns count characters",
                "scopes = {\"é\" = { strategy = \"of\", reboots = true }}",
                "1:30: unknown strategy `of`",
            ),
        ];
        for (name, text, wanted) in rows {
            let got = lines(text);
            assert_eq!(got[0], format!("maint.toml:{wanted}"), "{name}");
        }
    }

    #[test]
    fn all_errors_at_once_in_the_order_of_the_text() {
        let text = "\
namspace = \"a\"
[limits]
max_unavailable = 0
ignore = []
[gates]
control = \"off\"
nodes = \"warn\"
[scopes.Disk]
strategy = \"drian\"
reboots = true
[coredns]
min_replicas = \"2\"
";
        let wanted = [
            "maint.toml:1:1: unknown key `namspace`",
            "maint.toml:3:19: `limits.max_unavailable` is 0, wanted at least 1",
            "maint.toml:4:1: unknown key `ignore`",
            "maint.toml:6:11: `gates.control` is off, wanted require",
            "maint.toml:7:1: unknown gate `nodes`",
            "maint.toml:9:12: unknown strategy `drian`",
            "maint.toml:12:16: invalid type: string \"2\", expected u32",
        ];
        let got = lines(text);
        for line in wanted {
            assert!(got.iter().any(|got| got.starts_with(line)), "wanted {line}\nin {got:#?}");
        }
        assert_eq!(got.len(), wanted.len(), "{got:#?}");
    }

    #[test]
    fn the_excerpt_has_the_line_a_caret_and_help() {
        let errors = Settings::parse("[limits]\nmax_unavailble = 1\n", "config/maint.toml").expect_err("wrong");
        let wanted = "\
error: unknown key `max_unavailble`
 --> config/maint.toml:2:1
  |
2 | max_unavailble = 1
  | ^^^^^^^^^^^^^^
  |
  = help: did you mean `max_unavailable`?";
        assert_eq!(errors.render(false), wanted);
        assert!(errors.render(true).contains('\u{1b}'));
    }
}
