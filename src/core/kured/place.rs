//! Where kured's lock is.

use crate::api::names::ANNOTATION_KURED_LOCK;
use crate::facts::{DaemonSet, Facts, Item, Observation};

/// A lock of kured: the annotation of one DaemonSet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Namespace of the DaemonSet (`--ds-namespace`).
    pub namespace: String,
    /// Its name (`--ds-name`).
    pub name: String,
    /// The annotation's key (`--lock-annotation`).
    pub key: String,
    /// Its value; none while it is free in the single format, or was never taken.
    pub text: Option<String>,
    /// `--concurrency`: nodes that may hold it at a time. Above 1 the lock has the multi format.
    pub concurrency: usize,
    /// `--period`, in seconds: how often kured looks whether its node wants a reboot; an hour where it is not set.
    pub period_seconds: i64,
    /// `--reboot-sentinel`: the file on the node that stands for a wanted reboot.
    pub sentinel: String,
    /// `--reboot-sentinel-command`: with it kured never looks at the file.
    pub sentinel_command: Option<String>,
    /// Its own window is not limited: neither days nor times are set.
    pub always_open: bool,
}

/// kured's defaults (all versions up to 1.23).
const PERIOD_SECONDS: i64 = 3600;
const SENTINEL: &str = "/var/run/reboot-required";

impl Place {
    /// `DaemonSet namespace/name`, for people.
    #[must_use]
    pub fn object(&self) -> String {
        format!("DaemonSet {}/{}", self.namespace, self.name)
    }
}

/// What is known of kured's locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Places {
    /// No DaemonSet runs kured.
    NotInstalled,
    /// The DaemonSets could not be read, or one that runs kured could not be understood.
    Unreadable(String),
    /// Here they are, in the order of namespace and name; never empty.
    Found(Vec<Place>),
}

/// Finds kured's locks. The facts must be as fresh as the decision needs; age is the caller's.
#[must_use]
pub fn places(facts: &Facts) -> Places {
    let items = match &facts.daemon_sets {
        Observation::Known { value, .. } => value,
        Observation::Absent { .. } => return Places::NotInstalled,
        Observation::Failed { detail, .. } => {
            return Places::Unreadable(format!("the DaemonSets could not be read: {detail}"));
        }
        Observation::NotAsked => return Places::Unreadable("the DaemonSets were not asked for".to_owned()),
    };
    let mut found = Vec::new();
    for item in items {
        match item {
            Item::Good(daemon_set) if runs_kured(daemon_set) => match place(daemon_set) {
                Ok(place) => found.push(place),
                Err(why) => return Places::Unreadable(why),
            },
            Item::Good(_) => {}
            // It may be kured's.
            Item::Malformed(bad) => return Places::Unreadable(format!("{} cannot be understood", bad.object)),
        }
    }
    found.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    if found.is_empty() { Places::NotInstalled } else { Places::Found(found) }
}

/// A container runs kured's program or image, or the annotation is there: who uninstalled kured left no lock behind.
fn runs_kured(daemon_set: &DaemonSet) -> bool {
    let program = |word: &String| word.rsplit('/').next() == Some("kured");
    daemon_set.metadata.annotations.contains_key(ANNOTATION_KURED_LOCK)
        || daemon_set.containers.iter().any(|container| {
            let image = container.image.split(['@', ':']).next().unwrap_or_default();
            container.command.first().is_some_and(program) || image.rsplit('/').next() == Some("kured")
        })
}

fn place(daemon_set: &DaemonSet) -> Result<Place, String> {
    let concurrency = match flag(daemon_set, "concurrency") {
        None => 1,
        Some(text) => text.parse::<usize>().ok().filter(|count| *count > 0).ok_or_else(|| {
            format!("--concurrency of DaemonSet {} is `{text}`, wanted a number", daemon_set.metadata.full_name())
        })?,
    };
    let period_seconds = match flag(daemon_set, "period") {
        None => PERIOD_SECONDS,
        Some(text) => go_seconds(&text).filter(|seconds| *seconds > 0).ok_or_else(|| {
            format!("--period of DaemonSet {} is `{text}`, wanted a time like 5m", daemon_set.metadata.full_name())
        })?,
    };
    let key = flag(daemon_set, "lock-annotation").unwrap_or_else(|| ANNOTATION_KURED_LOCK.to_owned());
    Ok(Place {
        namespace: daemon_set.metadata.namespace.clone(),
        name: daemon_set.metadata.name.clone(),
        text: daemon_set.metadata.annotations.get(&key).cloned(),
        key,
        concurrency,
        period_seconds,
        sentinel: flag(daemon_set, "reboot-sentinel").unwrap_or_else(|| SENTINEL.to_owned()),
        sentinel_command: flag(daemon_set, "reboot-sentinel-command").filter(|command| !command.is_empty()),
        always_open: ["reboot-days", "start-time", "end-time"].iter().all(|name| flag(daemon_set, name).is_none()),
    })
}

/// A duration as Go writes it (`1h30m`, `90s`, `1.5h`), in whole seconds, rounded up: kured looks no later than that.
fn go_seconds(text: &str) -> Option<i64> {
    let mut nanoseconds = 0_i128;
    let mut rest = text;
    while !rest.is_empty() {
        let number = rest.find(|one: char| !(one.is_ascii_digit() || one == '.'))?;
        let (value, after) = rest.split_at(number);
        let unit = after.find(|one: char| one.is_ascii_digit() || one == '.').unwrap_or(after.len());
        let (unit, next) = after.split_at(unit);
        let scale: i128 = match unit {
            "h" => 3_600_000_000_000,
            "m" => 60_000_000_000,
            "s" => 1_000_000_000,
            "ms" => 1_000_000,
            "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
            "ns" => 1,
            _ => return None,
        };
        let (whole, part) = value.split_once('.').unwrap_or((value, ""));
        if whole.is_empty() && part.is_empty() || whole.len() > 12 {
            return None;
        }
        nanoseconds += if whole.is_empty() { 0 } else { whole.parse::<i128>().ok()? * scale };
        let mut digit = scale;
        for one in part.chars() {
            digit /= 10;
            nanoseconds += i128::from(one.to_digit(10)?) * digit;
        }
        rest = next;
    }
    i64::try_from((nanoseconds + 999_999_999) / 1_000_000_000).ok()
}

/// A flag of kured: the environment (`KURED_<FLAG>`) wins over the command line since 1.16.2.
fn flag(daemon_set: &DaemonSet, name: &str) -> Option<String> {
    let variable = format!("KURED_{}", name.to_uppercase().replace('-', "_"));
    for container in &daemon_set.containers {
        let by_env = container.env.iter().rev().find(|(key, _)| *key == variable).and_then(|(_, value)| value.clone());
        if by_env.is_some() {
            return by_env;
        }
        let words = container.command.iter().chain(&container.args).rev();
        let mut after = None;
        for word in words {
            let Some(rest) = word.strip_prefix("--").and_then(|rest| rest.strip_prefix(name)) else {
                after = Some(word);
                continue;
            };
            match rest.strip_prefix('=') {
                Some(value) => return Some(value.to_owned()),
                None if rest.is_empty() => return after.cloned(),
                None => after = Some(word),
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        let rows = [
            ("1h", Some(3600)),
            ("5m", Some(300)),
            ("1h30m0s", Some(5400)),
            ("1.5h", Some(5400)),
            ("20s", Some(20)),
            ("1500ms", Some(2)),
            ("0", None),
            ("90", None),
            ("", Some(0)),
            ("5x", None),
            (".s", None),
            ("-5m", None),
        ];
        for (text, wanted) in rows {
            assert_eq!(go_seconds(text), wanted, "{text}");
        }
    }
}
