//! kured's flags and environment.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Parser as _;
use maint_sim::doubles::kured::settings::{AlertFilter, Range, Settings, Version};
use maint_sim::doubles::kured::window::Window;
use regex::Regex;

/// As they are written; names and defaults are those of 1.23.0.
#[derive(clap::Parser, Debug)]
#[command(name = "kured", disable_help_flag = true, args_override_self = true)]
struct Words {
    #[arg(long, default_value = "")]
    node_id: String,
    #[arg(long, default_value = "kube-system")]
    ds_namespace: String,
    #[arg(long, default_value = "kured")]
    ds_name: String,
    #[arg(long, default_value = "weave.works/kured-node-lock")]
    lock_annotation: String,
    #[arg(long, default_value = "1")]
    concurrency: usize,
    #[arg(long, default_value = "0", value_parser = duration)]
    lock_ttl: Duration,
    #[arg(long, default_value = "0", value_parser = duration)]
    lock_release_delay: Duration,
    #[arg(long, default_value = "0", value_parser = duration)]
    drain_delay: Duration,
    #[arg(long, default_value = "0", value_parser = duration)]
    drain_timeout: Duration,
    #[arg(long, default_value = "-1", allow_negative_numbers = true)]
    drain_grace_period: i64,
    #[arg(long, default_value = "")]
    drain_pod_selector: String,
    #[arg(long, default_value = "0", value_parser = duration)]
    reboot_delay: Duration,
    #[arg(long, default_value = "")]
    prefer_no_schedule_taint: String,
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    annotate_nodes: String,
    #[arg(long, default_value = "1h", value_parser = duration)]
    period: Duration,
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    force_reboot: String,
    #[arg(long, value_delimiter = ',', default_value = "sun,mon,tue,wed,thu,fri,sat")]
    reboot_days: Vec<String>,
    #[arg(long, default_value = "0:00")]
    start_time: String,
    #[arg(long, default_value = "23:59:59")]
    end_time: String,
    #[arg(long, default_value = "UTC")]
    time_zone: String,
    #[arg(long, default_value = "")]
    prometheus_url: String,
    #[arg(long, default_value = "")]
    alert_filter_regexp: String,
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    alert_filter_match_only: String,
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    alert_firing_only: String,
    #[arg(long)]
    blocking_pod_selector: Vec<String>,
    #[arg(long, value_delimiter = ',')]
    pre_reboot_node_labels: Vec<String>,
    #[arg(long, value_delimiter = ',')]
    post_reboot_node_labels: Vec<String>,
    #[arg(long, default_value = "/var/run/reboot-required")]
    reboot_sentinel: PathBuf,
    #[arg(long, default_value = "")]
    reboot_sentinel_command: String,
    /// There is no default here: the real one's would reach for the host's init.
    #[arg(long)]
    reboot_command: String,
    #[arg(long, default_value = "")]
    metrics_host: String,
    #[arg(long, default_value = "8080")]
    metrics_port: u16,
    // The double's own.
    /// Folder with `token` and `ca.crt`; the real one's path is fixed.
    #[arg(long, default_value = "/var/run/secrets/kubernetes.io/serviceaccount")]
    credentials: PathBuf,
    /// The release that is played.
    #[arg(long, default_value = "1.23.0")]
    play_version: String,
    /// By how much the start-up phase is stretched; 1 is the real 30 to 90 s.
    #[arg(long, default_value = "1")]
    time_factor: f64,
}

/// What the process knows of its surroundings.
#[derive(Debug, Clone)]
pub struct Flags {
    pub settings: Settings,
    pub node_id: String,
    pub credentials: PathBuf,
    pub metrics_host: String,
    pub metrics_port: u16,
    sentinel: PathBuf,
    sentinel_command: Vec<String>,
    reboot_command: Vec<String>,
}

impl Flags {
    /// From a command line and the environment. `KURED_<FLAG>` wins over flags since 1.16.2 and loses before.
    pub fn parse(words: Vec<String>) -> Result<Self> {
        let version = words.iter().find_map(|word| word.strip_prefix("--play-version=")).unwrap_or("1.23.0");
        let range = Version::parse(version).and_then(Version::range);
        let mut environment: Vec<String> = Vec::new();
        for (name, value) in std::env::vars() {
            let Some(flag) = name.strip_prefix("KURED_") else { continue };
            let flag = flag.to_ascii_lowercase().replace('_', "-");
            // A flag of many values has no such form in the newer ones.
            if flag != "blocking-pod-selector" || range != Some(Range::Current) {
                environment.push(format!("--{flag}={value}"));
            }
        }
        let program = std::iter::once("kured".to_string());
        let all: Vec<String> = match range {
            Some(Range::Current) => program.chain(words).chain(environment).collect(),
            _ => program.chain(environment).chain(words).collect(),
        };
        Self::of(Words::try_parse_from(all)?)
    }

    fn of(words: Words) -> Result<Self> {
        let version = Version::parse(&words.play_version).context("--play-version is no release")?;
        let regexp = match words.alert_filter_regexp.as_str() {
            "" => None,
            text => Some(Regex::new(text).context("--alert-filter-regexp")?),
        };
        if !(words.time_factor > 0.0 && words.time_factor <= 1.0) {
            bail!("--time-factor {} is not above 0 and at most 1", words.time_factor);
        }
        let alerts = AlertFilter {
            regexp,
            match_only: boolean(&words.alert_filter_match_only)?,
            firing_only: boolean(&words.alert_firing_only)?,
        };
        let settings = Settings {
            version,
            ds_namespace: words.ds_namespace,
            ds_name: words.ds_name,
            lock_annotation: words.lock_annotation,
            concurrency: words.concurrency,
            lock_ttl: words.lock_ttl,
            lock_release_delay: words.lock_release_delay,
            drain_delay: words.drain_delay,
            drain_timeout: words.drain_timeout,
            drain_grace: words.drain_grace_period,
            drain_pod_selector: words.drain_pod_selector,
            reboot_delay: words.reboot_delay,
            taint: words.prefer_no_schedule_taint,
            annotate_nodes: boolean(&words.annotate_nodes)?,
            period: words.period,
            force_reboot: boolean(&words.force_reboot)?,
            window: Window::parse(&words.reboot_days, &words.start_time, &words.end_time, &words.time_zone)
                .context("Failed to build time window")?,
            prometheus_url: Some(words.prometheus_url).filter(|url| !url.is_empty()),
            alerts,
            pod_selectors: words.blocking_pod_selector,
            pre_labels: labels(&words.pre_reboot_node_labels)?,
            post_labels: labels(&words.post_reboot_node_labels)?,
            startup_period: Duration::from_secs(60).mul_f64(words.time_factor),
        };
        Ok(Self {
            settings,
            node_id: words.node_id,
            credentials: words.credentials,
            metrics_host: words.metrics_host,
            metrics_port: words.metrics_port,
            sentinel: words.reboot_sentinel,
            sentinel_command: split(&words.reboot_sentinel_command),
            reboot_command: split(&words.reboot_command),
        })
    }

    /// Whether the sentinel is there; with a command only its end counts, and a command that cannot run is a no.
    pub async fn is_required(&self) -> bool {
        if self.sentinel_command.is_empty() {
            return tokio::fs::metadata(&self.sentinel).await.is_ok();
        }
        run(&self.sentinel_command).await.is_ok()
    }

    /// Runs the reboot command, in place and not by nsenter.
    pub async fn reboot(&self) -> Result<(), String> {
        run(&self.reboot_command).await
    }
}

async fn run(words: &[String]) -> Result<(), String> {
    let Some((program, arguments)) = words.split_first() else { return Err("no command".to_string()) };
    let status = tokio::process::Command::new(program).args(arguments).status().await;
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("exit status {}", status.code().unwrap_or(-1))),
        Err(error) => Err(error.to_string()),
    }
}

/// Words without quoting, which no command of the tests needs.
fn split(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_string).collect()
}

fn labels(words: &[String]) -> Result<Vec<(String, String)>> {
    let pair = |word: &String| {
        word.split_once('=').map(|(key, value)| (key.to_string(), value.to_string())).context("a label without `=`")
    };
    words.iter().map(pair).collect()
}

fn boolean(text: &str) -> Result<bool> {
    match text {
        "true" | "1" | "t" | "T" | "TRUE" | "True" => Ok(true),
        "false" | "0" | "f" | "F" | "FALSE" | "False" => Ok(false),
        other => bail!("invalid boolean value {other:?}"),
    }
}

/// Go's durations: `1h30m`, `1.5s`, `200ms`, and 0 alone.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("time: invalid duration {text:?}");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let (mut rest, mut total) = (text, Duration::ZERO);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let number: f64 = rest[..end].parse().map_err(|_| wrong())?;
        rest = &rest[end..];
        let end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return Err(wrong()),
        };
        rest = &rest[end..];
        total += Duration::try_from_secs_f64(number * unit).map_err(|_| wrong())?;
    }
    if text.is_empty() { Err(wrong()) } else { Ok(total) }
}
