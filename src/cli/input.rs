//! A live cluster or a dump, for the verbs that only look.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use maint_core::api::SourceId;
use maint_core::config::Settings;
use maint_core::facts::Facts;
use maint_core::jiff::Timestamp;
use maint_core::report::{Clock, Origin};
use maint_engine::ports::Wanted;

use super::dump::{Dump, Limits};
use super::live::Live;
use super::{Common, time};

/// Where to look.
#[derive(Debug, Args)]
pub struct Input {
    /// Judge a dump: a file or a folder of `kubectl get KIND -A -o yaml|json` output
    #[arg(long, value_name = "PATH")]
    from: Option<PathBuf>,
    /// The dump's clock, such as 2026-01-31T23:59:59Z; else the newest lease renewal in it
    #[arg(long, value_name = "TIME", requires = "from", value_parser = time::instant)]
    now: Option<Timestamp>,
    /// Take the dump for complete: an empty List means none (kubectl writes the same where it was refused), and
    /// single objects of a kind are all there are
    #[arg(long, requires = "from")]
    complete: bool,
}

/// What was found.
pub struct Gathered {
    /// What is known.
    pub facts: Facts,
    /// The time that ages are counted to.
    pub now: Timestamp,
    /// Where it came from.
    pub origin: Origin,
}

impl Input {
    /// Whether a cluster is asked.
    pub const fn is_live(&self) -> bool {
        self.from.is_none()
    }

    /// The same words for another verb, each with a space before it.
    pub fn arguments(&self) -> String {
        let Some(path) = &self.from else { return String::new() };
        let now = self.now.map_or_else(String::new, |now| format!(" --now {now}"));
        let complete = if self.complete { " --complete" } else { "" };
        format!(" --from {}{now}{complete}", quoted(&path.display().to_string()))
    }

    /// Reads what is wanted, from the cluster or the dump; live, of pods those of this node, if one is named.
    ///
    /// # Errors
    /// If the cluster cannot be asked at all, or the dump cannot be judged.
    pub async fn gather(
        &self,
        common: &Common,
        settings: &Settings,
        sources: BTreeSet<SourceId>,
        node: Option<&str>,
    ) -> anyhow::Result<Gathered> {
        let Some(path) = &self.from else {
            let live = Live::connect(&common.access(), settings).await?;
            let facts = live.facts(&Wanted { sources, target: node.map(str::to_owned), every_pair: true }).await;
            let origin = Origin { kind: "live", name: live.source(), clock: Clock::Machine };
            return Ok(Gathered { facts, now: live.now(), origin });
        };
        let dump = Dump::read(path, self.complete, Limits::default())?;
        let (now, clock) = match (self.now, dump.newest_lease()) {
            (Some(now), _) => (now, Clock::Given),
            (None, Some(renewed)) => (renewed, Clock::NewestLease),
            (None, None) => anyhow::bail!(
                "{}: no Lease tells when the dump was taken\n  help: add the output of `kubectl get leases -A -o yaml`, or say \
                 when with --now 2026-01-31T23:59:59Z",
                path.display()
            ),
        };
        let origin = Origin { kind: "dump", name: path.display().to_string(), clock };
        Ok(Gathered { facts: dump.facts(settings, now), now, origin })
    }
}

/// When a document was made: told, and nothing is decided by it.
#[expect(clippy::disallowed_methods, reason = "when a document was made is told, nothing is decided by it")]
pub fn machine_clock() -> Timestamp {
    Timestamp::now()
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_a_shell() {
        let rows = [("worker2", "worker2"), ("a b", "'a b'"), ("it's", "'it'\\''s'"), ("", "''"), ("$x", "'$x'")];
        for (word, wanted) in rows {
            assert_eq!(quoted(word), wanted);
        }
    }
}
