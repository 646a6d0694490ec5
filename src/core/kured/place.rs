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
}

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
    let key = flag(daemon_set, "lock-annotation").unwrap_or_else(|| ANNOTATION_KURED_LOCK.to_owned());
    Ok(Place {
        namespace: daemon_set.metadata.namespace.clone(),
        name: daemon_set.metadata.name.clone(),
        text: daemon_set.metadata.annotations.get(&key).cloned(),
        key,
        concurrency,
    })
}

/// A flag of kured: the environment (`KURED_<FLAG>`) wins over the command line since 1.16.2.
fn flag(daemon_set: &DaemonSet, name: &str) -> Option<String> {
    let variable = format!("KURED_{}", name.to_uppercase().replace('-', "_"));
    for container in &daemon_set.containers {
        let by_env = container.env.iter().rev().find(|(key, _)| *key == variable).and_then(|(_, value)| value.clone());
        if by_env.is_some() {
            return by_env;
        }
        let mut words = container.command.iter().chain(&container.args).rev().peekable();
        let mut after = None;
        while let Some(word) = words.next() {
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
