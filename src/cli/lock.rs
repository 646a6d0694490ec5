//! `maint lock show` and `maint lock release`: kured's lock, and taking somebody out of it.

use std::collections::BTreeSet;

use clap::{Args, Subcommand};
use maint_core::api::{SourceId, names};
use maint_core::facts::{Facts, Item, Maintenance, Observation};
use maint_core::kured::release::{Change, Refusal, Wish, release};
use maint_core::kured::{Place, Places, look, places};
use maint_core::report::{self, LockReport};
use maint_engine::execute::WriteError;
use maint_engine::request::ReleasedLock;
use serde_json::json;

use super::cluster::{Right, Session, explain, not_now};
use super::input::{Gathered, Input, machine_clock};
use super::{Common, Exit, Failure, Output, terminal};

const SOURCES: [SourceId; 3] = [SourceId::Nodes, SourceId::DaemonSets, SourceId::Maintenances];

/// Shown below `maint lock show --help`.
const SHOW_HELP: &str = "\
Examples:
  maint lock show
  maint lock show --from DUMP -o json";

/// Shown below `maint lock release --help`.
const RELEASE_HELP: &str = "\
Examples:
  maint lock release --holder worker9           a node that is gone: kured never frees it by itself
  maint lock release --holder worker1 --yes     a node that is there: be sure that it is not rebooting
  maint lock release --garbage --yes            a value that kured cannot read, or not with its --concurrency

Only the value that was read is replaced: if the lock changed meanwhile, nothing is written (exit 6).";

/// kured's lock.
#[derive(Debug, Subcommand)]
pub enum Lock {
    /// Who holds kured's lock, and what kured does with it as it is. Changes nothing
    Show(Show),
    /// Take a holder out of kured's lock
    Release(Release),
}

/// Arguments of `lock show`.
#[derive(Debug, Args)]
#[command(after_help = SHOW_HELP)]
pub struct Show {
    #[command(flatten)]
    input: Input,
}

/// Arguments of `lock release`.
#[derive(Debug, Args)]
#[command(after_help = RELEASE_HELP)]
pub struct Release {
    /// The holder, as `maint lock show` names it
    #[arg(long, value_name = "NAME", required_unless_present = "garbage", conflicts_with = "garbage")]
    holder: Option<String>,
    /// Take the whole value away: one that kured cannot read
    #[arg(long)]
    garbage: bool,
    /// Which lock, where there are several
    #[arg(long, value_name = "NAMESPACE/NAME")]
    daemon_set: Option<String>,
    /// Mean it; needed for everything but a node that is gone
    #[arg(long)]
    yes: bool,
}

impl Lock {
    /// Runs it.
    ///
    /// # Errors
    /// If the lock cannot be read, or not be changed as asked for.
    pub async fn run(&self, common: &Common) -> anyhow::Result<Exit> {
        match self {
            Self::Show(show) => show.run(common).await,
            Self::Release(release) => release.run(common).await,
        }
    }
}

impl Show {
    async fn run(&self, common: &Common) -> anyhow::Result<Exit> {
        let settings = common.settings()?;
        let Gathered { facts, now, origin } =
            self.input.gather(common, &settings, BTreeSet::from(SOURCES), None).await?;
        let places = found(&facts)?;
        let (nodes, records) = (nodes(&facts)?, records(&facts)?);
        let locks = places.into_iter().map(|place| {
            let seen = look(&place, &nodes, &records, now);
            (place, seen)
        });
        let report = LockReport::new(machine_clock(), now, origin, locks.collect());
        match common.output {
            Output::Text => terminal::data(&report::lock(&report, common.paint()))?,
            Output::Json => terminal::json(&report)?,
        }
        let stuck = report.locks.iter().any(|lock| lock.unreadable.is_some() || !lock.format_fits);
        Ok(if stuck { Exit::Blocked } else { Exit::Fine })
    }
}

impl Release {
    async fn run(&self, common: &Common) -> anyhow::Result<Exit> {
        let session = Session::open(common).await?;
        self.on(&session, common).await
    }

    /// Runs it on a connected cluster.
    ///
    /// # Errors
    /// See [`Lock::run`].
    pub async fn on(&self, session: &Session, common: &Common) -> anyhow::Result<Exit> {
        let facts = session.facts(&SOURCES).await;
        let place = self.place(found(&facts)?)?;
        let wish = self.holder.as_deref().map_or(Wish::Garbage, Wish::Holder);
        let change = release(&place, wish, &nodes(&facts)?, &records(&facts)?).map_err(refused)?;
        if change.needs_yes && !self.yes {
            let text = format!(
                "{} of {} would be replaced:\n  before: {}\n  after:  {}\nsay --yes if you are sure that no node is draining or \
                 rebooting by it",
                place.key,
                place.object(),
                change.before,
                shown(change.after.as_deref())
            );
            return Err(Failure::usage(text).into());
        }
        let Change { before, after, removed, .. } = change;
        let lock = ReleasedLock {
            namespace: place.namespace.clone(),
            daemon_set: place.name.clone(),
            key: place.key.clone(),
            before,
            after,
        };
        session.requests.release_kured_lock(&lock).await.map_err(|error| match error {
            WriteError::NotFound(_) => not_now(format!("{} is gone", place.object())),
            error => explain(error, Right::LOCK),
        })?;
        let after = shown(lock.after.as_deref());
        let text = format!("{} of {}\n  before: {}\n  after:  {after}\n", lock.key, place.object(), lock.before);
        match common.output {
            Output::Text => terminal::data(&text)?,
            Output::Json => terminal::json(&json!({
                "apiVersion": names::OUTPUT_API_VERSION, "kind": "LockRelease", "namespace": lock.namespace,
                "daemonSet": lock.daemon_set, "annotation": lock.key, "removed": removed,
                "before": lock.before, "after": lock.after,
            }))?,
        }
        Ok(Exit::Fine)
    }

    /// The lock that is meant: the named one, the only one, or the only one that has this holder.
    fn place(&self, mut places: Vec<Place>) -> Result<Place, Failure> {
        let name = |place: &Place| format!("{}/{}", place.namespace, place.name);
        if let Some(wanted) = &self.daemon_set {
            let known: Vec<String> = places.iter().map(name).collect();
            places.retain(|place| name(place) == *wanted);
            let unknown = || Failure::usage(format!("no lock on DaemonSet {wanted}; there are: {}", known.join(", ")));
            return places.into_iter().next().ok_or_else(unknown);
        }
        if let (Some(holder), true) = (&self.holder, places.len() > 1) {
            let quoted = format!("\"{holder}\"");
            let has = |place: &Place| place.text.as_deref().is_some_and(|text| text.contains(&quoted));
            if places.iter().filter(|place| has(place)).count() == 1 {
                places.retain(has);
            }
        }
        let all: Vec<String> = places.iter().map(name).collect();
        match (places.pop(), places.is_empty()) {
            (Some(only), true) => Ok(only),
            (None, _) => Err(Failure::usage("kured is not installed, and left no lock behind")),
            (Some(_), false) => Err(Failure::usage(format!(
                "there are several locks: say which with --daemon-set, one of {}",
                all.join(", ")
            ))),
        }
    }
}

fn shown(text: Option<&str>) -> &str {
    text.unwrap_or("(no annotation: free)")
}

fn refused(refusal: Refusal) -> anyhow::Error {
    match &refusal {
        Refusal::Garbage(_) | Refusal::NoGarbage(_) | Refusal::NotIn(..) => Failure::usage(refusal.to_string()).into(),
        Refusal::Free | Refusal::InFlight(..) => not_now(refusal.to_string()),
    }
}

fn unknown(text: String) -> anyhow::Error {
    Failure { exit: Exit::Unknown, text }.into()
}

fn found(facts: &Facts) -> anyhow::Result<Vec<Place>> {
    match places(facts) {
        Places::Found(places) => Ok(places),
        Places::NotInstalled => Ok(Vec::new()),
        Places::Unreadable(why) => {
            Err(unknown(format!("where kured's lock is, is not known: {why}\n  what helps: `maint doctor`")))
        }
    }
}

/// The names of all nodes; one that cannot be understood exists all the same.
fn nodes(facts: &Facts) -> anyhow::Result<BTreeSet<&str>> {
    match &facts.nodes {
        Observation::Known { value, .. } => Ok(value
            .iter()
            .filter_map(|item| match item {
                Item::Good(node) => Some(node.metadata.name.as_str()),
                Item::Malformed(bad) => bad.object.strip_prefix("Node "),
            })
            .collect()),
        Observation::Failed { kind, detail, .. } => {
            Err(unknown(format!("cannot tell which nodes there are ({kind}): {detail}")))
        }
        _ => Err(unknown("cannot tell which nodes there are".to_owned())),
    }
}

/// The records. Without their CRD there are none; one that cannot be understood may be in flight.
fn records(facts: &Facts) -> anyhow::Result<Vec<&Maintenance>> {
    match &facts.maintenances {
        Observation::Known { value, .. } => value
            .iter()
            .map(|item| match item {
                Item::Good(record) => Ok(record),
                Item::Malformed(bad) => Err(unknown(format!("whether a run holds the lock is not known: {bad}"))),
            })
            .collect(),
        Observation::Absent { .. } => Ok(Vec::new()),
        Observation::Failed { kind, detail, .. } => {
            Err(unknown(format!("whether a run holds the lock is not known ({kind}): {detail}")))
        }
        Observation::NotAsked => Err(unknown("whether a run holds the lock is not known".to_owned())),
    }
}
