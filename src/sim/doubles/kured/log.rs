//! kured's log lines: logrus' text form without a terminal.

use std::time::Duration;

use jiff::Timestamp;

/// How loud a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// `info`
    Info,
    /// `warning`
    Warning,
    /// `error`
    Error,
    /// `fatal`: the process exits with 1 behind it.
    Fatal,
}

impl Level {
    const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Fatal => "fatal",
        }
    }
}

/// One line, without its end: time, level, message, each quoted where it is not a plain word.
#[must_use]
pub fn line(at: Timestamp, level: Level, text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._/@^+".contains(c);
    let shown = if !text.is_empty() && text.chars().all(plain) { text.to_owned() } else { format!("{text:?}") };
    format!("time=\"{}\" level={} msg={shown}", at.strftime("%Y-%m-%dT%H:%M:%SZ"), level.name())
}

/// A duration as Go prints it: `1h0m0s`, `20s`, `1.5s`, `200ms`.
#[must_use]
pub fn duration(of: Duration) -> String {
    if of.is_zero() {
        return "0s".to_owned();
    }
    if of < Duration::from_secs(1) {
        return format!("{}ms", of.as_secs_f64() * 1e3);
    }
    let (hours, minutes) = (of.as_secs() / 3600, of.as_secs() / 60 % 60);
    let seconds = of.as_secs_f64() % 60.0;
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, minutes) => format!("{minutes}m{seconds}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
    }
}
