//! `maint post-check`: after power-on, wait until the cluster is whole, prove it, name what is not. Changes nothing.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use maint_core::config::Settings;
use maint_core::facts::Facts;
use maint_core::gates::Verdict;
use maint_core::jiff::SignedDuration;
use maint_core::post_check::{Asked, Next, PostCheck as Answer, Wait, examine, sources};
use maint_core::report::{self, Clock as ClockOrigin, Origin, PostCheckReport, Waited, length, tame};
use maint_engine::client::{ClientError, install_crypto_provider};
use maint_engine::observe::LiveObserver;
use maint_engine::ports::{Observe as _, Wanted};
use maint_engine::runtime::{Clock, Instant};

use super::input::{Input, machine_clock};
use super::interrupt::Interrupts;
use super::live::CannotAsk;
use super::{Common, Exit, Failure, Format, terminal, time};

/// Shown below `maint post-check --help`.
pub const HELP: &str = "\
Examples:
  maint post-check                               wait up to ten minutes, and say what is not whole
  maint post-check --timeout 0s                  look once
  maint post-check --nodes worker2,worker3       of the workers only these; control-plane nodes always
  maint post-check -o markdown > post-check.md   for a ticket
  maint post-check --from DUMP                   judge a saved cluster

It looks at: nodes, API servers, etcd voters, every path from API servers to kubelets, DaemonSets, CoreDNS, Longhorn,
attachments, databases, cordons with their owner, clocks. It needs a kubeconfig and no running service, tries the
kubeconfig's server first and then every API server that it knows, tells on stderr what it waits for, and restarts,
uncordons and writes nothing.

It ends with 0 if all is whole and stayed so, 3 if something is broken when the time is over, 4 if something could not be
judged and nothing is broken, 7 if no API server answered, or it was not whole for long enough.";

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// What it waits for is told again after so long, where it stays the same.
const TELL_AGAIN: Duration = Duration::from_secs(30);
/// How long it waits where nobody says.
const TIMEOUT: &str = "10m";

/// Arguments of `post-check`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct PostCheck {
    /// Nodes that must be there and are judged, besides control-plane nodes; else all
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    nodes: Vec<String>,
    /// How long to wait at most, such as 10m; 0s looks once
    #[arg(long, value_name = "DURATION", default_value = TIMEOUT, value_parser = length_or_none, conflicts_with = "from")]
    timeout: Duration,
    /// How long it must be whole without a break; else run.settle_for_seconds
    #[arg(long, value_name = "DURATION", value_parser = length_or_none, conflicts_with = "from")]
    settle: Option<Duration>,
    #[command(flatten)]
    input: Input,
}

/// A duration, or none at all.
fn length_or_none(text: &str) -> Result<Duration, String> {
    if matches!(text.trim(), "0" | "0s") {
        return Ok(Duration::ZERO);
    }
    time::length(text).map(SignedDuration::unsigned_abs)
}

impl PostCheck {
    /// Runs it.
    ///
    /// # Errors
    /// If there is no cluster or dump to look at, or no API server answers in time.
    pub async fn run(&self, common: &Common) -> anyhow::Result<Exit> {
        let settings = common.settings()?;
        if !self.input.is_live() {
            let gathered = self.input.gather(common, &settings, sources(&settings), None).await?;
            let asked = self.asked(&gathered.facts, &settings, true, gathered.now);
            let waited = Waited { settled: true, ..Waited::default() };
            let report = PostCheckReport::new(
                examine(&asked),
                gathered.origin,
                self.nodes.clone(),
                waited,
                gathered.now,
                machine_clock(),
            );
            print(&report, common)?;
            return Ok(report.verdict.into());
        }
        install_crypto_provider();
        let clock = Clock::real();
        let settle = self.settle.unwrap_or(Duration::from_secs(settings.run.settle_for_seconds.max(0).unsigned_abs()));
        let known = settings.control_plane.api_servers.values().cloned().collect();
        let begun = clock.instant();
        let mut watch = Watch {
            verb: self,
            common,
            settings: Arc::new(settings),
            begun,
            clock,
            known,
            way: None,
            told: None,
            last: None,
        };
        watch.run(Wait::new(self.timeout, settle), Interrupts::listen()?).await
    }

    fn asked<'a>(
        &'a self,
        facts: &'a Facts,
        settings: &'a Settings,
        is_dump: bool,
        now: maint_core::jiff::Timestamp,
    ) -> Asked<'a> {
        Asked { facts, settings, nodes: &self.nodes, is_dump, now }
    }
}

/// The way to the cluster that answers.
struct Way {
    observer: LiveObserver,
    /// An API server's own address; none is the kubeconfig's server.
    address: Option<String>,
}

/// One look: what was seen, or why nobody answered.
type Look = Result<Seen, Vec<String>>;

struct Seen {
    answer: Answer,
    origin: Origin,
    now: maint_core::jiff::Timestamp,
}

struct Watch<'a> {
    verb: &'a PostCheck,
    common: &'a Common,
    settings: Arc<Settings>,
    clock: Clock,
    begun: Instant,
    /// Addresses of API servers that are known: from the settings, and from the cluster once it answered.
    known: Vec<String>,
    way: Option<Way>,
    /// What was told last, and when.
    told: Option<(String, Duration)>,
    /// The last look that was answered, and when it was.
    last: Option<(Seen, Duration)>,
}

impl Watch<'_> {
    async fn run(&mut self, mut wait: Wait, mut interrupts: Interrupts) -> anyhow::Result<Exit> {
        loop {
            let look = tokio::select! {
                biased;
                () = interrupts.next() => return self.interrupted(&wait),
                look = self.look() => look?,
            };
            let elapsed = self.elapsed();
            let silence = look.as_ref().err().cloned();
            let next = wait.look(look.as_ref().ok().map(|seen| seen.answer.verdict), elapsed);
            match next {
                Next::Again => self.tell(&look, &wait, elapsed)?,
                Next::Done | Next::GaveUp => {}
            }
            if let Ok(seen) = look {
                self.last = Some((seen, elapsed));
            }
            match (next, silence) {
                (Next::Again, _) => {}
                (_, Some(reasons)) => return Err(self.nobody_answered(&reasons).into()),
                (next, None) => return self.conclude(&wait, next == Next::Done),
            }
            tokio::select! {
                biased;
                () = interrupts.next() => return self.interrupted(&wait),
                () = self.clock.sleep(LOOK_EVERY.min(wait.timeout.saturating_sub(self.elapsed()))) => {}
            }
        }
    }

    fn elapsed(&self) -> Duration {
        self.clock.instant().duration_since(self.begun)
    }

    /// One look, through the way that answered last, or through any that answers.
    async fn look(&mut self) -> anyhow::Result<Look> {
        let way = match self.way.take() {
            Some(way) => way,
            None => match self.connect().await? {
                Ok(way) => way,
                Err(reasons) => return Ok(Err(reasons)),
            },
        };
        let sources = sources(&self.settings);
        let facts = way.observer.observe(&Wanted { sources, target: None, every_pair: true }).await;
        if let Some(reason) = Answer::nobody_answers(&facts) {
            // The way is given up: the next look tries them all.
            let server = way.address.unwrap_or_else(|| way.observer.source());
            return Ok(Err(vec![format!("{server}: {reason}")]));
        }
        let addresses = facts.api_servers.known().into_iter().flatten().map(|server| server.address.clone());
        for address in addresses.filter(|address| !address.is_empty()) {
            if !self.known.contains(&address) {
                self.known.push(address);
            }
        }
        let now = self.clock.now();
        let answer = examine(&self.verb.asked(&facts, &self.settings, false, now));
        let name = match &way.address {
            Some(address) => {
                format!("API server {address}, since the server of {} does not answer", way.observer.source())
            }
            None => way.observer.source(),
        };
        self.way = Some(way);
        Ok(Ok(Seen { answer, origin: Origin { kind: "live", name, clock: ClockOrigin::Machine }, now }))
    }

    /// The kubeconfig's server, else the first API server that is known and answers.
    async fn connect(&self) -> anyhow::Result<Result<Way, Vec<String>>> {
        let options = self.common.access();
        let mut reasons = Vec::new();
        let mut failed = |error: ClientError| -> Result<(), CannotAsk> {
            if !error.may_pass() {
                return Err(CannotAsk { cause: error });
            }
            reasons.push(error.to_string());
            Ok(())
        };
        match LiveObserver::connect(&options, Arc::clone(&self.settings), self.clock.clone()).await {
            Ok(observer) => return Ok(Ok(Way { observer, address: None })),
            Err(error) => failed(error)?,
        }
        for address in &self.known {
            match LiveObserver::connect_at(&options, address, Arc::clone(&self.settings), self.clock.clone()).await {
                Ok(observer) => return Ok(Ok(Way { observer, address: Some(address.clone()) })),
                Err(error) => failed(error)?,
            }
        }
        Ok(Err(reasons))
    }

    /// Says on stderr what it waits for, when that changes, and now and then.
    fn tell(&mut self, look: &Look, wait: &Wait, elapsed: Duration) -> std::io::Result<()> {
        let what = match look {
            Ok(seen) => seen
                .answer
                .in_short()
                .unwrap_or_else(|| format!("nothing: all is whole, and must stay so for {} s", wait.settle.as_secs())),
            Err(reasons) => format!("an API server that answers: {}", reasons.join("; ")),
        };
        let again =
            self.told.as_ref().is_none_or(|(last, at)| *last != what || elapsed.saturating_sub(*at) >= TELL_AGAIN);
        if again {
            let seconds = i64::try_from(elapsed.as_secs()).unwrap_or(i64::MAX);
            terminal::talk(&format!("{} waits for {}\n", length(seconds), tame(&what)))?;
            self.told = Some((what, elapsed));
        }
        Ok(())
    }

    /// The answer of the last look.
    fn conclude(&mut self, wait: &Wait, settled: bool) -> anyhow::Result<Exit> {
        let Some(report) = self.report(wait, settled) else { return Ok(Exit::WaitedTooLong) };
        print(&report, self.common)?;
        Ok(match report.verdict {
            Verdict::Clear if !settled => Exit::WaitedTooLong,
            verdict => verdict.into(),
        })
    }

    fn report(&mut self, wait: &Wait, settled: bool) -> Option<PostCheckReport> {
        let (Seen { answer, origin, now }, at) = self.last.take()?;
        let waited = Waited {
            seconds: self.elapsed().as_secs(),
            settle_seconds: wait.settle.as_secs(),
            clear_seconds: wait.clear_since().map(|since| at.saturating_sub(since).as_secs()),
            settled,
        };
        Some(PostCheckReport::new(answer, origin, self.verb.nodes.clone(), waited, now, machine_clock()))
    }

    fn interrupted(&mut self, wait: &Wait) -> anyhow::Result<Exit> {
        terminal::talk("interrupted; the last look follows, where there was one\n")?;
        if let Some(report) = self.report(wait, false) {
            print(&report, self.common)?;
        }
        Ok(Exit::Interrupted)
    }

    /// The time is over, and the last look was not answered.
    fn nobody_answered(&self, reasons: &[String]) -> Failure {
        let before = self.last.as_ref().map_or_else(String::new, |(seen, at)| {
            let ago = self.elapsed().saturating_sub(*at).as_secs();
            let what = seen.answer.in_short().unwrap_or_else(|| "all was whole".to_owned());
            format!("; the last answer was {ago} s ago: {what}")
        });
        let text = format!(
            "no API server answers ({} s): {}{before}\n  what helps: look at k3s or the kube-apiserver on a control-plane node; other addresses to try go into [control_plane] api_servers",
            self.elapsed().as_secs(),
            reasons.join("; "),
        );
        Failure { exit: Exit::WaitedTooLong, text }
    }
}

fn print(report: &PostCheckReport, common: &Common) -> anyhow::Result<()> {
    match common.format {
        Format::Text => Ok(terminal::data(&report::post_check(report, common.paint()))?),
        Format::Markdown => Ok(terminal::data(&report::post_check_markdown(report))?),
        Format::Json => terminal::json(report),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_at_all_looks_once() {
        let rows =
            [("0s", Some(0)), ("0", Some(0)), ("90s", Some(90)), ("10m", Some(600)), ("-5m", None), ("soon", None)];
        for (text, seconds) in rows {
            assert_eq!(length_or_none(text).ok().map(|length| length.as_secs()), seconds, "{text}");
        }
    }
}
