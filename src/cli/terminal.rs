//! What the terminal can show, and writing to it.

use std::io::{IsTerminal as _, Write as _};

use maint_core::report::{Glyphs, Paint};

use super::{Color, Common};

/// Writes data to stdout.
pub fn data(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Writes talk to stderr.
pub fn talk(text: &str) -> std::io::Result<()> {
    std::io::stderr().lock().write_all(text.as_bytes())
}

/// Writes a document for programs to stdout.
pub fn json(document: &impl serde::Serialize) -> anyhow::Result<()> {
    Ok(data(&format!("{}\n", serde_json::to_string_pretty(document)?))?)
}

impl Common {
    /// How text on stdout is painted.
    pub fn paint(&self) -> Paint {
        let glyphs = if self.ascii || !is_utf8() { Glyphs::Ascii } else { Glyphs::Unicode };
        Paint { glyphs, colour: self.wants_colour(std::io::stdout().is_terminal()) }
    }

    /// Whether talk on stderr is coloured.
    pub fn colours_talk(&self) -> bool {
        self.wants_colour(std::io::stderr().is_terminal())
    }

    fn wants_colour(&self, terminal: bool) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
                terminal && set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb")
            }
        }
    }
}

/// Whether the locale is one of UTF-8. The first of the three that is set decides (POSIX).
fn is_utf8() -> bool {
    ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .is_some_and(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        })
}
