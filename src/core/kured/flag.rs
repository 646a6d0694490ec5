//! The flags of kured: name, type, default, first version, and the value of its Helm chart that sets it.
//!
//! Sources: `cmd/kured/main.go` of each release up to 1.23.0; values.yaml of chart 6.1.0. What the chart has no value for
//! is set under its `extraArgs`; the DaemonSet's name and namespace it sets itself.

use super::version::Version;

crate::api::names! {
    /// A flag of kured 1.23.0.
    Flag, "flag of kured", {
        /// How often it looks; also the time until it tries again.
        Period = "period",
        /// Namespace of the DaemonSet that carries the lock.
        DsNamespace = "ds-namespace",
        /// Name of the DaemonSet that carries the lock.
        DsName = "ds-name",
        /// Key of the annotation with the lock.
        LockAnnotation = "lock-annotation",
        /// Whom it asks for alerts before it takes the lock; empty for nobody.
        PrometheusUrl = "prometheus-url",
        /// Names of alerts that it overlooks.
        AlertFilterRegexp = "alert-filter-regexp",
        /// The file that says that a reboot is wanted.
        RebootSentinel = "reboot-sentinel",
        /// Where it reports to; deprecated.
        SlackHookUrl = "slack-hook-url",
        /// Under which name it reports.
        SlackUsername = "slack-username",
        /// Pods on its node that keep it from rebooting.
        BlockingPodSelector = "blocking-pod-selector",
        /// Where it reports to.
        SlackChannel = "slack-channel",
        /// Days of its window.
        RebootDays = "reboot-days",
        /// Beginning of its window.
        StartTime = "start-time",
        /// End of its window.
        EndTime = "end-time",
        /// Zone of its window.
        TimeZone = "time-zone",
        /// Time after which others may take its lock.
        LockTtl = "lock-ttl",
        /// Text of a report.
        MessageTemplateDrain = "message-template-drain",
        /// Text of a report.
        MessageTemplateReboot = "message-template-reboot",
        /// Whether it marks nodes that want a reboot.
        AnnotateNodes = "annotate-nodes",
        /// Seconds that pods get to end; negative for their own.
        DrainGracePeriod = "drain-grace-period",
        /// Time after which it gives a drain up; 0 for never.
        DrainTimeout = "drain-timeout",
        /// Whether it reboots although its drain failed.
        ForceReboot = "force-reboot",
        /// Time that it keeps the lock after it is back.
        LockReleaseDelay = "lock-release-delay",
        /// Where it reports to.
        NotifyUrl = "notify-url",
        /// Taint of a node that lost the race for the lock.
        PreferNoScheduleTaint = "prefer-no-schedule-taint",
        /// What it runs to reboot.
        RebootCommand = "reboot-command",
        /// A command that says whether a reboot is wanted; the file is then overlooked.
        RebootSentinelCommand = "reboot-sentinel-command",
        /// Seconds in deletion after which it does not wait for a pod.
        SkipWaitForDeleteTimeout = "skip-wait-for-delete-timeout",
        /// Whether pending alerts do not count.
        AlertFiringOnly = "alert-firing-only",
        /// Time between drain and reboot.
        RebootDelay = "reboot-delay",
        /// Format of its log.
        LogFormat = "log-format",
        /// Name of its node.
        NodeId = "node-id",
        /// Labels that it sets before a drain.
        PreRebootNodeLabels = "pre-reboot-node-labels",
        /// Labels that it sets after the return.
        PostRebootNodeLabels = "post-reboot-node-labels",
        /// Text of a report.
        MessageTemplateUncordon = "message-template-uncordon",
        /// Port of its metrics.
        MetricsPort = "metrics-port",
        /// Whether only the alerts that the filter names count.
        AlertFilterMatchOnly = "alert-filter-match-only",
        /// Nodes that may hold the lock at a time.
        Concurrency = "concurrency",
        /// Pods that it drains; empty for all.
        DrainPodSelector = "drain-pod-selector",
        /// Address of its metrics.
        MetricsHost = "metrics-host",
        /// Time between lock and drain.
        DrainDelay = "drain-delay",
        /// How it reboots: command or signal.
        RebootMethod = "reboot-method",
        /// Which signal it sends.
        RebootSignal = "reboot-signal",
    }
}

/// The type of a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `--flag`, `--flag=true`; never takes the next word.
    Bool,
    /// A whole number.
    Int,
    /// A length of time such as 1h30m.
    Duration,
    /// Any text.
    Text,
    /// Texts separated by commas; may be repeated.
    Slice,
    /// One text each time; has no form in the environment since 1.16.2.
    Array,
}

/// What is known of a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    /// Its type.
    pub kind: Kind,
    /// What holds where nobody says anything.
    pub default: &'static str,
    /// The first version that knows it.
    pub since: Version,
    /// The value of the chart; empty where there is none.
    pub helm: &'static str,
}

const fn spec(kind: Kind, default: &'static str, since: (u32, u32, u32), helm: &'static str) -> Spec {
    Spec { kind, default, since: Version::of(since.0, since.1, since.2), helm }
}

impl Flag {
    /// The default of `--period`, in seconds.
    pub const PERIOD_SECONDS: i64 = 3_600;

    /// What is known of it.
    #[must_use]
    pub const fn spec(self) -> Spec {
        match self {
            Self::Period => spec(Kind::Duration, "1h", (1, 0, 0), "configuration.period"),
            Self::DsNamespace => spec(Kind::Text, "kube-system", (1, 0, 0), ""),
            Self::DsName => spec(Kind::Text, "kured", (1, 0, 0), ""),
            Self::LockAnnotation => {
                spec(Kind::Text, "weave.works/kured-node-lock", (1, 0, 0), "configuration.lockAnnotation")
            }
            Self::PrometheusUrl => spec(Kind::Text, "", (1, 0, 0), "configuration.prometheusUrl"),
            Self::AlertFilterRegexp => spec(Kind::Text, "", (1, 0, 0), "configuration.alertFilterRegexp"),
            Self::RebootSentinel => {
                spec(Kind::Text, "/var/run/reboot-required", (1, 0, 0), "configuration.rebootSentinel")
            }
            Self::SlackHookUrl => spec(Kind::Text, "", (1, 0, 0), "configuration.slackHookUrl"),
            Self::SlackUsername => spec(Kind::Text, "kured", (1, 0, 0), "configuration.slackUsername"),
            Self::BlockingPodSelector => spec(Kind::Array, "", (1, 2, 0), "configuration.blockingPodSelector"),
            Self::SlackChannel => spec(Kind::Text, "", (1, 3, 0), "configuration.slackChannel"),
            Self::RebootDays => spec(Kind::Slice, "su,mo,tu,we,th,fr,sa", (1, 3, 0), "configuration.rebootDays"),
            Self::StartTime => spec(Kind::Text, "0:00", (1, 3, 0), "configuration.startTime"),
            Self::EndTime => spec(Kind::Text, "23:59:59", (1, 3, 0), "configuration.endTime"),
            Self::TimeZone => spec(Kind::Text, "UTC", (1, 3, 0), "configuration.timeZone"),
            Self::LockTtl => spec(Kind::Duration, "0", (1, 5, 1), "configuration.lockTtl"),
            Self::MessageTemplateDrain => {
                spec(Kind::Text, "Draining node %s", (1, 6, 0), "configuration.messageTemplateDrain")
            }
            Self::MessageTemplateReboot => {
                spec(Kind::Text, "Rebooting node %s", (1, 6, 0), "configuration.messageTemplateReboot")
            }
            Self::AnnotateNodes => spec(Kind::Bool, "false", (1, 7, 0), "configuration.annotateNodes"),
            Self::DrainGracePeriod => spec(Kind::Int, "-1", (1, 7, 0), "configuration.drainGracePeriod"),
            Self::DrainTimeout => spec(Kind::Duration, "0", (1, 7, 0), "configuration.drainTimeout"),
            Self::ForceReboot => spec(Kind::Bool, "false", (1, 7, 0), "configuration.forceReboot"),
            Self::LockReleaseDelay => spec(Kind::Duration, "0", (1, 7, 0), "configuration.lockReleaseDelay"),
            Self::NotifyUrl => spec(Kind::Text, "", (1, 7, 0), "configuration.notifyUrl"),
            Self::PreferNoScheduleTaint => spec(Kind::Text, "", (1, 7, 0), "configuration.preferNoScheduleTaint"),
            Self::RebootCommand => spec(Kind::Text, "/bin/systemctl reboot", (1, 7, 0), "configuration.rebootCommand"),
            Self::RebootSentinelCommand => spec(Kind::Text, "", (1, 7, 0), "configuration.rebootSentinelCommand"),
            Self::SkipWaitForDeleteTimeout => spec(Kind::Int, "0", (1, 7, 0), "configuration.skipWaitForDeleteTimeout"),
            Self::AlertFiringOnly => spec(Kind::Bool, "false", (1, 8, 0), "configuration.alertFiringOnly"),
            Self::RebootDelay => spec(Kind::Duration, "0", (1, 8, 0), "configuration.rebootDelay"),
            Self::LogFormat => spec(Kind::Text, "text", (1, 8, 2), "configuration.logFormat"),
            Self::NodeId => spec(Kind::Text, "", (1, 9, 0), ""),
            Self::PreRebootNodeLabels => spec(Kind::Slice, "", (1, 10, 0), "configuration.preRebootNodeLabels"),
            Self::PostRebootNodeLabels => spec(Kind::Slice, "", (1, 10, 0), "configuration.postRebootNodeLabels"),
            Self::MessageTemplateUncordon => spec(
                Kind::Text,
                "Node %s rebooted & uncordoned successfully!",
                (1, 10, 1),
                "configuration.messageTemplateUncordon",
            ),
            Self::MetricsPort => spec(Kind::Int, "8080", (1, 13, 2), "configuration.metricsPort"),
            Self::AlertFilterMatchOnly => spec(Kind::Bool, "false", (1, 14, 0), "configuration.alertFilterMatchOnly"),
            Self::Concurrency => spec(Kind::Int, "1", (1, 14, 0), "configuration.concurrency"),
            Self::DrainPodSelector => spec(Kind::Text, "", (1, 14, 0), "configuration.drainPodSelector"),
            Self::MetricsHost => spec(Kind::Text, "", (1, 14, 0), "configuration.metricsHost"),
            Self::DrainDelay => spec(Kind::Duration, "0", (1, 15, 0), "configuration.drainDelay"),
            Self::RebootMethod => spec(Kind::Text, "command", (1, 15, 0), "configuration.rebootMethod"),
            Self::RebootSignal => spec(Kind::Int, "39", (1, 15, 0), "configuration.rebootSignal"),
        }
    }

    /// Its variable: `KURED_PROMETHEUS_URL`.
    #[must_use]
    pub fn variable(self) -> String {
        format!("KURED_{}", self.as_str().to_uppercase().replace('-', "_"))
    }

    /// Where to set it, for people: `--period (chart: configuration.period)`.
    #[must_use]
    pub fn told(self) -> String {
        match self.spec().helm {
            "" if matches!(self, Self::DsName | Self::DsNamespace | Self::NodeId) => format!("--{self}"),
            "" => format!("--{self} (chart: extraArgs.{self})"),
            helm => format!("--{self} (chart: {helm})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_told_with_its_variable_and_its_place_in_the_chart() {
        assert_eq!(Flag::PrometheusUrl.variable(), "KURED_PROMETHEUS_URL");
        assert_eq!(Flag::PrometheusUrl.told(), "--prometheus-url (chart: configuration.prometheusUrl)");
        assert_eq!(Flag::NodeId.told(), "--node-id");
        assert_eq!(Flag::ALL.len(), 43);
    }

    #[test]
    fn the_chart_spells_a_flag_in_camel_case() {
        for flag in Flag::ALL {
            let Some(value) = flag.spec().helm.strip_prefix("configuration.") else { continue };
            let kebab: String = value
                .chars()
                .flat_map(|c| if c.is_ascii_uppercase() { vec!['-', c.to_ascii_lowercase()] } else { vec![c] })
                .collect();
            assert_eq!(kebab, flag.as_str());
        }
    }
}
