//! What values must hold beyond their type, each with the reason why.

mod drain;
mod kured;
mod windows;

use super::Settings;
use crate::api::{GateId, Moment, Policy};

/// A broken rule: the path of the value and what is wrong with it.
type Broken = Vec<(Vec<String>, String)>;

/// One rule over the settings.
pub(super) struct Rule {
    /// Why it must hold: shown as help.
    pub why: &'static str,
    /// Where it does not.
    pub broken: fn(&Settings) -> Broken,
}

/// Two renewals of a kubelet's Lease, in seconds.
const LEAST_LEASE_AGE: i64 = 20;
/// How often k3s writes the EtcdIsVoter heartbeat at least, in seconds.
const LEAST_HEARTBEAT_AGE: i64 = 300;

/// What one node may be expected to take, in seconds: a minute to a day.
const LEAST_EXPECTED: i64 = 60;
const MOST_EXPECTED: i64 = 86_400;

/// Evictions at a time: each holds a connection, and 32 are no faster than 16 (measured).
const MOST_PARALLEL: i64 = 32;

/// The longest wait of a run, in seconds: a week.
const LONGEST_WAIT: i64 = 604_800;

/// All rules.
pub(super) const RULES: &[Rule] = &[
    Rule {
        why: "with 0 no run could ever start; `maint halt` stops everything",
        broken: |s| at_least(&["limits", "max_unavailable"], s.limits.max_unavailable.into(), 1),
    },
    Rule {
        why: "a kubelet renews its Lease every 10 s: below two renewals healthy nodes would look dead",
        broken: |s| {
            at_least(&["limits", "node_lease_max_age_seconds"], s.limits.node_lease_max_age_seconds, LEAST_LEASE_AGE)
        },
    },
    Rule {
        why: "DNS needs a ready replica at every moment; switch the gate off instead if DNS does not matter",
        broken: |s| {
            let mut broken = at_least(&["coredns", "min_replicas"], s.coredns.min_replicas.into(), 1);
            broken.extend(at_least(&["coredns", "min_nodes"], s.coredns.min_nodes.into(), 1));
            broken
        },
    },
    Rule {
        why: "replicas on that many nodes need at least as many replicas (`coredns.min_replicas`)",
        broken: |s| {
            let (nodes, replicas) = (s.coredns.min_nodes, s.coredns.min_replicas);
            let problem = || (path(&["coredns", "min_nodes"]), format!("is {nodes}, wanted at most {replicas}"));
            if nodes > replicas { vec![problem()] } else { Vec::new() }
        },
    },
    Rule {
        why: "every attach and detach takes a moment; a limit of 0 would call each of them stuck",
        broken: |s| {
            let mut broken =
                at_least(&["longhorn", "transition_stuck_seconds"], s.longhorn.transition_stuck_seconds, 1);
            broken.extend(at_least(&["attachments", "stuck_seconds"], s.attachments.stuck_seconds, 1));
            broken
        },
    },
    Rule {
        why: "k3s writes the heartbeat every 300 s at least: below that healthy members would look dead",
        broken: |s| {
            let seconds = s.control_plane.etcd_heartbeat_max_age_seconds;
            at_least(&["control_plane", "etcd_heartbeat_max_age_seconds"], seconds, LEAST_HEARTBEAT_AGE)
        },
    },
    Rule {
        why: "an API server is asked at its own address: `name = \"10.0.0.1:6443\"`",
        broken: |s| {
            let mut broken = at_least(&["control_plane", "api_server_port"], s.control_plane.api_server_port.into(), 1);
            for (name, address) in &s.control_plane.api_servers {
                if !is_address(address) {
                    let problem = format!("is `{address}`, wanted host:port without a scheme");
                    broken.push((path(&["control_plane", "api_servers", name]), problem));
                }
            }
            broken
        },
    },
    Rule {
        why: "a namespace is up to 63 of a-z, 0-9 and `-`, and begins and ends with a letter or digit",
        broken: |s| {
            [
                (path(&["namespace"]), &s.namespace),
                (path(&["coredns", "namespace"]), &s.coredns.namespace),
                (path(&["longhorn", "namespace"]), &s.longhorn.namespace),
                (path(&["action", "pod", "namespace"]), &s.action.pod.namespace),
                (path(&["kured", "sentinel", "namespace"]), &s.kured.sentinel.namespace),
            ]
            .into_iter()
            .filter(|(_, name)| !is_dns_label(name))
            .map(|(path, name)| (path, format!("is `{name}`, which is no namespace")))
            .collect()
        },
    },
    Rule {
        why: "it is asked at start, handover, verify or settle; to switch a gate off say so under [gates]",
        broken: |s| {
            let mut broken = moments("gitops", &s.gitops.moments);
            broken.extend(moments("alerts", &s.alerts.moments));
            broken
        },
    },
    Rule {
        why: "a URL such as http://alertmanager.monitoring:9093, and no secret in it",
        broken: |s| {
            let urls = [("alertmanager", &s.alerts.alertmanager), ("prometheus", &s.alerts.prometheus)];
            let problem = |(key, url): (&str, &String)| Some((path(&["alerts", key]), kured::odd_url(url)?));
            urls.into_iter().filter_map(problem).collect()
        },
    },
    Rule {
        why: "say whom to ask: `alertmanager` or `prometheus` under [alerts]",
        broken: |s| {
            let policy = s.gates.get(&GateId::Alerts).filter(|policy| **policy != Policy::Off);
            let nobody = policy.filter(|_| s.alerts.asked().is_none());
            let problem = |policy: &Policy| (path(&["gates", "alerts"]), format!("is {policy}, and nobody is asked"));
            nobody.map(problem).into_iter().collect()
        },
    },
    Rule {
        why: "a scope's name is kebab-case, as in `--scope disk-swap`",
        broken: |s| {
            s.scopes
                .keys()
                .filter(|name| !is_dns_label(name))
                .map(|name| (path(&["scopes", name]), "is no kebab-case name".to_owned()))
                .collect()
        },
    },
    Rule {
        why: "halt, hold, the limit of unavailable nodes and, for unattended runs, the window cannot be switched off; a \
              window of every day with `duration = \"24h\"` is always open",
        broken: |s| {
            [GateId::Control, GateId::Window, GateId::Exclusive]
                .into_iter()
                .filter_map(|gate| Some((gate, *s.gates.get(&gate)?)))
                .filter(|(_, policy)| *policy != Policy::Require)
                .map(|(gate, policy)| (path(&["gates", gate.as_str()]), format!("is {policy}, wanted require")))
                .collect()
        },
    },
    Rule {
        why: "a wait of 0 would end before it began, and one of more than a week is none that anybody waits for",
        broken: |s| {
            let run = &s.run;
            [
                ("start_timeout_seconds", run.start_timeout_seconds),
                ("drain_timeout_seconds", run.drain_timeout_seconds),
                ("handover_timeout_seconds", run.handover_timeout_seconds),
                ("return_timeout_seconds", run.return_timeout_seconds),
                ("verify_timeout_seconds", run.verify_timeout_seconds),
                ("settle_timeout_seconds", run.settle_timeout_seconds),
            ]
            .into_iter()
            .filter(|(_, value)| !(1..=LONGEST_WAIT).contains(value))
            .map(|(key, value)| (path(&["run", key]), format!("is {value}, wanted 1 to {LONGEST_WAIT}")))
            .collect()
        },
    },
    Rule {
        why: "without a green sweep nothing is proven",
        broken: |s| {
            let mut broken = at_least(&["run", "sweeps"], s.run.sweeps, 1);
            broken.extend(at_least(&["run", "sweep_interval_seconds"], s.run.sweep_interval_seconds, 0));
            broken.extend(at_least(&["run", "settle_for_seconds"], s.run.settle_for_seconds, 0));
            broken
        },
    },
    Rule {
        why: "with 0 evictions at a time no node could ever be drained; more than 32 gain nothing and hold as many \
              connections",
        broken: |s| {
            let parallel = i64::try_from(s.run.parallel_evictions).unwrap_or(i64::MAX);
            let problem =
                || (path(&["run", "parallel_evictions"]), format!("is {parallel}, wanted 1 to {MOST_PARALLEL}"));
            if (1..=MOST_PARALLEL).contains(&parallel) { Vec::new() } else { vec![problem()] }
        },
    },
    Rule { why: "a rule's name is kebab-case and its own: `maint plan` and reports name it", broken: drain::names },
    Rule {
        why: "a rule says which pods it is for: `namespaces = [\"batch\"]`, `pods = \"app=web,tier!=db\"`, or both",
        broken: drain::selections,
    },
    Rule { why: "a pod needs a second to end, and no drain waits for longer than a day", broken: drain::graces },
    Rule { why: "what is not evicted has no order and no time to end", broken: drain::without_effect },
    Rule {
        why: "kured drains what it reboots, with force; take the rule out, or let maint act by `[action.pod]`",
        broken: drain::skip_with_kured,
    },
    Rule {
        why: "a `go` must outlive the look that gave it, which takes up to 10 s",
        broken: |s| at_least(&["run", "go_seconds"], s.run.go_seconds, 10),
    },
    Rule {
        why: "an unattended run starts only where a window has that much room left; `maint halt` stops everything",
        broken: |s| {
            let seconds = s.expected_duration_seconds;
            if (LEAST_EXPECTED..=MOST_EXPECTED).contains(&seconds) {
                return Vec::new();
            }
            let problem = format!("is {seconds}, wanted {LEAST_EXPECTED} to {MOST_EXPECTED}");
            vec![(path(&["expected_duration_seconds"]), problem)]
        },
    },
    Rule {
        why: "with 0 no unattended run could ever start; that is `mode = \"observe\"`",
        broken: |s| at_least(&["max_nodes_per_window"], s.max_nodes_per_window.into(), 1),
    },
    Rule {
        why: "a window's name is kebab-case and its own: openings and reports are called after it",
        broken: windows::names,
    },
    Rule { why: "a window opens on at least one day, such as `days = [\"fri\", \"sat\"]`", broken: windows::days },
    Rule {
        why: "a window closes after a time that passes (`duration = \"6h\"`) or by the clock (`end = \"04:00\"`)",
        broken: windows::ends,
    },
    Rule {
        why: "a window is open for a minute at least and a week at most; after that the same day comes again",
        broken: windows::lengths,
    },
    Rule {
        why: "no run would ever start in it: give the window more room, or lower `expected_duration_seconds`",
        broken: windows::room,
    },
    Rule {
        why: "the pod needs an image, and only you can say whom you trust with your nodes",
        broken: |s| {
            let missing = s.action.pod.enabled && s.action.pod.image.is_empty();
            let problem = || (path(&["action", "pod", "image"]), "is empty while action `pod` is enabled".to_owned());
            if missing { vec![problem()] } else { Vec::new() }
        },
    },
    Rule {
        why: "only the host of kured's --prometheus-url is compared, whatever its scheme, port and path: `maint.example.org`",
        broken: kured::hosts,
    },
    Rule {
        why: "a Prometheus is `http://host:port` or https, perhaps with a path; secrets do not belong into this file",
        broken: kured::prometheus,
    },
    Rule {
        why: "each receiver has a name of its own, and its URL in one file or environment variable",
        broken: |s| match s.notify.check() {
            Ok(()) => Vec::new(),
            Err(error) => vec![(path(&["notify"]), error.to_string())],
        },
    },
    Rule {
        why: "the leader must stop before another replica may start, and try several times before that",
        broken: |s| {
            let election = &s.election;
            let mut broken = at_least(&["election", "retry_seconds"], election.retry_seconds.into(), 1);
            let (deadline, retry) = (election.renew_deadline_seconds, election.retry_seconds);
            broken.extend(at_least(&["election", "renew_deadline_seconds"], deadline.into(), i64::from(retry) * 2));
            let lease = election.lease_seconds;
            broken.extend(at_least(&["election", "lease_seconds"], lease.into(), i64::from(deadline) + 1));
            broken
        },
    },
];

fn path(parts: &[&str]) -> Vec<String> {
    parts.iter().map(|part| (*part).to_owned()).collect()
}

/// Moments at which a gate whose moments are configured is never asked, or none at all.
fn moments(section: &str, moments: &[Moment]) -> Broken {
    if moments.is_empty() {
        return vec![(path(&[section, "moments"]), "is empty, so it would never be asked".to_owned())];
    }
    let odd = moments.iter().enumerate().filter(|(_, moment)| **moment == Moment::Cordoned);
    odd.map(|(index, moment)| {
        (path(&[section, "moments", &index.to_string()]), format!("is {moment}, at which it is not asked"))
    })
    .collect()
}

fn at_least(parts: &[&str], value: i64, least: i64) -> Broken {
    if value < least { vec![(path(parts), format!("is {value}, wanted at least {least}"))] } else { Vec::new() }
}

fn is_dns_label(name: &str) -> bool {
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    (1..=63).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && ends(name.chars().next())
        && ends(name.chars().last())
}

fn is_address(address: &str) -> bool {
    address.rsplit_once(':').is_some_and(|(host, port)| {
        let bare_v6 = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
        !host.is_empty() && !host.contains('/') && !bare_v6 && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_break_no_rule() {
        for rule in RULES {
            assert_eq!((rule.broken)(&Settings::default()), Broken::new(), "{}", rule.why);
        }
    }

    #[test]
    fn every_rule_at_its_boundary() {
        let rows: &[(&str, Option<&str>)] = &[
            ("limits.max_unavailable = 1", None),
            ("limits.max_unavailable = 0", Some("`limits.max_unavailable` is 0, wanted at least 1")),
            ("limits.node_lease_max_age_seconds = 20", None),
            (
                "limits.node_lease_max_age_seconds = 19",
                Some("`limits.node_lease_max_age_seconds` is 19, wanted at least 20"),
            ),
            ("coredns = { min_replicas = 1, min_nodes = 1 }", None),
            ("coredns = { min_replicas = 2, min_nodes = 0 }", Some("`coredns.min_nodes` is 0, wanted at least 1")),
            ("coredns = { min_replicas = 2, min_nodes = 3 }", Some("`coredns.min_nodes` is 3, wanted at most 2")),
            ("coredns.min_replicas = 1", Some("`coredns.min_nodes` is 2, wanted at most 1")),
            (
                "longhorn.transition_stuck_seconds = 0",
                Some("`longhorn.transition_stuck_seconds` is 0, wanted at least 1"),
            ),
            ("attachments.stuck_seconds = 0", Some("`attachments.stuck_seconds` is 0, wanted at least 1")),
            ("control_plane.etcd_heartbeat_max_age_seconds = 300", None),
            (
                "control_plane.etcd_heartbeat_max_age_seconds = 299",
                Some("`control_plane.etcd_heartbeat_max_age_seconds` is 299, wanted at least 300"),
            ),
            ("control_plane.api_server_port = 0", Some("`control_plane.api_server_port` is 0, wanted at least 1")),
            ("control_plane.api_servers = { a = \"10.0.0.1:6443\", b = \"[fd00::1]:6443\" }", None),
            (
                "control_plane.api_servers.a = \"https://a:6443\"",
                Some("`control_plane.api_servers.a` is `https://a:6443`, wanted host:port without a scheme"),
            ),
            (
                "control_plane.api_servers.a = \"fd00::1\"",
                Some("`control_plane.api_servers.a` is `fd00::1`, wanted host:port without a scheme"),
            ),
            (
                "control_plane.api_servers.a = \"10.0.0.1\"",
                Some("`control_plane.api_servers.a` is `10.0.0.1`, wanted host:port without a scheme"),
            ),
            ("gitops.moments = [\"start\", \"settle\"]", None),
            ("alerts.moments = [\"cordoned\"]", Some("`alerts.moments[0]` is cordoned, at which it is not asked")),
            ("gates.alerts = \"off\"", None),
            ("gates.alerts = \"warn\"", Some("`gates.alerts` is warn, and nobody is asked")),
            ("alerts.prometheus = \"http://p:9090\"\ngates.alerts = \"require\"", None),
            (
                "alerts.alertmanager = \"a:9093\"",
                Some("`alerts.alertmanager` is `a:9093`, wanted http:// or https:// before the host"),
            ),
            ("gitops.moments = []", Some("`gitops.moments` is empty, so it would never be asked")),
            (
                "gitops.moments = [\"start\", \"cordoned\"]",
                Some("`gitops.moments[1]` is cordoned, at which it is not asked"),
            ),
            ("namespace = \"\"", Some("`namespace` is ``, which is no namespace")),
            ("longhorn.namespace = \"Longhorn\"", Some("`longhorn.namespace` is `Longhorn`, which is no namespace")),
            ("run.parallel_evictions = 32", None),
            ("run.parallel_evictions = 0", Some("`run.parallel_evictions` is 0, wanted 1 to 32")),
            ("run.parallel_evictions = 33", Some("`run.parallel_evictions` is 33, wanted 1 to 32")),
            ("gates.exclusive = \"require\"", None),
            ("gates.exclusive = \"warn\"", Some("`gates.exclusive` is warn, wanted require")),
            ("gates.window = \"off\"", Some("`gates.window` is off, wanted require")),
            ("expected_duration_seconds = 59", Some("`expected_duration_seconds` is 59, wanted 60 to 86400")),
            ("expected_duration_seconds = 60", None),
            ("expected_duration_seconds = 86400", None),
            ("expected_duration_seconds = 86401", Some("`expected_duration_seconds` is 86401, wanted 60 to 86400")),
            ("max_nodes_per_window = 0", Some("`max_nodes_per_window` is 0, wanted at least 1")),
            ("scopes.disk-swap = { strategy = \"drain\", reboots = false }", None),
            ("scopes.Disk = { strategy = \"drain\", reboots = false }", Some("`scopes.Disk` is no kebab-case name")),
        ];
        for (text, wanted) in rows {
            let got = Settings::parse(text, "f").map_err(|errors| errors.errors[0].message.clone());
            assert_eq!(got.as_ref().err().map(String::as_str), *wanted, "{text}");
        }
    }
}
