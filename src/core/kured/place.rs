//! Where kured's lock is.

use crate::api::names::ANNOTATION_KURED_LOCK;
use crate::config::Settings;
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

/// Whether a kured may drop alerts by name before it counts them. True also where that could not be read.
#[must_use]
pub fn filters_alerts(facts: &Facts) -> bool {
    // Whatever their values: the one is a pattern that is kured's to read, the other turns it round.
    let filters = |daemon_set: &DaemonSet| {
        daemon_set.containers.iter().any(|container| {
            let mut words = container.command.iter().chain(&container.args);
            words.any(|word| word.starts_with("--alert-filter-"))
                || container.env.iter().any(|(key, _)| key.starts_with("KURED_ALERT_FILTER_"))
        })
    };
    !matches!(facts.daemon_sets, Observation::Known { .. })
        || facts.daemon_sets.good().any(|daemon_set| runs_kured(daemon_set) && filters(daemon_set))
}

/// Whether every kured asks us, by the template of its DaemonSet: `--prometheus-url` names one of our hosts and the
/// path `/kured/`. False where kured is not installed or could not be read.
#[must_use]
pub fn is_gated(facts: &Facts, settings: &Settings) -> bool {
    matches!(places(facts), Places::Found(_))
        && facts
            .daemon_sets
            .good()
            .filter(|daemon_set| runs_kured(daemon_set))
            .all(|daemon_set| flag(daemon_set, "prometheus-url").is_some_and(|url| is_ours(&url, settings)))
}

/// A URL that leads to us: `http://maint.NAMESPACE...:PORT/kured/NODE`.
fn is_ours(url: &str, settings: &Settings) -> bool {
    let Some((authority, path)) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')) else {
        return false;
    };
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let service = format!("maint.{}", settings.namespace);
    let ours = host == "maint"
        || host == service
        || host == format!("{service}.svc")
        || host.starts_with(&format!("{service}.svc."))
        || settings.kured.hosts.iter().any(|known| known == host);
    ours && path.strip_prefix("kured/").is_some_and(|node| !node.is_empty())
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
        let mut after = None;
        for word in container.command.iter().chain(&container.args).rev() {
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
    use serde_json::json;

    use super::*;
    use crate::gates::testing::good;

    fn facts(args: &[&str]) -> Facts {
        let daemon_set = json!({
            "metadata": {"name": "kured", "namespace": "kube-system"},
            "spec": {"template": {"spec": {"containers": [{"name": "kured", "image": "kured:1.23.0", "args": args}]}}},
            "status": {"desiredNumberScheduled": 3, "numberReady": 3},
        });
        Facts { daemon_sets: good(&[daemon_set]), ..Facts::default() }
    }

    #[test]
    fn a_kured_is_gated_where_its_url_leads_to_us() {
        let mut settings = Settings::default();
        settings.kured.hosts = vec!["gate.example".to_owned()];
        let rows = [
            ("http://maint/kured/$(KURED_NODE_ID)", true),
            ("http://maint.maint:8080/kured/$(KURED_NODE_ID)", true),
            ("http://maint.maint.svc.cluster.local/kured/worker2/", true),
            ("http://gate.example:80/kured/worker2", true),
            ("http://maint.other/kured/worker2", false),
            ("http://maint.maint.svcx/kured/worker2", false),
            ("http://maint.maint/kured/", false),
            ("http://maint.maint/", false),
            ("http://prometheus.monitoring:9090", false),
            ("https://maint.maint/kured/worker2", false),
        ];
        for (url, wanted) in rows {
            assert_eq!(is_gated(&facts(&[&format!("--prometheus-url={url}")]), &settings), wanted, "{url}");
        }
        assert!(!is_gated(&facts(&[]), &settings), "asks nobody");
        assert!(!is_gated(&Facts::default(), &settings), "not read");
    }

    #[test]
    fn alerts_are_filtered_where_a_flag_says_so_or_nobody_knows() {
        let rows = [
            (facts(&[]), false),
            (facts(&["--alert-filter-regexp=^maint"]), true),
            (facts(&["--alert-filter-match-only"]), true),
            (Facts::default(), true),
        ];
        for (facts, wanted) in rows {
            assert_eq!(filters_alerts(&facts), wanted, "{:?}", facts.daemon_sets);
        }
    }
}
