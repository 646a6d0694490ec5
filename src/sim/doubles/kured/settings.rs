//! kured's flags and versions, as far as they change what it does.

use std::time::Duration;

use regex::Regex;

use super::window::Window;

/// A release of kured, `1.minor.patch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The second number.
    pub minor: u32,
    /// The third number.
    pub patch: u32,
}

impl Version {
    /// The newest one whose process was measured.
    pub const MEASURED: Self = Self::new(23, 0);

    /// `1.minor.patch`
    #[must_use]
    pub const fn new(minor: u32, patch: u32) -> Self {
        Self { minor, patch }
    }

    /// From `1.23.0`; none for what is no release of the first major version.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (minor, patch) = text.strip_prefix("1.")?.split_once('.')?;
        Some(Self::new(minor.parse().ok()?, patch.parse().ok()?))
    }

    /// Which of the loops it runs. None before 1.10, which nobody played.
    #[must_use]
    pub fn range(self) -> Option<Range> {
        match (self.minor, self.patch) {
            (0..=9, _) => None,
            (10..=12, _) => Some(Range::BlockersFirst),
            (13, _) => Some(Range::LockFirst),
            (14 | 15, _) | (16, 0..=1) => Some(Range::FatalLock),
            _ => Some(Range::Current),
        }
    }
}

/// Releases with the same loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Range {
    /// 1.10.0 to 1.12.2: blockers, node, annotations, lock. Errors of the lock end the process.
    BlockersFirst,
    /// 1.13.0 to 1.13.2: node, annotations, lock, blockers: a blocked node keeps the lock (kured #792).
    LockFirst,
    /// 1.14.0 to 1.16.1: node, annotations, blockers, lock. Errors of the lock end the process; the start-up of the
    /// multi lock forgets whether the node was cordoned before.
    FatalLock,
    /// 1.16.2 to 1.23.0: the same order; errors of the lock are logged; the release delay lies in the release, so it
    /// also delays the uncordon after a failed drain (kured #1129).
    Current,
}

/// Which alerts count.
#[derive(Debug, Clone, Default)]
pub struct AlertFilter {
    /// `--alert-filter-regexp`: names that it finds do not block.
    pub regexp: Option<Regex>,
    /// `--alert-filter-match-only`: only names that it finds block.
    pub match_only: bool,
    /// `--alert-firing-only`: pending ones do not block.
    pub firing_only: bool,
}

/// kured's flags. Defaults are those of 1.23.0. Notifications and `--skip-wait-for-delete-timeout` are not played.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Which release is played.
    pub version: Version,
    /// `--ds-namespace`
    pub ds_namespace: String,
    /// `--ds-name`
    pub ds_name: String,
    /// `--lock-annotation`
    pub lock_annotation: String,
    /// `--concurrency` (1.14 and newer): 1 is the single lock.
    pub concurrency: usize,
    /// `--lock-ttl`; zero never expires.
    pub lock_ttl: Duration,
    /// `--lock-release-delay`
    pub lock_release_delay: Duration,
    /// `--drain-delay` (1.15 and newer)
    pub drain_delay: Duration,
    /// `--drain-timeout`; zero waits for ever.
    pub drain_timeout: Duration,
    /// `--drain-grace-period` in seconds; negative is the pod's own.
    pub drain_grace: i64,
    /// `--drain-pod-selector` (1.14 and newer)
    pub drain_pod_selector: String,
    /// `--reboot-delay`
    pub reboot_delay: Duration,
    /// `--prefer-no-schedule-taint`; empty is no taint.
    pub taint: String,
    /// `--annotate-nodes`
    pub annotate_nodes: bool,
    /// `--period`
    pub period: Duration,
    /// `--force-reboot`: a failed drain does not stop it.
    pub force_reboot: bool,
    /// `--reboot-days`, `--start-time`, `--end-time`, `--time-zone`
    pub window: Window,
    /// `--prometheus-url` as the process gets it: the node's name is in it already.
    pub prometheus_url: Option<String>,
    /// The three alert flags.
    pub alerts: AlertFilter,
    /// `--blocking-pod-selector`
    pub pod_selectors: Vec<String>,
    /// `--pre-reboot-node-labels`
    pub pre_labels: Vec<(String, String)>,
    /// `--post-reboot-node-labels`
    pub post_labels: Vec<(String, String)>,
    /// Period of the start-up phase. One minute, no flag; shorter only in tests that would wait too long.
    pub startup_period: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            version: Version::MEASURED,
            ds_namespace: "kube-system".to_owned(),
            ds_name: "kured".to_owned(),
            lock_annotation: "weave.works/kured-node-lock".to_owned(),
            concurrency: 1,
            lock_ttl: Duration::ZERO,
            lock_release_delay: Duration::ZERO,
            drain_delay: Duration::ZERO,
            drain_timeout: Duration::ZERO,
            drain_grace: -1,
            drain_pod_selector: String::new(),
            reboot_delay: Duration::ZERO,
            taint: String::new(),
            annotate_nodes: false,
            period: Duration::from_secs(3600),
            force_reboot: false,
            window: Window::default(),
            prometheus_url: None,
            alerts: AlertFilter::default(),
            pod_selectors: Vec::new(),
            pre_labels: Vec::new(),
            post_labels: Vec::new(),
            startup_period: Duration::from_secs(60),
        }
    }
}

impl Settings {
    /// The loop that this version runs; the current one for a version that nobody played, see [`Self::refused`].
    #[must_use]
    pub fn range(&self) -> Range {
        self.version.range().unwrap_or(Range::Current)
    }

    /// Whether the lock is a list.
    #[must_use]
    pub const fn is_multi(&self) -> bool {
        self.concurrency > 1
    }

    /// Why a process of this version would not start with these flags.
    #[must_use]
    pub fn refused(&self) -> Option<String> {
        if self.version.range().is_none() {
            return Some(format!("kured 1.{}.{} is not played", self.version.minor, self.version.patch));
        }
        let since = [
            (self.concurrency > 1, 14, "concurrency"),
            (self.alerts.match_only, 14, "alert-filter-match-only"),
            (!self.drain_pod_selector.is_empty(), 14, "drain-pod-selector"),
            (!self.drain_delay.is_zero(), 15, "drain-delay"),
        ];
        let unknown = since.iter().find(|(used, minor, _)| *used && self.version.minor < *minor);
        unknown.map(|(_, _, flag)| format!("unknown flag: --{flag}"))
    }

    /// Whether the retry of a refused eviction waits: 1.22.0 to 1.23.0 leave kubectl's delay unset and ask again at
    /// once (measured on 1.23.0).
    #[must_use]
    pub const fn eviction_retry(&self) -> Duration {
        if self.version.minor >= 22 { Duration::ZERO } else { Duration::from_secs(5) }
    }
}
