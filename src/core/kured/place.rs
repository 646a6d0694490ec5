//! Where kured's lock is.

use super::flag::Flag;
use super::flags::{FlagProblem, Flags, Origin};
use super::lock::{Format, Lock};
use crate::api::names::ANNOTATION_KURED_LOCK;
use crate::facts::{Container, DaemonSet, Facts, Item, Observation, OwnerReference, Pod};

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
    /// `--period`, in seconds: how often kured looks whether its node wants a reboot. The longest of those that share
    /// the lock.
    pub period_seconds: i64,
    /// `--reboot-sentinel`: the file on the node that stands for a wanted reboot.
    pub sentinel: String,
    /// `--reboot-sentinel-command`: with it kured never looks at the file.
    pub sentinel_command: Option<String>,
    /// Its own window is not limited: neither days nor times are set.
    pub always_open: bool,
    /// Namespace and name of the DaemonSets whose pods take this lock: the one that carries it where it runs kured
    /// itself, and every other whose `--ds-name` points there.
    pub runners: Vec<(String, String)>,
}

impl Place {
    /// `DaemonSet namespace/name`, for people.
    #[must_use]
    pub fn object(&self) -> String {
        format!("DaemonSet {}/{}", self.namespace, self.name)
    }

    /// Whether it is the same annotation of the same object.
    #[must_use]
    pub fn is_at(&self, namespace: &str, name: &str, key: &str) -> bool {
        self.namespace == namespace && self.name == name && self.key == key
    }

    /// Whether the pod is one of the kureds that take this lock: a DaemonSet of theirs controls it.
    #[must_use]
    pub fn is_taken_by(&self, pod: &Pod) -> bool {
        let Some(OwnerReference { kind, name: owner, .. }) = &pod.controller else { return false };
        let of = |(namespace, name): &(String, String)| *namespace == pod.metadata.namespace && name == owner;
        kind == "DaemonSet" && self.runners.iter().any(of)
    }

    /// Whether the lock's format is the one that `--concurrency` reads; a free or unreadable one fits.
    #[must_use]
    pub fn format_fits(&self) -> bool {
        let lock = self.text.as_deref().and_then(|text| Lock::parse(text).ok());
        lock.is_none_or(|lock| (lock.format == Format::Multi) == (self.concurrency > 1))
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
    let mut daemon_sets = Vec::new();
    for item in items {
        match item {
            Item::Good(daemon_set) => daemon_sets.push(daemon_set),
            // It may be kured's.
            Item::Malformed(bad) => return Places::Unreadable(format!("{} cannot be understood", bad.object)),
        }
    }
    places_of(&daemon_sets)
}

/// The same from DaemonSets that are all that there are.
#[must_use]
pub fn places_of(daemon_sets: &[&DaemonSet]) -> Places {
    let mut found: Vec<Place> = Vec::new();
    let mut nowhere = None;
    for daemon_set in daemon_sets {
        let place = match (kured_container(daemon_set), left_behind(daemon_set)) {
            (Some(container), _) => place(daemon_set, &Flags::of(container, None), daemon_sets),
            (None, Some(place)) => Ok(Some(place)),
            (None, None) => continue,
        };
        match place {
            Ok(Some(place)) => {
                match found.iter_mut().find(|known| known.is_at(&place.namespace, &place.name, &place.key)) {
                    Some(known) if known.concurrency != place.concurrency => {
                        return Places::Unreadable(format!(
                            "kureds that share the lock on {} run with --concurrency {} and {}",
                            place.object(),
                            known.concurrency,
                            place.concurrency
                        ));
                    }
                    Some(known) => {
                        known.period_seconds = known.period_seconds.max(place.period_seconds);
                        known.always_open &= place.always_open;
                        known.runners.extend(place.runners);
                    }
                    None => found.push(place),
                }
            }
            Ok(None) => nowhere = Some(daemon_set.metadata.full_name()),
            Err(why) => return Places::Unreadable(format!("DaemonSet {}: {why}", daemon_set.metadata.full_name())),
        }
    }
    found.sort_by(|a, b| (&a.namespace, &a.name, &a.key).cmp(&(&b.namespace, &b.name, &b.key)));
    match nowhere {
        // That kured finds no lock and reboots nothing; with others beside it theirs are what counts.
        Some(name) if found.is_empty() => Places::Unreadable(format!(
            "the DaemonSet that --ds-namespace and --ds-name of DaemonSet {name} point at does not exist"
        )),
        None if found.is_empty() => Places::NotInstalled,
        _ => Places::Found(found),
    }
}

/// Every annotation that is a lock or may be one: under the key of any kured, on any DaemonSet. With the flags that
/// could not be read, so that a lock under their key would be overlooked.
#[must_use]
pub fn lock_annotations<'a>(
    daemon_sets: &[&'a DaemonSet],
) -> (Vec<(&'a DaemonSet, String)>, Vec<(&'a DaemonSet, FlagProblem)>) {
    let mut keys = vec![ANNOTATION_KURED_LOCK.to_owned()];
    let mut problems = Vec::new();
    for daemon_set in daemon_sets {
        let Some(container) = kured_container(daemon_set) else { continue };
        match Flags::of(container, None).text(Flag::LockAnnotation) {
            Ok(key) if keys.contains(&key) => {}
            Ok(key) => keys.push(key),
            Err(problem) => problems.push((*daemon_set, problem)),
        }
    }
    let of = |daemon_set: &&'a DaemonSet| {
        let daemon_set = *daemon_set;
        keys.iter()
            .filter(|key| daemon_set.metadata.annotations.contains_key(*key))
            .map(|key| (daemon_set, key.clone()))
            .collect::<Vec<_>>()
    };
    (daemon_sets.iter().flat_map(of).collect(), problems)
}

/// The container that runs kured: its program or, where the image's own program runs, its image.
#[must_use]
pub fn kured_container(daemon_set: &DaemonSet) -> Option<&Container> {
    container_of(&daemon_set.containers)
}

/// The container among several that runs kured.
#[must_use]
pub fn container_of(containers: &[Container]) -> Option<&Container> {
    let program =
        |container: &&Container| container.command.first().is_some_and(|word| word.rsplit('/').next() == Some("kured"));
    let image = |container: &&Container| {
        let name = container.image.split('@').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
        name.split(':').next() == Some("kured")
    };
    containers.iter().find(program).or_else(|| containers.iter().find(image))
}

/// A lock on a DaemonSet that does not run kured.
fn left_behind(daemon_set: &DaemonSet) -> Option<Place> {
    let text = daemon_set.metadata.annotations.get(ANNOTATION_KURED_LOCK)?;
    Some(Place {
        namespace: daemon_set.metadata.namespace.clone(),
        name: daemon_set.metadata.name.clone(),
        key: ANNOTATION_KURED_LOCK.to_owned(),
        text: Some(text.clone()),
        concurrency: 1,
        period_seconds: Flag::PERIOD_SECONDS,
        sentinel: Flag::RebootSentinel.spec().default.to_owned(),
        sentinel_command: None,
        always_open: true,
        runners: Vec::new(),
    })
}

/// The lock of one kured; none where the DaemonSet that its flags name does not exist.
fn place(own: &DaemonSet, flags: &Flags, all: &[&DaemonSet]) -> Result<Option<Place>, String> {
    let known = |problem: FlagProblem| problem.to_string();
    let (namespace, name) = (flags.text(Flag::DsNamespace).map_err(known)?, flags.text(Flag::DsName).map_err(known)?);
    let key = flags.text(Flag::LockAnnotation).map_err(known)?;
    let concurrency = flags.int(Flag::Concurrency).map_err(known)?;
    let concurrency = usize::try_from(concurrency)
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| format!("--concurrency is `{concurrency}`, wanted at least 1"))?;
    let period_seconds = flags.seconds(Flag::Period).map_err(known)?;
    if period_seconds <= 0 {
        return Err(format!("--period is `{}`, wanted a time like 1m", flags.shown(Flag::Period)));
    }
    let sentinel = flags.text(Flag::RebootSentinel).map_err(known)?;
    let sentinel_command = flags.text(Flag::RebootSentinelCommand).map_err(known)?;
    let window = [Flag::RebootDays, Flag::StartTime, Flag::EndTime];
    let is_it = |one: &DaemonSet| one.metadata.namespace == namespace && one.metadata.name == name;
    let carrier = if is_it(own) { Some(own) } else { all.iter().copied().find(|one| is_it(one)) };
    Ok(carrier.map(|carrier| Place {
        text: carrier.metadata.annotations.get(&key).cloned(),
        namespace,
        name,
        key,
        concurrency,
        period_seconds,
        sentinel,
        sentinel_command: (!sentinel_command.is_empty()).then_some(sentinel_command),
        always_open: window.into_iter().all(|flag| flags.origin(flag) == Origin::Default),
        runners: vec![(own.metadata.namespace.clone(), own.metadata.name.clone())],
    }))
}

/// What the tests of locks begin with.
#[cfg(test)]
pub(super) mod testing {
    use super::*;

    /// kured as its manifest installs it, with this lock.
    pub(in crate::kured) fn place(text: Option<&str>, concurrency: usize) -> Place {
        Place {
            namespace: "kube-system".into(),
            name: "kured".into(),
            key: ANNOTATION_KURED_LOCK.into(),
            text: text.map(str::to_owned),
            concurrency,
            period_seconds: 60,
            sentinel: "/var/run/reboot-required".into(),
            sentinel_command: None,
            always_open: true,
            runners: vec![("kube-system".into(), "kured".into())],
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::facts::Source as _;

    fn kured(name: &str, namespace: &str, args: &[&str], annotations: Value) -> DaemonSet {
        let document = json!({
            "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
            "spec": {"template": {"spec": {"containers": [
                {"name": "proxy", "image": "quay.io/brancz/kube-rbac-proxy:v0.18.0", "args": ["--concurrency=9"]},
                {"name": "kured", "image": "ghcr.io/kubereboot/kured:1.23.0", "command": ["/usr/bin/kured"], "args": args},
            ]}}},
            "status": {"desiredNumberScheduled": 3, "numberReady": 3},
        });
        let Item::Good(found) = DaemonSet::item(&document) else { panic!("{document}") };
        found
    }

    #[test]
    fn a_lock_is_taken_by_the_pods_of_every_kured_that_points_at_it() {
        let daemon_sets = [
            kured("kured", "kube-system", &[], json!({})),
            kured("kured-gpu", "pools", &["--ds-name=kured", "--ds-namespace=kube-system"], json!({})),
            kured("kured-arm", "pools", &["--ds-name=kured-arm", "--ds-namespace=pools"], json!({})),
        ];
        let Places::Found(places) = places_of(&daemon_sets.iter().collect::<Vec<_>>()) else { panic!("no places") };
        let shared = places.iter().find(|place| place.name == "kured").expect("the shared lock");
        let rows = [
            ("the carrier's", "kube-system", "DaemonSet", "kured", true),
            ("the second pool's", "pools", "DaemonSet", "kured-gpu", true),
            ("of a pool with a lock of its own", "pools", "DaemonSet", "kured-arm", false),
            ("the same name elsewhere", "pools", "DaemonSet", "kured", false),
            ("another kind", "kube-system", "ReplicaSet", "kured", false),
        ];
        for (row, namespace, kind, owner, wanted) in rows {
            let document = json!({
                "metadata": {"name": "p", "namespace": namespace, "uid": "u",
                    "ownerReferences": [{"kind": kind, "name": owner, "controller": true}]},
                "spec": {}, "status": {},
            });
            let Item::Good(pod) = Pod::item(&document) else { panic!("{document}") };
            assert_eq!(shared.is_taken_by(&pod), wanted, "{row}");
        }
    }

    #[test]
    fn a_lock_is_where_the_flags_say() {
        let free = || json!({});
        let default = "weave.works/kured-node-lock";
        let rows: Vec<(&str, Vec<DaemonSet>, Result<Vec<(&str, &str, Option<&str>, usize)>, &str>)> = vec![
            (
                "defaults",
                vec![kured("kured", "kube-system", &[], free())],
                Ok(vec![("kube-system/kured", default, None, 1)]),
            ),
            (
                "another key, and its value",
                vec![kured(
                    "kured",
                    "kube-system",
                    &["--lock-annotation=example.com/lock"],
                    json!({"example.com/lock": "x"}),
                )],
                Ok(vec![("kube-system/kured", "example.com/lock", Some("x"), 1)]),
            ),
            (
                "two pools share one lock",
                vec![
                    kured("kured", "kube-system", &["--concurrency=2"], json!({default: "x"})),
                    kured("kured-gpu", "kube-system", &["--ds-name=kured", "--concurrency=2"], free()),
                ],
                Ok(vec![("kube-system/kured", default, Some("x"), 2)]),
            ),
            (
                "two pools with a lock each",
                vec![
                    kured("kured-gpu", "pools", &["--ds-name=kured-gpu", "--ds-namespace=pools"], free()),
                    kured("kured", "kube-system", &[], free()),
                ],
                Ok(vec![("kube-system/kured", default, None, 1), ("pools/kured-gpu", default, None, 1)]),
            ),
            (
                "two pools that freeze each other",
                vec![
                    kured("kured", "kube-system", &[], free()),
                    kured("kured-gpu", "kube-system", &["--ds-name=kured", "--concurrency=2"], free()),
                ],
                Err("share the lock on DaemonSet kube-system/kured run with --concurrency 1 and 2"),
            ),
            (
                "pointing at nothing",
                vec![kured("kured", "kured", &[], free())],
                Err("that --ds-namespace and --ds-name of DaemonSet kured/kured point at does not exist"),
            ),
            (
                "no number",
                vec![kured("kured", "kube-system", &["--concurrency=0"], free())],
                Err("--concurrency is `0`"),
            ),
            ("no flag", vec![kured("kured", "kube-system", &["--concurrency=x"], free())], Err("--concurrency is `x`")),
        ];
        for (row, daemon_sets, wanted) in rows {
            let found = places_of(&daemon_sets.iter().collect::<Vec<_>>());
            match (&found, &wanted) {
                (Places::Found(places), Ok(wanted)) => {
                    let told = |place: &Place| {
                        (
                            format!("{}/{}", place.namespace, place.name),
                            place.key.clone(),
                            place.text.clone(),
                            place.concurrency,
                        )
                    };
                    let wanted: Vec<_> = wanted
                        .iter()
                        .map(|(name, key, text, count)| {
                            ((*name).to_owned(), (*key).to_owned(), text.map(str::to_owned), *count)
                        })
                        .collect();
                    assert_eq!(places.iter().map(told).collect::<Vec<_>>(), wanted, "{row}");
                }
                (Places::Unreadable(why), Err(part)) => assert!(why.contains(part), "{row}: {why}"),
                _ => panic!("{row}: {found:?}"),
            }
        }
    }

    #[test]
    fn what_a_run_needs_to_know_of_kured_goes_with_the_lock() {
        let one = kured("kured", "kube-system", &["--period=5m", "--reboot-sentinel=/sentinel/x"], json!({}));
        let words = &["--ds-name=kured", "--period=1m", "--start-time=22:00", "--reboot-sentinel-command=test -e /x"];
        let two = kured("kured-gpu", "kube-system", words, json!({}));
        for (row, daemon_sets, wanted) in [
            ("one", vec![&one], (300, "/sentinel/x", None, true)),
            ("two on one lock", vec![&one, &two], (300, "/sentinel/x", None, false)),
            ("the other first", vec![&two, &one], (300, "/var/run/reboot-required", Some("test -e /x"), false)),
        ] {
            let Places::Found(places) = places_of(&daemon_sets) else { panic!("{row}") };
            let place = places.first().expect("one");
            let told =
                (place.period_seconds, place.sentinel.as_str(), place.sentinel_command.as_deref(), place.always_open);
            assert_eq!(told, wanted, "{row}");
        }
    }

    #[test]
    fn without_kured_there_is_no_lock_but_one_left_behind() {
        let mut other = kured("agent", "kube-system", &[], json!({}));
        other.containers.truncate(1);
        assert_eq!(places_of(&[&other]), Places::NotInstalled);
        other.metadata.annotations.insert(ANNOTATION_KURED_LOCK.to_owned(), r#"{"nodeID":"worker1"}"#.to_owned());
        assert!(matches!(places_of(&[&other]), Places::Found(places) if places.len() == 1));
    }

    #[test]
    fn a_lock_under_any_key_is_found_and_a_hidden_key_is_told() {
        let own_key = kured("kured", "a", &["--lock-annotation=example.com/lock"], json!({"example.com/lock": "x"}));
        let mut hidden = kured("kured", "b", &["--lock-annotation=$(KEY)"], json!({}));
        hidden.containers[1].env.push(("KEY".to_owned(), None));
        let (found, problems) = lock_annotations(&[&own_key, &hidden]);
        assert_eq!(found.iter().map(|(_, key)| key.as_str()).collect::<Vec<_>>(), ["example.com/lock"]);
        assert_eq!(problems.len(), 1);
    }
}
