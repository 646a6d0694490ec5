//! The night on a terminal or in a file: a line for what happened, and on a terminal a last one for where it is.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};

use maint_core::api::Status;
use maint_core::jiff::Timestamp;
use maint_core::report::{Paint, tame};
use maint_sim::demo::{Audience, Line, Outcome, Story, Voice};

use super::super::interrupt::Interrupts;
use super::super::{Common, Output, terminal};
use super::files::Files;

/// Columns of the text; most terminals have as many.
const COLUMNS: usize = 110;
/// Columns before a sentence: time and who says it.
const MARGIN: usize = 20;
/// Columns of the live line; a longer one would leave pieces of itself behind.
const LIVE_COLUMNS: usize = 79;

/// Where the night is told.
pub struct Screen {
    paint: Paint,
    /// Whether stdout is kept for a document.
    aside: bool,
    /// On a terminal: whether the live line is there now.
    live: Option<bool>,
    /// Whether the cluster stays open when the story is over.
    stays: bool,
}

impl Screen {
    /// The screen of this process.
    pub fn new(common: &Common) -> Self {
        let live = io::stderr().is_terminal().then_some(false);
        Self { paint: common.paint(), aside: common.output == Output::Json, live, stays: false }
    }

    /// What somebody should know before it begins.
    ///
    /// # Errors
    /// If nobody reads it.
    pub fn opening(&mut self, story: &Story, begin: Timestamp) -> io::Result<()> {
        let mut text = format!("{}: {}\n", story.name, story.about);
        let about = format!(
            "{} Everything is in the memory of this process; nothing outside of it is asked or changed. Waits are shorter \
             than maint's defaults. It is {} UTC.",
            story.opening,
            begin.strftime("%a %Y-%m-%d %H:%M")
        );
        for line in wrapped(&about, COLUMNS) {
            let _ = writeln!(text, "{line}");
        }
        text.push('\n');
        self.write(&text)
    }

    /// Says how to come in from another terminal. The files are given back.
    ///
    /// # Errors
    /// If nobody reads it.
    pub fn invite(&mut self, files: Files) -> io::Result<Files> {
        self.stays = true;
        let text = format!(
            "Look at it from another terminal; until the story is over its clock is behind this machine's:\n  export \
             KUBECONFIG={} MAINT_CONFIG={}\n  maint status; maint matrix; kubectl get nodes,maintenances\n\n",
            files.kubeconfig().display(),
            files.config().display()
        );
        self.write(&text)?;
        Ok(files)
    }

    /// Takes the live line away.
    ///
    /// # Errors
    /// If stderr is gone.
    pub fn clear(&mut self) -> io::Result<()> {
        if self.live.as_mut().is_some_and(std::mem::take) { terminal::talk("\r\u{1b}[K") } else { Ok(()) }
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.clear()?;
        if self.aside { terminal::talk(text) } else { terminal::data(text) }
    }
}

impl Audience for Screen {
    fn line(&mut self, line: &Line) -> io::Result<()> {
        let text = shown(line, self.paint);
        self.write(&text)
    }

    fn live(&mut self, at: Timestamp, text: &str) -> io::Result<()> {
        if self.live.is_none() {
            return Ok(());
        }
        self.clear()?;
        self.live = Some(true);
        let line = format!("{}  {text}", at.strftime("%H:%M:%S"));
        terminal::talk(&line.chars().take(LIVE_COLUMNS).collect::<String>())
    }

    async fn over(&mut self, outcome: &Outcome) -> io::Result<()> {
        if !self.stays {
            return Ok(());
        }
        let how =
            if outcome.differences.is_empty() { "The story is over." } else { "The story did not end as it must." };
        let mut interrupts = Interrupts::listen()?;
        self.write(&format!(
            "\n{how} The cluster stays, its clock is this machine's now, and the service runs on. Try:\n  maint report; maint \
             check n2; maint reboot n2 --action pod\nCtrl-C ends it.\n"
        ))?;
        interrupts.next().await;
        Ok(())
    }
}

/// `02:06:01  maint n1   Cordoning: ...`, the rest of a long sentence below its beginning.
fn shown(line: &Line, paint: Paint) -> String {
    let who = match line.voice {
        Voice::Story => String::new(),
        Voice::Maint => format!("maint {}", line.about),
        Voice::Kured => format!("kured {}", line.about),
        Voice::Message => "message".to_owned(),
    };
    let mut text = String::new();
    let mut head = format!("{}  {who:<10}", line.at.strftime("%H:%M:%S"));
    for sentence in line.text.lines() {
        for part in wrapped(&tame(sentence), COLUMNS - MARGIN) {
            let painted = match status(line) {
                Some(status) => paint.status(status, &part),
                None => part,
            };
            let _ = writeln!(text, "{head:<MARGIN$}{painted}");
            head.clear();
        }
    }
    text
}

/// How a line is coloured.
fn status(line: &Line) -> Option<Status> {
    match line.voice {
        Voice::Story => Some(Status::NotApplicable),
        Voice::Kured => None,
        Voice::Message => match line.about.as_str() {
            "critical" => Some(Status::Block),
            "warning" => Some(Status::Warn),
            _ => None,
        },
        Voice::Maint if line.text.starts_with("Succeeded") => Some(Status::Pass),
        Voice::Maint if line.text.starts_with("Held") || line.text.starts_with("Failed") => Some(Status::Block),
        Voice::Maint => None,
    }
}

/// A sentence in lines of at most so many columns, unless a word is longer.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    let mut width = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > columns {
            lines.push(String::new());
            width = 0;
        }
        if let Some(line) = lines.last_mut() {
            if width > 0 {
                line.push(' ');
                width += 1;
            }
            line.push_str(word);
            width += length;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_sentence_goes_on_below_its_beginning() {
        let at = "2026-11-30T02:06:01Z".parse().expect("a time");
        let text = format!("{} end\n- second \u{1b}[2J", "word ".repeat(18).trim_end());
        let line = Line { at, voice: Voice::Message, about: "critical".into(), text };
        let words = ["word"; 18].join(" ");
        let wanted = format!("02:06:01  message   {words}\n{0}end\n{0}- second \\u{{1b}}[2J\n", " ".repeat(MARGIN));
        assert_eq!(shown(&line, Paint::PLAIN), wanted);
        let red = shown(&line, Paint { colour: true, ..Paint::PLAIN });
        assert!(red.starts_with("02:06:01  message   \u{1b}[1;31mword"), "{red:?}");
    }

    #[test]
    fn a_word_that_is_too_long_stands_alone() {
        assert_eq!(wrapped("a bcdefgh i j", 4), ["a", "bcdefgh", "i j"]);
        assert_eq!(wrapped("", 4), [""]);
    }
}
