//! kured as nights have it, rightly configured, and the settings of the service beside it.

use std::time::Duration;

use maint_core::config::{Mode, Settings};
use serde_json::Value;

use crate::doubles::kured::objects::{self, Form};
use crate::doubles::kured::settings::Settings as Flags;
use crate::invariants::views::KURED_LOCK;
use crate::store::http::Inner;
use crate::store::{ObjectKey, object};

/// Namespace of kured.
const NAMESPACE: &str = "kube-system";
/// Host and path, as `--prometheus-url` has them before the node.
const URL: &str = "http://maint.maint/kured/";
/// When the window opens and closes.
pub(super) const WINDOW: (&str, &str) = ("02:04", "02:30");

/// How long a run takes as a rule.
const EXPECTED_SECONDS: i64 = 300;

/// One minute between two looks, a drain that ends, and the question to maint.
pub(super) fn flags() -> Flags {
    Flags {
        period: Duration::from_secs(60),
        drain_timeout: Duration::from_secs(60),
        annotate_nodes: true,
        prometheus_url: Some(format!("{URL}{{node}}")),
        ..Flags::default()
    }
}

/// Where the lock is.
pub(super) fn daemon_set_key() -> ObjectKey {
    ObjectKey::new("apps", "daemonsets", NAMESPACE, objects::NAME)
}

/// The DaemonSet with the flags that the processes have.
pub(super) fn daemon_set(flags: &Flags) -> Value {
    let mut words = vec![
        format!("--period={}s", flags.period.as_secs()),
        format!("--drain-timeout={}s", flags.drain_timeout.as_secs()),
        format!("--concurrency={}", flags.concurrency),
        format!("--prometheus-url={URL}$(KURED_NODE_ID)"),
    ];
    if flags.annotate_nodes {
        words.push("--annotate-nodes".to_owned());
    }
    if !flags.lock_ttl.is_zero() {
        words.push(format!("--lock-ttl={}s", flags.lock_ttl.as_secs()));
    }
    if !flags.drain_delay.is_zero() {
        words.push(format!("--drain-delay={}s", flags.drain_delay.as_secs()));
    }
    let version = format!("1.{}.{}", flags.version.minor, flags.version.patch);
    let mut set = objects::daemonset(Form::Manifest, NAMESPACE, &version, &words);
    // An API server puts this on every DaemonSet (k8s.io/kubernetes pkg/apis/apps/v1/conversion.go), so that there always
    // is a map of annotations.
    object::annotate(&mut set, "deprecated.daemonset.template.generation", "1");
    set
}

/// Mode auto, a window on Mondays, as the day of every night is, for all three nodes.
pub(super) fn settings() -> Settings {
    let (start, end) = WINDOW;
    let text = format!(
        "expected_duration_seconds = {EXPECTED_SECONDS}\nwindows = [{{ name = \"night\", days = [\"mon\"], start = \"{start}\", end = \"{end}\", zone = \"UTC\" }}]"
    );
    let mut settings = super::super::cluster::quick(Settings::default());
    settings.mode = Mode::Auto;
    // A window that cannot be read is none, and the scenario does not end as it must.
    settings.windows = Settings::parse(&text, "scenario").map(|parsed| parsed.windows).unwrap_or_default();
    settings.max_nodes_per_window = 3;
    settings.expected_duration_seconds = EXPECTED_SECONDS;
    // Three periods of kured, and one more for a look that comes late.
    settings.run.handover_timeout_seconds = 240;
    settings.run.return_timeout_seconds = 300;
    settings
}

/// Writes kured's lock before the night begins.
pub(crate) fn hold_lock(inner: &mut Inner, text: &str) {
    inner.store.edit(&daemon_set_key(), |set| object::annotate(set, KURED_LOCK, text));
}
