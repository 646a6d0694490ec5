//! The command line: parse, run a verb, answer with an exit code. Data goes to stdout, talk to stderr.

mod ask;
mod check;
mod claim;
mod cluster;
mod config;
mod crds;
mod demo;
mod doctor;
mod dump;
mod exit;
mod explain;
mod follow;
mod halt;
mod history;
mod hold;
mod input;
mod interrupt;
mod live;
mod lock;
mod logging;
mod matrix;
mod plan;
mod post_check;
mod reboot;
mod report;
mod run;
mod serve;
mod show;
mod sim;
mod status;
mod terminal;
#[cfg(test)]
mod tests;
mod time;
mod who_acts;
mod windows;
mod words;

use std::path::PathBuf;

use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use maint_core::config::Settings;
use maint_engine::client::AccessOptions;
use maint_engine::probe::ProbeIdentity;

pub use exit::{Exit, Failure};

/// Makes unattended node reboots of a Kubernetes cluster safe: asks named gates, waits, proves the return.
#[derive(Debug, Parser)]
#[command(name = "maint", version, max_term_width = 120, after_help = exit::HELP)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    verb: Verb,
}

/// What every verb knows.
#[derive(Debug, Args)]
pub struct Common {
    /// Context of the kubeconfig
    #[arg(long, global = true, value_name = "NAME", help_heading = "Common options")]
    pub context: Option<String>,
    /// Path of the kubeconfig
    #[arg(long, global = true, value_name = "PATH", help_heading = "Common options")]
    pub kubeconfig: Option<PathBuf>,
    /// maint's own namespace, instead of the configured one
    #[arg(short, long, global = true, value_name = "NAME", help_heading = "Common options")]
    pub namespace: Option<String>,
    /// Ask for the matrix as this service account of maint's namespace, by short-lived tokens; else as yourself
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        env = "MAINT_PROBE_ACCOUNT",
        help_heading = "Common options",
        hide_short_help = true
    )]
    pub probe_account: Option<String>,
    /// Ask for the matrix with the token in this file
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        env = "MAINT_PROBE_TOKEN_FILE",
        help_heading = "Common options",
        hide_short_help = true,
        conflicts_with = "probe_account"
    )]
    pub probe_token_file: Option<PathBuf>,
    /// Configuration file; the built-in defaults if there is none
    #[arg(long, global = true, value_name = "PATH", env = "MAINT_CONFIG", help_heading = "Common options")]
    pub config: Option<PathBuf>,
    /// Format of what is printed to stdout
    #[arg(
        id = "output",
        short = 'o',
        long = "output",
        global = true,
        value_enum,
        default_value_t = Format::Text,
        value_name = "OUTPUT",
        help_heading = "Common options"
    )]
    format: Format,
    /// The same without what only one verb has; set by [`Cli::checked`].
    #[arg(skip = Output::Text)]
    pub output: Output,
    /// When to use colours
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN", help_heading = "Common options")]
    pub color: Color,
    /// OK, WARN, BLOCK and UNK instead of marks
    #[arg(long, global = true, help_heading = "Common options")]
    pub ascii: bool,
    /// Tell more on stderr; twice for debugging
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = "Common options")]
    pub verbose: u8,
}

/// Format of the data as it can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For programs: one document with apiVersion maint.dev/v1
    Json,
    /// For a ticket or a chat; post-check only
    Markdown,
}

/// Format of the data that every verb has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set or TERM is dumb
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Ask all gates: may this node, or any node, be touched now? Changes nothing
    Check(check::Check),
    /// What would be done with a node, when and in which steps, or which node comes next. Changes nothing
    Plan(plan::Plan),
    /// Look whether what maint depends on is set up right: kured, its lock, what was left behind. Changes nothing
    Doctor(doctor::Doctor),
    /// Show kured's lock, or take somebody out of it
    #[command(subcommand)]
    Lock(lock::Lock),
    /// Ask every API server for every kubelet by a fresh connection. Changes nothing
    Matrix(matrix::Matrix),
    /// After power-on: wait until the cluster is whole, prove it, name what is not. Changes nothing
    PostCheck(post_check::PostCheck),
    /// Run the service: stand for the Lease, drive runs while leading
    Serve(serve::Serve),
    /// Ask for a reboot of a node and watch it to its proof
    Reboot(reboot::Reboot),
    /// Make a node free, run a command once, have the node proven
    Run(run::Run),
    /// Say that you have acted on the node
    Done(words::Done),
    /// Let a held run go on: verify again now
    Resume(words::Resume),
    /// Call a run off
    Cancel(words::Cancel),
    /// The cluster on one screen: halt, leader, nodes, runs
    Status,
    /// The whole story of a record
    Show(show::Show),
    /// The last records, newest first
    History(history::History),
    /// What came of a window: who was maintained, who waits and why
    Report(report::Report),
    /// Whether unattended runs may start now, and when next. Asks no cluster
    Windows(windows::Windows),
    /// Let everything wait
    Halt(halt::Halt),
    /// End the halt
    Unhalt,
    /// Keep maint off a node
    Hold(hold::Hold),
    /// End a hold
    Release(hold::Release),
    /// Print the CustomResourceDefinitions, for kubectl apply -f -
    Crds,
    /// Explain a reason or a gate; without a name, list the gates
    Explain(explain::Explain),
    /// Look at the configuration
    #[command(subcommand)]
    Config(config::Config),
    /// Play one night of a cluster in memory and tell it. Asks no cluster
    Demo(demo::Demo),
    /// Play many nights of a cluster in memory, with all that can go wrong, and look what breaks. Asks no cluster
    Sim(sim::Sim),
}

/// Runs the command line of this process.
pub async fn run() -> Exit {
    let cli = match Cli::try_parse().and_then(Cli::checked) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors and go to stdout; the rest is a usage error on stderr.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Fine };
            return if error.print().is_ok() { exit } else { Exit::Error };
        }
    };
    let talker = match cli.verb {
        Verb::Serve(_) => logging::Talker::Service,
        Verb::Demo(_) => logging::Talker::Demo,
        Verb::Sim(_) => logging::Talker::Sim,
        _ => logging::Talker::Verb,
    };
    logging::start(cli.common.verbose, talker);
    let done = match &cli.verb {
        Verb::Check(check) => check.run(&cli.common).await,
        Verb::Plan(plan) => Box::pin(plan.run(&cli.common)).await,
        Verb::Doctor(doctor) => doctor.run(&cli.common).await,
        Verb::Lock(lock) => lock.run(&cli.common).await,
        Verb::Matrix(matrix) => Box::pin(matrix.run(&cli.common)).await,
        Verb::PostCheck(check) => Box::pin(check.run(&cli.common)).await,
        Verb::Serve(serve) => serve.run(&cli.common).await,
        Verb::Reboot(reboot) => Box::pin(reboot.run(&cli.common)).await,
        Verb::Run(run) => Box::pin(run.run(&cli.common)).await,
        Verb::Done(done) => done.run(&cli.common).await,
        Verb::Resume(resume) => resume.run(&cli.common).await,
        Verb::Cancel(cancel) => cancel.run(&cli.common).await,
        Verb::Status => status::run(&cli.common).await,
        Verb::Show(show) => show.run(&cli.common).await,
        Verb::History(history) => history.run(&cli.common).await,
        Verb::Report(report) => report.run(&cli.common).await,
        Verb::Windows(windows) => windows.run(&cli.common),
        Verb::Halt(halt) => halt.run(&cli.common).await,
        Verb::Unhalt => halt::unhalt(&cli.common).await,
        Verb::Hold(hold) => hold.run(&cli.common).await,
        Verb::Release(release) => release.run(&cli.common).await,
        Verb::Crds => crds::run(&cli.common),
        Verb::Explain(explain) => explain.run(&cli.common),
        Verb::Config(config) => config.run(&cli.common),
        Verb::Demo(demo) => demo.run(&cli.common).await,
        Verb::Sim(sim) => sim.run(&cli.common).await,
    };
    done.unwrap_or_else(|error| exit::tell(&error))
}

impl Cli {
    /// What clap cannot check by itself.
    ///
    /// # Errors
    /// If a verb is asked for a format that it has not.
    fn checked(mut self) -> Result<Self, clap::Error> {
        if self.common.format == Format::Markdown && !matches!(self.verb, Verb::PostCheck(_)) {
            let text = "-o markdown is for post-check only; the others have text and json";
            return Err(Self::command().error(clap::error::ErrorKind::InvalidValue, text));
        }
        self.common.output = if self.common.format == Format::Json { Output::Json } else { Output::Text };
        Ok(self)
    }
}

impl Common {
    /// Which cluster and which configuration, as words for another verb, each with a space before it.
    fn arguments(&self) -> String {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let words = [
            ("--context", self.context.clone()),
            ("--kubeconfig", path(&self.kubeconfig)),
            ("--namespace", self.namespace.clone()),
            ("--config", path(&self.config)),
        ];
        let said = words.into_iter().filter_map(|(flag, word)| Some(format!(" {flag} {}", input::quoted(&word?))));
        said.collect()
    }

    /// Which cluster.
    fn access(&self) -> AccessOptions {
        let probe = match (&self.probe_account, &self.probe_token_file) {
            (Some(account), _) => ProbeIdentity::Account(account.clone()),
            (None, Some(path)) => ProbeIdentity::TokenFile(path.clone()),
            (None, None) => ProbeIdentity::Own,
        };
        AccessOptions { context: self.context.clone(), kubeconfig: self.kubeconfig.clone(), probe }
    }

    /// The settings in force: of the file, or the defaults; with `--namespace` on top.
    ///
    /// # Errors
    /// If the file cannot be read, or with all that is wrong in it.
    fn settings(&self) -> anyhow::Result<Settings> {
        let mut settings = match &self.config {
            None => Settings::default(),
            Some(path) => config::read(path, self)?,
        };
        if let Some(namespace) = &self.namespace {
            settings.namespace.clone_from(namespace);
        }
        Ok(settings)
    }
}
