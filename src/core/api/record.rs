//! The records: `Maintenance` and `MaintenanceReport` (`maint.dev/v1alpha1`).
//!
//! Flat structs and plain texts: a schema is generated from them, and internally tagged enums break that. Texts that
//! come from an enum of `api` are parsed where they are used; an unknown one never passes for a known one.

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What somebody wants: one maintenance of one node.
#[derive(CustomResource, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "maint.dev",
    version = "v1alpha1",
    kind = "Maintenance",
    plural = "maintenances",
    shortname = "mnt",
    status = "MaintenanceStatus",
    selectable = ".spec.nodeName",
    selectable = ".status.phase",
    printcolumn = r#"{"name":"Node","type":"string","jsonPath":".spec.nodeName"}"#,
    printcolumn = r#"{"name":"Scope","type":"string","jsonPath":".spec.scope"}"#,
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Outcome","type":"string","jsonPath":".status.outcome"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.message","priority":1}"#,
    derive = "PartialEq",
    derive = "Default",
    crates(
        kube_core = "::kube_core",
        k8s_openapi = "::k8s_openapi",
        schemars = "::schemars",
        serde = "::serde",
        serde_json = "::serde_json"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceSpec {
    /// The node.
    pub node_name: String,
    /// Why: a scope of the configuration.
    pub scope: String,
    /// Who makes the node go down: `kured`, `pod` or `external`.
    pub action: String,
    /// `manual` or `unattended`.
    pub trigger: String,
    /// Who asked, as far as known.
    #[serde(default)]
    pub requested_by: String,
    /// Why, in the words of who asked.
    #[serde(default)]
    pub reason: String,
    /// The boot that a wish is about: it ends when the node has another one.
    #[serde(rename = "bootID", default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// A stronger strategy than the scope's, if a person chose one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// With action `external`: a program waits to claim the command; otherwise a person acts and says `done`.
    #[serde(default)]
    pub command_waits: bool,
    /// Seconds in which it must start; a manual record ends Cancelled after them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_timeout_seconds: Option<i64>,
    /// Gates that a person waives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<Override>,
    /// A person's word, see [`Word`]; the same holds for the four below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<Word>,
    /// Verify again now, go on when green, or (`accept`) as if green.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<Word>,
    /// Call it off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<Word>,
    /// A program took the command; it runs at most once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed: Option<Word>,
    /// The external action is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_done: Option<Word>,
    /// Name of a newer record for the node that takes this one's place; a pending record then ends Cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
}

/// A gate that a person waives, and why.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Override {
    /// Id of the gate.
    pub gate: String,
    /// Why.
    pub reason: String,
    /// Who.
    pub by: String,
}

/// A word of a person or program.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Word {
    /// Who.
    pub by: String,
    /// When, RFC 3339 UTC.
    pub at: String,
    /// `resume`, `cancel`: go on unproven.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accept: bool,
    /// `actionDone`: the command failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}

/// What has been done and is known of a run. Written by the leader only.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MaintenanceStatus {
    /// See `Phase`; empty means Pending.
    pub phase: String,
    /// Generation of the spec that this status has seen.
    pub observed_generation: i64,
    /// Term of the leader that wrote it.
    pub term: i64,
    /// Why it ended or waits: see `Outcome`, or the reason of a gate.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub outcome: String,
    /// One sentence for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Hash of the configuration that the frozen fields below come from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub config_hash: String,
    /// Frozen at the start: `cordon-only` or `drain`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub strategy: String,
    /// Frozen at the start: whether the boot ID must change.
    pub reboots: bool,
    /// Frozen at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Frozen at the start: the window that an unattended run began in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowRecord>,
    /// When the present phase began, RFC 3339 UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_started_at: Option<String>,
    /// When it was last held; it stays after the run went on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_at: Option<String>,
    /// Its deadline, absolute; while settling it is moved on by progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    /// Since when gates hold it up before commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_since: Option<String>,
    /// Since when somebody's halt keeps it still before commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub halted_since: Option<String>,
    /// What was not whole at the last look while settling; a change of it is progress.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub progress_mark: String,
    /// Since when all is green in the present phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub green_since: Option<String>,
    /// Green sweeps in a row, and the instant of the last one counted.
    pub green_sweeps: i64,
    /// Instant of the last sweep that was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_sweep: Option<String>,
    /// The node before and after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeRecord>,
    /// What is about to be made irreversible: written before it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<Intent>,
    /// What passed between us and kured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kured: Option<KuredRecord>,
    /// When an intent was first written; from then on the act may come late, also after it was called off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered_at: Option<String>,
    /// When it was committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub committed_at: Option<String>,
    /// When the node was seen back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returned_at: Option<String>,
    /// When our cordon was seen to be off after commit: we took it off, somebody did, or there never was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cordon_off_at: Option<String>,
    /// Who accepted the present boot unproven (`resume --accept`), if somebody did.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub accepted_by: String,
    /// The last `resume` that was dealt with: a word is obeyed once, whatever anybody's clock says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heard_resume: Option<Word>,
    /// The last `cancel` that was dealt with after commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heard_cancel: Option<Word>,
    /// How BackingOut will end: `Failed` or `Cancelled`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ends_as: String,
    /// And why; `message` may say what it waits for meanwhile.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ends_because: String,
    /// Findings that were not fine at the start, for "no worse than before".
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub baseline: Vec<FindingRecord>,
    /// The latest findings that are not fine, worst first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<FindingRecord>,
    /// The drain in numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainRecord>,
    /// The matrix before and after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matrix: Option<MatrixRecord>,
    /// DNS while the node was away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns: Option<DnsRecord>,
    /// kstatus conditions and our own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionRecord>,
    /// What happened, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<TimelineEntry>,
    /// Things that were odd and did not stop it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Messages for people, queued in the same write as what they tell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outbox: Vec<OutboxEntry>,
}

/// Frozen limits, in seconds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// From the first eviction try to the last pod gone.
    pub drain_seconds: i64,
    /// How long gates may hold it up after the cordon.
    pub handover_seconds: i64,
    /// From commit to Ready.
    pub return_seconds: i64,
    /// From the return to all green.
    pub verify_seconds: i64,
    /// Without progress after the uncordon.
    pub settle_seconds: i64,
}

/// The window that an unattended run began in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WindowRecord {
    /// Id of the opening, as in `nightly-2026-11-30`: the window and the day on which it opened.
    pub opening: String,
    /// The hard stop, RFC 3339 UTC: a run that is not committed by then is put back.
    pub ends_at: String,
}

/// The node before and after.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeRecord {
    /// `metadata.uid`
    pub uid: String,
    /// Boot ID at the start.
    pub boot_id_before: String,
    /// Boot ID after the return.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub boot_id_after: String,
    /// Kernel at the start.
    pub kernel_before: String,
    /// Kernel after the return.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kernel_after: String,
    /// Somebody else had cordoned it when a manual run began: that cordon stays.
    pub was_unschedulable: bool,
    /// `namespace/name` of the DaemonSets that had a Ready pod there at the start, the first 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub daemon_sets: Vec<String>,
}

/// What is about to be made irreversible.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Intent {
    /// Boot ID that the act replaces; the act is void on any other.
    pub boot_id: String,
    /// When it was decided.
    pub at: String,
    /// Until when a program may claim it; renewed only while the gates agree.
    pub valid_until: String,
}

/// What passed between a run and kured. With action `kured` the intent is the grant: kured may take its lock once,
/// while the intent is valid and on its boot.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KuredRecord {
    /// Raised whenever a question must be heard that was asked after something was done; see annotation
    /// `maint.dev/asked`.
    pub ask_epoch: i64,
    /// kured's `--period` in seconds, as it was at the hand-over: its next look is at most so far away. 0 before that.
    #[serde(skip_serializing_if = "is_zero")]
    pub period_seconds: i64,
    /// Grants that were given and taken; a second one is the last.
    pub grants: i64,
    /// kured's pods on the node when the grant was given, as `uid/restarts`, separated by commas.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pod: String,
    /// With it kured's lock is what committed the run: `created` of the node's entry as it was seen last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_lock: Option<String>,
    /// Since when the lock no longer names the node although its boot is the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock_gone_since: Option<String>,
    /// A grant that was offered and withdrawn: kured may still act on the `go` that it heard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closing: Option<Closing>,
    /// With another action than kured: when our hold of kured's lock was first seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_since: Option<String>,
    /// While the wish waits: since when the present leader listens for kured's questions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listening_since: Option<String>,
    /// The sentinel file that we put on the node, if we did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentinel: Option<Sentinel>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// A withdrawn grant, until it is proven that nobody acts on it any more.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Closing {
    /// When kured's lock was first seen in our hands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_at: Option<String>,
    /// The epoch that kured must have asked in, and been refused in, before the lock is given back.
    pub epoch: i64,
    /// kured's pods on the node as [`KuredRecord::pod`] has them, of the time of the grant: a change proves that the
    /// old process is gone.
    pub pod: String,
    /// kured took its lock with this grant and lost it: that we hold the lock stops nothing any more, only the end of
    /// its work counts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub used: bool,
}

/// The sentinel file of a manual reboot.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Sentinel {
    /// The file on the node.
    pub path: String,
    /// When we asked for it.
    pub asked_at: String,
    /// When it was taken away, or found to be gone.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub removed_at: String,
}

/// A finding, kept.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FindingRecord {
    /// Gate id.
    pub gate: String,
    /// Status.
    pub status: String,
    /// Reason.
    pub reason: String,
    /// Sentence.
    pub message: String,
    /// Since when it is so, as far as that is known. RFC 3339 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// What it was seen on, for "no worse than before"; cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EvidenceRecord>,
}

/// One object's field that led to a finding, kept.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceRecord {
    /// `Kind namespace/name`.
    pub object: String,
    /// The field.
    pub field: String,
    /// What was seen.
    pub value: String,
    /// What would have passed.
    pub wanted: String,
}

/// The drain in numbers; lists are worst first and cut.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DrainRecord {
    /// Pods that were to go when the drain began.
    pub planned: i64,
    /// Evictions that the API accepted.
    pub evicted: i64,
    /// Pods still there.
    pub left: i64,
    /// Who is still there and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
}

/// The matrix, compact.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MatrixRecord {
    /// `9/9` before the node was touched.
    pub before: String,
    /// The same after its return.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub after: String,
    /// Pairs that are not green, as `server -> node: detail`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<String>,
}

/// DNS while the node was away.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DnsRecord {
    /// Lowest number of ready endpoints seen.
    pub min_ready: i64,
    /// Observations that saw none ready.
    pub zero_ready_observations: i64,
    /// How often the number changed.
    pub changes: i64,
    /// The last number seen.
    pub last_ready: i64,
}

/// A condition.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConditionRecord {
    /// Ready, Reconciling, Stalled, GatesPassed, Drained, Rebooted, KubeletReachable, Settled.
    #[serde(rename = "type")]
    pub kind: String,
    /// True, False, Unknown.
    pub status: String,
    /// PascalCase.
    pub reason: String,
    /// A sentence.
    pub message: String,
    /// When the status last changed.
    pub last_transition_time: String,
    /// Generation that it speaks of.
    pub observed_generation: i64,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimelineEntry {
    /// When.
    pub at: String,
    /// Phase that began.
    pub phase: String,
    /// What.
    pub message: String,
}

/// A message for people.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutboxEntry {
    /// Stable: a receiver may drop a second one.
    pub id: String,
    /// See `MessageKind`.
    pub kind: String,
    /// `info`, `warning` or `critical`.
    pub severity: String,
    /// The text.
    pub text: String,
    /// When it was queued.
    pub created_at: String,
    /// Tries so far.
    #[serde(default)]
    pub attempts: i64,
    /// Receivers that took it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delivered_to: Vec<String>,
    /// The last error, without secrets.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_error: String,
    /// Receivers that have not taken it yet although it was tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<PendingDelivery>,
}

/// A receiver that did not take a message yet.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingDelivery {
    /// Its name in the configuration.
    pub receiver: String,
    /// Tries so far.
    pub attempts: i64,
    /// The first one, RFC 3339 UTC.
    pub first_attempt_at: String,
    /// The last one.
    pub last_attempt_at: String,
    /// Not before then; empty when given up.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next_attempt_at: String,
    /// It is not tried any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given_up: bool,
}

/// What a report is about.
#[derive(CustomResource, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "maint.dev",
    version = "v1alpha1",
    kind = "MaintenanceReport",
    plural = "maintenancereports",
    status = "MaintenanceReportStatus",
    printcolumn = r#"{"name":"Kind","type":"string","jsonPath":".spec.kind"}"#,
    printcolumn = r#"{"name":"Verdict","type":"string","jsonPath":".status.verdict"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    derive = "PartialEq",
    derive = "Default",
    crates(
        kube_core = "::kube_core",
        k8s_openapi = "::k8s_openapi",
        schemars = "::schemars",
        serde = "::serde",
        serde_json = "::serde_json"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceReportSpec {
    /// `window` or `post-check`.
    pub kind: String,
    /// The opening of a window that it is about; with kind `window`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowSpan>,
}

/// The opening of a window.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WindowSpan {
    /// Id of the opening, as in `nightly-2026-11-30`: the window and the day on which it opened.
    pub opening: String,
    /// When it opened, RFC 3339 UTC.
    pub starts_at: String,
    /// When it closed.
    pub ends_at: String,
}

/// What a report says. Written by the leader only.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MaintenanceReportStatus {
    /// Kind `post-check`: `clear`, `blocked` or `unknown`; kind `window`: see `WindowVerdict`. Empty while it is being
    /// made.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub verdict: String,
    /// The verdict line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Term of the leader that wrote it.
    pub term: i64,
    /// When it was made, RFC 3339 UTC.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub made_at: String,
    /// The mode that unattended runs were in when it was made.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mode: String,
    /// The runs of the window, in the order in which they began; cut.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<ReportedRun>,
    /// Nodes that wanted to be maintained and were not, the longest waiting first; cut.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedNode>,
    /// Nodes that still wait, those beyond the end of the list among them.
    pub backlog: i64,
    /// Messages for people.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outbox: Vec<OutboxEntry>,
}

/// A run of a window.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedRun {
    /// Name of the record.
    pub record: String,
    /// The node.
    pub node: String,
    /// Its phase when the report was made.
    pub phase: String,
    /// Why it ended or waits.
    pub outcome: String,
    /// One sentence.
    pub message: String,
    /// Seconds from its cordon to its end, or to the report.
    pub seconds: i64,
}

/// A node that wanted to be maintained and was not.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkippedNode {
    /// Name of the record.
    pub record: String,
    /// The node.
    pub node: String,
    /// Since when it wants to be maintained, RFC 3339 UTC.
    pub asked_at: String,
    /// Gate of the first finding that stopped it; empty where it was never judged, or where only its turn did not come.
    pub gate: String,
    /// Reason of that finding.
    pub reason: String,
    /// Its sentence, or what it waited for.
    pub message: String,
    /// Since when gates stop it; empty where they do not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub blocked_since: String,
    /// Mode `observe`: nothing but the mode stopped it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub would_have_started: bool,
}
