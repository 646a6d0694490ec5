//! Talk of the program itself: to stderr, for people on a terminal, as JSON lines otherwise.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Starts it. Quiet by default, since the answer of a verb is on stdout: `-v` informs, `-vv` debugs.
pub fn start(verbose: u8) {
    let level = match verbose {
        0 => "warn",
        1 => "info",
        _ => "debug",
    };
    // The scheduler of ticks tells what it does at info. The client's builder logs whole certificates chains and headers at debug.
    let filter = EnvFilter::new(format!("{level},kube_client::client::builder=off,tokio_cron_scheduler=warn"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second start, as in tests, changes nothing.
    let _ = if std::io::stderr().is_terminal() { builder.try_init() } else { builder.json().try_init() };
}
