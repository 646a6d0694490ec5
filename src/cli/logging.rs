//! Talk of the program itself: to stderr; the service writes JSON lines where nobody looks on, a verb always speaks to
//! people.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Who talks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Talker {
    /// A verb.
    Verb,
    /// The service.
    Service,
    /// The service of the demo: what it warns of belongs to the night, and is told with it.
    Demo,
    /// Services of many nights at once: what they say is nobody's news.
    Sim,
}

/// Starts it. Quiet by default, since the answer of a verb is on stdout: `-v` informs, `-vv` debugs.
pub fn start(verbose: u8, talker: Talker) {
    let level = match verbose {
        0 if talker == Talker::Sim => "off",
        0 if talker == Talker::Demo => "error",
        0 => "warn",
        1 => "info",
        _ => "debug",
    };
    // The scheduler of ticks tells what it does at info. The client's builder logs whole certificates chains and headers at debug.
    let filter = EnvFilter::new(format!("{level},kube_client::client::builder=off,tokio_cron_scheduler=warn"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // A log that cannot be written (a full disk) is said on stderr otherwise, which panics where that fails, too.
        .log_internal_errors(false);
    // A second start, as in tests, changes nothing.
    let _ = match (talker == Talker::Service, std::io::stderr().is_terminal()) {
        (true, true) => builder.try_init(),
        (true, false) => builder.json().try_init(),
        (false, colours) => builder.with_ansi(colours).without_time().with_target(false).try_init(),
    };
}
