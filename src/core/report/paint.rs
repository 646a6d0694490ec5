//! Marks and colours. A mark is always there, so that colour alone never tells anything.

use crate::api::Status;

/// Which marks a terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Glyphs {
    /// `√ ‼ × ? –`
    Unicode,
    /// `OK WARN BLOCK UNK -`, for locales without UTF-8 and for `--ascii`.
    Ascii,
}

/// How text is painted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paint {
    /// The marks.
    pub glyphs: Glyphs,
    /// Whether colours are wanted: a terminal, and nobody said no.
    pub colour: bool,
}

impl Paint {
    /// Marks in Unicode, no colour: what a pipe gets.
    pub const PLAIN: Self = Self { glyphs: Glyphs::Unicode, colour: false };

    /// The mark of a status, padded to the width of its kind and coloured.
    #[must_use]
    pub fn mark(self, status: Status) -> String {
        let (unicode, ascii) = match status {
            Status::Pass => ("√", "OK   "),
            Status::Warn => ("‼", "WARN "),
            Status::Block => ("×", "BLOCK"),
            Status::Unknown => ("?", "UNK  "),
            Status::NotApplicable => ("–", "-    "),
        };
        let mark = if self.glyphs == Glyphs::Unicode { unicode } else { ascii };
        self.status(status, mark)
    }

    /// Columns that a mark takes.
    #[must_use]
    pub const fn mark_width(self) -> usize {
        match self.glyphs {
            Glyphs::Unicode => 1,
            Glyphs::Ascii => 5,
        }
    }

    /// Text in the colour of a status: pass green, warn yellow, block red, unknown magenta, the rest dim.
    #[must_use]
    pub fn status(self, status: Status, text: &str) -> String {
        let code = match status {
            Status::Pass => "32",
            Status::Warn => "33",
            Status::Block => "1;31",
            Status::Unknown => "1;35",
            Status::NotApplicable => "2",
        };
        self.wrap(code, text)
    }

    /// Text that may step back.
    #[must_use]
    pub fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Text from the cluster without anything that steers a terminal: control characters become `\u{..}`.
#[must_use]
pub fn tame(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            // Right-to-left overrides and their like reorder what is read, so they are shown as escapes too.
            let steers = c.is_control()
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            if steers { c.escape_default().collect::<Vec<_>>() } else { vec![c] }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mark_is_as_wide_as_it_says() {
        for glyphs in [Glyphs::Unicode, Glyphs::Ascii] {
            let paint = Paint { glyphs, colour: false };
            for status in Status::ALL {
                assert_eq!(paint.mark(*status).chars().count(), paint.mark_width(), "{status} {glyphs:?}");
            }
        }
    }

    #[test]
    fn a_colour_is_always_closed_and_plain_text_has_none() {
        assert_eq!(Paint { glyphs: Glyphs::Unicode, colour: true }.mark(Status::Pass), "\u{1b}[32m√\u{1b}[0m");
        assert_eq!(Paint::PLAIN.mark(Status::Block), "×");
    }

    #[test]
    fn text_from_the_cluster_cannot_steer_a_terminal() {
        assert_eq!(tame("a\u{1b}[2Jb\nc\u{202e}d é"), "a\\u{1b}[2Jb\\nc\\u{202e}d é");
    }
}
