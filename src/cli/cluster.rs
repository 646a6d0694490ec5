//! What the verbs that ask a cluster for something share: the connection, the records, who asks, what errors mean.

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use maint_core::api::record::{Maintenance, MaintenanceReport, Word};
use maint_core::api::rights::{Account, Subject, grants};
use maint_core::api::{Phase, SourceId, UnknownName, names};
use maint_core::config::Settings;
use maint_core::facts::{Facts, Fields, Item, Lease, Node, Observation, Source as _};
use maint_core::jiff::Timestamp;
use maint_core::plan::{phase_of, stamp};
use maint_core::report::tame;
use maint_engine::client::{Exchange, connect, get, install_crypto_provider};
use maint_engine::drive::{KubeRecords, Records as _};
use maint_engine::execute::{KubeReports, WriteError};
use maint_engine::observe::{KubeReader, LiveObserver};
use maint_engine::ports::{Observe as _, Wanted};
use maint_engine::probe::ProbeServers;
use maint_engine::request::Requests;
use maint_engine::runtime::{Clock, Rng};

use super::live::CannotAsk;
use super::{Common, Exit, Failure, terminal};

/// Limit of the question for the leader's Lease.
const LEASE_LIMIT: Duration = Duration::from_secs(10);
/// Largest Lease that is taken, in bytes.
const LEASE_BYTES: usize = 256 * 1024;
/// What helps where the API server answers, but not well.
const SICK_SERVER: &str = "kubectl get --raw '/readyz?verbose' asks the same server how it is; then again";
/// Names that an error spells out.
const NAMES_IN_AN_ERROR: usize = 10;

/// Who asks.
#[derive(Debug, Clone, Args)]
pub struct Who {
    /// Your name in the record; else USER@host
    #[arg(long = "as", value_name = "NAME")]
    person: Option<String>,
}

impl Who {
    /// The name; never empty.
    ///
    /// # Errors
    /// If an empty one was given.
    pub fn name(&self) -> Result<String, Failure> {
        match &self.person {
            Some(name) if name.trim().is_empty() => {
                Err(Failure::usage("--as needs a name: it says who asked, at three in the morning"))
            }
            Some(name) => Ok(name.trim().to_owned()),
            None => {
                let user = variable("USER").or_else(|| variable("LOGNAME")).unwrap_or_else(|| "somebody".to_owned());
                Ok(host().map_or(user.clone(), |host| format!("{user}@{host}")))
            }
        }
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

fn host() -> Option<String> {
    let file = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    variable("HOSTNAME").or_else(file).map(|name| name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// A right that a call needs, for the error that says it is missing.
#[derive(Debug, Clone, Copy)]
pub struct Right {
    /// `create`, `patch` ...
    pub verb: &'static str,
    /// `maintenances.maint.dev`, `nodes` ...
    pub resource: &'static str,
}

impl Right {
    /// Reading records.
    pub const READ: Self = Self { verb: "list", resource: "maintenances.maint.dev" };
    /// Asking for a run.
    pub const CREATE: Self = Self { verb: "create", resource: "maintenances.maint.dev" };
    /// Saying a word.
    pub const SAY: Self = Self { verb: "patch", resource: "maintenances.maint.dev" };
    /// Halting.
    pub const HALT: Self = Self { verb: "patch", resource: "configmaps" };
    /// Holding a node.
    pub const HOLD: Self = Self { verb: "patch", resource: "nodes" };
    /// Reading reports.
    pub const REPORTS: Self = Self { verb: "list", resource: "maintenancereports.maint.dev" };
    /// Taking somebody out of kured's lock.
    pub const LOCK: Self = Self { verb: "patch", resource: "daemonsets.apps" };
    /// Reading kured's DaemonSet.
    pub const DAEMON_SETS: Self = Self { verb: "list", resource: "daemonsets.apps" };
    /// Reading nodes.
    pub const NODES: Self = Self { verb: "list", resource: "nodes" };

    /// The roles for people that have it.
    fn roles(self) -> Vec<&'static str> {
        let has = |account: Account| {
            grants().iter().any(|grant| {
                let Subject::Resource { group, resource: kind, .. } = grant.subject else { return false };
                let name = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
                grant.account == account && name == self.resource && grant.verbs.contains(&self.verb)
            })
        };
        let people = Account::ALL.iter().copied().filter(|account| !account.is_ours());
        people.filter(|account| has(*account)).map(Account::name).collect()
    }
}

/// A connected cluster.
pub struct Session {
    /// The settings of this machine; the leader has its own.
    pub settings: Settings,
    /// Time.
    pub clock: Clock,
    /// Ends of names.
    pub rng: Rng,
    /// What a person may ask for.
    pub requests: Requests,
    /// Reads records.
    pub records: KubeRecords,
    client: kube::Client,
    observer: LiveObserver,
}

impl Session {
    /// Connects.
    ///
    /// # Errors
    /// If the configuration is bad, or the cluster cannot be asked at all; the text ends with what helps.
    pub async fn open(common: &Common) -> anyhow::Result<Self> {
        let settings = common.settings()?;
        install_crypto_provider();
        let clock = Clock::real();
        let options = common.access();
        let (access, client) = connect(&options, &clock).await.map_err(|cause| CannotAsk { cause })?;
        let servers = ProbeServers::new(&access, &options.probe, client.clone(), clock.clone(), &settings.namespace);
        Ok(Self::of(settings, clock, Rng::from_os(), servers, client))
    }

    /// One over a client that is connected already.
    pub fn of(
        settings: Settings,
        clock: Clock,
        rng: Rng,
        servers: impl Into<ProbeServers>,
        client: kube::Client,
    ) -> Self {
        let reader = KubeReader::new(client.clone(), clock.clone());
        Self {
            rng,
            requests: Requests::new(client.clone(), clock.clone(), settings.namespace.clone()),
            records: KubeRecords::new(client.clone(), clock.clone()),
            observer: LiveObserver::new(reader, servers.into(), Arc::new(settings.clone()), clock.clone()),
            settings,
            clock,
            client,
        }
    }

    /// The present time, in whole seconds as records have it.
    pub fn now(&self) -> Timestamp {
        let now = self.clock.now();
        Timestamp::from_second(now.as_second()).unwrap_or(now)
    }

    /// The cluster, for people.
    pub fn source(&self) -> String {
        self.observer.source()
    }

    /// Reads sources, freshly.
    pub async fn facts(&self, sources: &[SourceId]) -> Facts {
        self.observer
            .observe(&Wanted { sources: sources.iter().copied().collect(), target: None, every_pair: false })
            .await
    }

    /// One node, freshly.
    ///
    /// # Errors
    /// If there is no such node (usage, with the nearest), it cannot be understood, or the nodes cannot be read.
    pub async fn node(&self, name: &str) -> anyhow::Result<Node> {
        let facts = self.facts(&[SourceId::Nodes]).await;
        let items = match &facts.nodes {
            Observation::Known { value, .. } => value,
            Observation::Failed { kind, detail, .. } if kind.as_str() == "forbidden" => {
                return Err(forbidden(Right::NODES, detail));
            }
            Observation::Failed { kind, detail, .. } => {
                let text = format!("cannot tell which nodes there are ({kind}): {detail}\n  what helps: {SICK_SERVER}");
                return Err(Failure { exit: Exit::Unknown, text }.into());
            }
            _ => return Err(anyhow!("cannot tell which nodes there are")),
        };
        let mut known = Vec::new();
        for item in items {
            match item {
                Item::Good(node) if node.metadata.name == name => return Ok(node.clone()),
                Item::Malformed(bad) if bad.object == format!("Node {name}") => {
                    return Err(Failure { exit: Exit::Unknown, text: bad.to_string() }.into());
                }
                Item::Good(node) => known.push(node.metadata.name.clone()),
                Item::Malformed(_) => {}
            }
        }
        Err(Failure::usage(UnknownName::new("node", name, known).to_string()).into())
    }

    /// The leader's Lease; absent where there is none.
    pub async fn lease(&self) -> Observation<Lease> {
        let at = self.clock.now();
        let failed = |kind: &str, detail: String| {
            let kind = kind.parse().unwrap_or(maint_core::facts::FailureKind::Server);
            Observation::Failed { kind, detail, at }
        };
        let namespace = &self.settings.namespace;
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{}", names::LEASE);
        let (code, body) = match get(&self.client, &self.clock, &path, &[], LEASE_LIMIT, LEASE_BYTES).await {
            Exchange::Complete { head, body, truncated: false } => (head.status.as_u16(), body),
            Exchange::Complete { .. } => return failed("server", "a Lease of more than 256 KiB".to_owned()),
            Exchange::Cut { failure, .. } | Exchange::Failed(failure) => return failed("transport", failure.detail),
            Exchange::TimedOut(limit) => return failed("timeout", format!("no answer within {} s", limit.as_secs())),
        };
        let document: serde_json::Value = match serde_json::from_slice(&body) {
            Ok(document) => document,
            Err(error) => return failed("server", format!("HTTP {code}: {error}")),
        };
        let message = || document.get("message").and_then(serde_json::Value::as_str).unwrap_or("no text").to_owned();
        match code {
            200 => match Fields::root("Lease", &document).and_then(|root| Lease::decode(&root)) {
                Ok(value) => Observation::Known { value, at },
                Err(bad) => failed("server", bad.to_string()),
            },
            // Only a Status says that it is not there; anything else that answers 404 is no API server.
            404 if document.get("kind").and_then(serde_json::Value::as_str) == Some("Status") => {
                Observation::Absent { at }
            }
            401 | 403 => failed("forbidden", message()),
            _ => failed("server", format!("HTTP {code}: {}", message())),
        }
    }

    /// All records, or those that are not over.
    ///
    /// # Errors
    /// If they cannot be read; missing CRDs come with the command that installs them.
    pub async fn list(&self, finished_too: bool) -> anyhow::Result<Vec<Maintenance>> {
        self.records.list(finished_too).await.map_err(|error| explain(error, Right::READ))
    }

    /// All records, and why others cannot be understood.
    ///
    /// # Errors
    /// As [`Session::list`].
    pub async fn all(&self) -> anyhow::Result<(Vec<Maintenance>, Vec<String>)> {
        self.records.all(true).await.map_err(|error| explain(error, Right::READ))
    }

    /// All reports, and why others cannot be understood.
    ///
    /// # Errors
    /// As [`Session::list`].
    pub async fn reports(&self) -> anyhow::Result<(Vec<MaintenanceReport>, Vec<String>)> {
        let reports = KubeReports::new(self.client.clone(), self.clock.clone());
        reports.all().await.map_err(|error| explain(error, Right::REPORTS))
    }

    /// The records of a node that are not over.
    ///
    /// # Errors
    /// As [`Session::list`].
    pub async fn active_of(&self, node: &str) -> anyhow::Result<Vec<Maintenance>> {
        let mut records = self.list(false).await?;
        records.retain(|record| record.spec.node_name == node && !phase_of(record).is_terminal());
        Ok(records)
    }

    /// A record by its name.
    ///
    /// # Errors
    /// If there is none (usage, with the nearest), or it cannot be read.
    pub async fn record(&self, name: &str) -> anyhow::Result<Maintenance> {
        if let Some(record) = self.records.get(name).await.map_err(|error| explain(error, Right::READ))? {
            return Ok(record);
        }
        // A missing CRD looks like a missing record; the list tells them apart.
        let mut records = self.list(true).await?;
        let of_node: Vec<String> = records
            .iter()
            .filter(|record| record.spec.node_name == name && !phase_of(record).is_terminal())
            .map(name_of)
            .collect();
        if !of_node.is_empty() {
            let text = format!("`{name}` is a node; the record of its run is {}", of_node.join(", "));
            return Err(Failure::usage(text).into());
        }
        records.sort_by_key(|record| std::cmp::Reverse(record.metadata.creation_timestamp.as_ref().map(|at| at.0)));
        let mut unknown = UnknownName::new("record", name, records.iter().map(name_of).collect());
        unknown.known.truncate(NAMES_IN_AN_ERROR);
        if unknown.known.is_empty() {
            return Err(Failure::usage(format!("unknown record `{name}`; there are none")).into());
        }
        Err(Failure::usage(unknown.to_string()).into())
    }

    /// A word for a record. It is never dated before the present phase: a word that looks older is not heard, and
    /// this machine's clock may be behind the leader's.
    pub fn word(&self, by: &str, record: &Maintenance) -> Word {
        let began =
            record.status.as_ref().and_then(|status| maint_core::plan::parse_time(status.step_started_at.as_ref()));
        let now = self.now();
        Word { by: by.to_owned(), at: stamp(began.map_or(now, |began| began.max(now))), ..Word::default() }
    }
}

/// The name of a record.
pub fn name_of(record: &Maintenance) -> String {
    record.metadata.name.clone().unwrap_or_default()
}

/// `worker2-x7k2m (Draining)`
pub fn name_and_phase(record: &Maintenance) -> String {
    format!("{} ({})", name_of(record), phase_of(record))
}

/// What a failed call means to a person, and what helps. A missing object of a known kind is told by the caller, so
/// what is not found here is the kind.
pub fn explain(error: WriteError, right: Right) -> anyhow::Error {
    match error {
        WriteError::NotFound(_) => anyhow!(
            "the cluster does not know maint's records: their CRDs are not installed\n  what helps: maint crds | \
             kubectl apply -f -"
        ),
        WriteError::Forbidden(detail) => forbidden(right, &detail),
        WriteError::Conflict(detail) => {
            let text =
                format!("somebody else wrote first: {detail}\n  what helps: look with `maint status`, then again");
            Failure { exit: Exit::Conflict, text }.into()
        }
        error @ (WriteError::TimedOut { .. } | WriteError::Transport(_)) => {
            anyhow!("{error}\n  what helps: `maint status` shows whether it did")
        }
        // What is stored is odd, not the server.
        WriteError::Server(why) if why.contains("cannot be understood") => {
            anyhow!("{why}\n  what helps: kubectl get {}, and a maint as new as the leader's", right.resource)
        }
        error @ (WriteError::NotRead(_) | WriteError::Server(_)) => anyhow!("{error}\n  what helps: {SICK_SERVER}"),
        error => anyhow!("{error}"),
    }
}

/// Who lacks a right, and which of maint's roles has it.
pub fn forbidden(right: Right, detail: &str) -> anyhow::Error {
    let Right { verb, resource } = right;
    if detail.contains("Unauthorized") {
        return anyhow!(
            "the API server does not know you: {detail}\n  what helps: kubectl auth whoami asks the same server; has the token or \
             certificate of the kubeconfig expired?"
        );
    }
    let helps = match right.roles().as_slice() {
        [] => "no role of maint gives it to people, since it leads to root on every node: ask whoever runs the cluster"
            .to_owned(),
        roles => format!("{} has it (deploy/README.md, \"Let people in\")", roles.join(" or ")),
    };
    anyhow!(
        "you lack the right to {verb} {resource}: {detail}\n  what helps: {helps}; `kubectl auth can-i {verb} {resource}` asks \
         for it"
    )
}

/// Tells which objects were left out since they cannot be understood: what is left out must not look like what is not
/// there.
///
/// # Errors
/// If stderr is gone.
pub fn tell_left_out(odd: &[String]) -> std::io::Result<()> {
    odd.iter().try_for_each(|why| terminal::talk(&format!("left out, since it cannot be understood: {}\n", tame(why))))
}

/// A word makes no sense now: exit code 6, with why.
pub fn not_now(text: impl Into<String>) -> anyhow::Error {
    Failure { exit: Exit::Conflict, text: text.into() }.into()
}

/// Whether a run is in a phase before commit.
pub const fn is_before_commit(phase: Phase) -> bool {
    matches!(phase, Phase::Pending | Phase::Cordoning | Phase::Draining | Phase::Acting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_roles_that_have_the_right() {
        let all = vec!["maint-viewer", "maint-checker", "maint-operator"];
        let acts = vec!["maint-operator"];
        let rows = [
            (Right::READ, &all),
            (Right::REPORTS, &all),
            (Right::NODES, &all),
            (Right::DAEMON_SETS, &all),
            (Right::CREATE, &acts),
            (Right::SAY, &acts),
            (Right::HALT, &acts),
            (Right::HOLD, &acts),
            (Right::LOCK, &vec![]),
        ];
        for (right, wanted) in rows {
            assert_eq!(&right.roles(), wanted, "{right:?}");
        }
        let text = forbidden(Right::LOCK, "no").to_string();
        assert!(text.contains("no role of maint gives it to people"), "{text}");
        let text = forbidden(Right::READ, "HTTP 401: Unauthorized").to_string();
        assert!(text.starts_with("the API server does not know you: "), "{text}");
    }

    #[test]
    fn nobody_is_nameless() {
        let rows = [("given", Some(" anna "), Some("anna")), ("empty", Some(" "), None)];
        for (row, given, wanted) in rows {
            let who = Who { person: given.map(str::to_owned) };
            assert_eq!(who.name().ok().as_deref(), wanted, "{row}");
        }
        assert!(!Who { person: None }.name().expect("a name").is_empty());
    }

    #[test]
    fn errors_say_what_helps_and_have_their_exit_code() {
        let limit = Duration::from_secs(8);
        let rows: [(&str, WriteError, Option<Exit>, &str); 5] = [
            ("no CRD", WriteError::NotFound("n".into()), None, "maint crds | kubectl apply -f -"),
            ("forbidden", WriteError::Forbidden("d".into()), None, "the right to create maintenances.maint.dev: d\n"),
            ("conflict", WriteError::Conflict("c".into()), Some(Exit::Conflict), "somebody else wrote first: c\n"),
            ("late", WriteError::TimedOut { limit }, None, "no answer within 8 s; it may have happened\n"),
            ("refused", WriteError::Invalid("i".into()), None, "the API server does not accept it: i"),
        ];
        for (row, error, exit, wanted) in rows {
            let error = explain(error, Right::CREATE);
            assert!(error.to_string().contains(wanted), "{row}: {error}");
            assert_eq!(error.downcast_ref::<Failure>().map(|failure| failure.exit), exit, "{row}");
        }
    }
}
