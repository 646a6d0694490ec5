//! Exit codes: what a script can tell apart.

use std::process::ExitCode;

use maint_core::gates::Verdict;

/// The exit codes of every verb. 3, 4, 6 and 7 may pass by waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "the codes are a contract as a whole; verbs to come give the others")]
#[repr(u8)]
pub enum Exit {
    /// Fine; warnings allowed.
    Fine = 0,
    /// Could not run: unreadable input, no API, an internal error.
    Error = 1,
    /// The command line makes no sense, or a prompt was refused.
    Usage = 2,
    /// A gate blocks, or a cell of the matrix is broken: a decision, not a failure.
    Blocked = 3,
    /// A gate could not be judged, and none blocks.
    Unknown = 4,
    /// A person is needed, or the run ended Failed or Cancelled.
    PersonNeeded = 5,
    /// Somebody else is at it: another run, a lock, a lost race.
    Conflict = 6,
    /// Waited too long, or no leader took the record; the work may go on.
    WaitedTooLong = 7,
    /// Interrupted. The run goes on, and the text says so.
    Interrupted = 130,
}

/// Shown below `--help`; README.md has the same table, and a test compares.
pub const HELP: &str = "\
Exit codes:
  0    fine (warnings allowed)
  1    error: unreadable input, no API
  2    usage
  3    a gate blocks
  4    a gate could not be judged, and none blocks
  5    a person is needed, or the run ended Failed or Cancelled
  6    conflict: another run, a lock, a lost race
  7    waited too long, or no leader took the record
  130  interrupted; a run goes on";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl From<Verdict> for Exit {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Clear => Self::Fine,
            Verdict::Blocked => Self::Blocked,
            Verdict::Unknown => Self::Unknown,
        }
    }
}

/// An error that wants another exit code than 1.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct Failure {
    /// The code.
    pub exit: Exit,
    /// What to tell.
    pub text: String,
}

impl Failure {
    /// The command line makes no sense.
    pub fn usage(text: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, text: text.into() }
    }
}

/// Tells an error on stderr and gives its exit code.
pub fn tell(error: &anyhow::Error) -> Exit {
    // Whoever closed the pipe has read enough: `maint check | head` is no failure.
    if error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe) {
        return Exit::Fine;
    }
    let text = format!("{error:#}");
    // Rendered errors of a configuration file begin with the word already.
    let rendered = text.starts_with("error: ") || text.starts_with("\u{1b}[");
    let text = if rendered { text } else { format!("error: {}", tamed(&text)) };
    let _ = super::terminal::talk(&format!("{text}\n"));
    error.downcast_ref::<Failure>().map_or(Exit::Error, |failure| failure.exit)
}

/// An error with its lines, and nothing else in it that steers a terminal: API servers and webhooks put words into it.
fn tamed(text: &str) -> String {
    text.split('\n').map(maint_core::report::tame).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_others_cannot_steer_the_terminal() {
        assert_eq!(tamed("no: \u{1b}[2Jgone\n  what helps: x"), "no: \\u{1b}[2Jgone\n  what helps: x");
    }

    #[test]
    fn verdicts_and_exit_codes_agree() {
        for verdict in Verdict::ALL {
            assert_eq!(Exit::from(*verdict) as u8, verdict.exit_code(), "{verdict}");
        }
    }

    #[test]
    fn the_help_names_every_code_once() {
        let codes = [
            Exit::Fine,
            Exit::Error,
            Exit::Usage,
            Exit::Blocked,
            Exit::Unknown,
            Exit::PersonNeeded,
            Exit::Conflict,
            Exit::WaitedTooLong,
            Exit::Interrupted,
        ];
        let told: Vec<u8> =
            HELP.lines().skip(1).filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect();
        assert_eq!(told, codes.map(|code| code as u8));
    }
}
