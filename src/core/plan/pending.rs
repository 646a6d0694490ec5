//! Pending: a wish. Nothing of ours is in the cluster yet.

use jiff::SignedDuration;

use super::kept::records_of;
use super::run::{LOOK_SECONDS, Run, SOON_SECONDS, Target};
use super::seat::{self, Seat};
use super::time::{after, parse_time, stamp};
use super::{Act, grant, sentinel, taken, turn};
use crate::api::record::{Limits, MatrixRecord, NodeRecord, WindowRecord};
use crate::api::{Action, MessageKind, Moment, Outcome, Phase, Strategy, Trigger, UnknownName};
use crate::config::Scope;
use crate::facts::Node;
use crate::gates;
use crate::windows::{self, WindowState};

/// How the message of a wish that gates hold up begins.
const WAITS: &str = "waits: ";
/// How often an unattended wish is judged while no window is open, in seconds.
const OUTSIDE_SECONDS: i64 = 600;
/// How often an unattended wish that gates stop is judged while a window is open, in seconds: each look asks every gate,
/// the matrix among them, and most of what stops a wish heals in minutes. What a person waits for is judged oftener.
const INSIDE_SECONDS: i64 = 30;

pub(super) fn step(run: &mut Run<'_>) {
    if run.status.step_started_at.is_none() {
        run.status.step_started_at = Some(stamp(run.input.now));
        Phase::Pending.as_str().clone_into(&mut run.status.phase);
        run.note("wished");
    }
    if run.deleted() {
        run.end(Phase::Cancelled, Outcome::RecordDeleted.as_str(), "the record was deleted before it started");
        return;
    }
    if let Some(word) = &run.input.record.spec.cancel {
        let why = format!("cancelled by {} before it started", word.by);
        run.end(Phase::Cancelled, Outcome::Cancelled.as_str(), why);
        return;
    }
    if let Some(newer) = &run.input.record.spec.superseded_by {
        let why = format!("{newer} takes its place");
        run.end(Phase::Cancelled, Outcome::Superseded.as_str(), why);
        return;
    }
    if let Some(why) = run.said_too_early() {
        return run.end(Phase::Failed, Outcome::ActionNotStarted.as_str(), why);
    }
    let scope = match (Scope::find(run.input.settings, &run.input.record.spec.scope), run.action()) {
        (Ok(scope), Ok(action)) => match action_is_possible(run, action, &scope) {
            Ok(()) => scope,
            Err(why) => return run.end(Phase::Failed, Outcome::ActionNotStarted.as_str(), why),
        },
        (Err(error), _) | (_, Err(error)) => {
            return run.end(Phase::Failed, Outcome::ActionNotStarted.as_str(), error.to_string());
        }
    };
    if let Err(error) = freeze(run, &scope) {
        return run.end(Phase::Failed, Outcome::ActionNotStarted.as_str(), error.to_string());
    }
    let node = match run.target() {
        Target::Here(node) => node,
        Target::Gone => {
            let why = format!("there is no node {}", run.node_name());
            return run.end(Phase::Failed, Outcome::NodeReplaced.as_str(), why);
        }
        Target::Unknown => return give_up_in_time(run, "the nodes could not be read"),
    };
    if let Some(why) = grant::no_longer_wished(run, node) {
        return run.end(Phase::Cancelled, Outcome::WishWithdrawn.as_str(), why);
    }
    if let Some(why) = sentinel::refuses(run, node) {
        return run.end(Phase::Failed, Outcome::ActionNotStarted.as_str(), why);
    }
    if node.boot_id.is_empty() {
        return give_up_in_time(run, "the node reports no boot ID, so that no reboot could be proven");
    }
    let findings = run.findings(Moment::Start);
    let changed = run.keep_findings(&findings);
    if let Some(worst) = Run::worst(&findings) {
        let why = format!("{} ({}): {}", worst.gate, worst.reason, worst.message);
        // A sentence with an age in it would be another one at every look, and each would be a write.
        if changed || !run.status.message.starts_with(WAITS) {
            run.status.message = format!("{WAITS}{}", short(&why));
        }
        run.status.blocked_since.get_or_insert_with(|| stamp(run.input.now));
        return give_up_in_time(run, &why);
    }
    if let Some(why) = taken::at_work_already(run) {
        run.status.message = format!("{WAITS}{why}");
        run.status.blocked_since.get_or_insert_with(|| stamp(run.input.now));
        return give_up_in_time(run, &why);
    }
    run.status.blocked_since = None;
    if let Some(why) = turn::waits_for(run) {
        run.status.message = format!("{WAITS}{why}");
        return run.look_again_in(LOOK_SECONDS);
    }
    match run.seat() {
        Seat::HandsOver => return hand_over(run),
        Seat::Waits => return wait_for_another_seat(run),
        Seat::Elsewhere | Seat::Alone | Seat::Stuck => {}
    }
    if !run.has_finalizer() {
        run.act(Act::AddFinalizer);
        run.look_again_in(0);
        return;
    }
    start(run, node, &findings);
}

/// Our own pod is on the target: another replica shall lead, once nothing else is in flight.
fn hand_over(run: &mut Run<'_>) {
    let busy = seat::others_in_flight(run);
    let what = if busy { "another run is over, and then another replica leads" } else { "another replica leads" };
    run.status.message = format!("{WAITS}the leader's pod runs on {}, until {what}", run.node_name());
    give_up_in_time(run, "the leader's pod runs on the node, and no other replica has taken over");
    run.hand_over = !busy && phase_is_pending(run);
}

/// Who could lead leaves the Lease to others until the run on its own node is over.
fn wait_for_another_seat(run: &mut Run<'_>) {
    run.status.message = format!(
        "{WAITS}the leader's pod runs on {}, until the run on the node of the replica that could lead is over",
        run.node_name()
    );
    give_up_in_time(run, "the leader's pod runs on the node, and every other replica had a run on its own node");
}

fn phase_is_pending(run: &Run<'_>) -> bool {
    run.status.phase == Phase::Pending.as_str()
}

fn short(text: &str) -> &str {
    text.split(';').next().unwrap_or(text)
}

fn action_is_possible(run: &Run<'_>, action: Action, scope: &Scope) -> Result<(), String> {
    let pod = &run.input.settings.action.pod;
    match action {
        Action::Pod if !pod.enabled => {
            Err("action `pod` is not enabled: set [action.pod] enabled = true and an image".to_owned())
        }
        Action::Pod if pod.image.is_empty() => Err("action `pod` has no image: set [action.pod] image".to_owned()),
        Action::Kured if !scope.reboots => Err(format!(
            "kured does nothing but reboot, and scope {} wants no reboot: choose another action",
            scope.name
        )),
        Action::Pod | Action::External | Action::Kured => Ok(()),
    }
}

/// What the configuration says now holds to the end of this run.
fn freeze(run: &mut Run<'_>, scope: &Scope) -> Result<(), UnknownName> {
    let settings = run.settings();
    let chosen = run.input.record.spec.strategy.as_deref().map(str::parse::<Strategy>).transpose()?;
    // A person may choose more than the scope, never less.
    let strategy = if chosen == Some(Strategy::Drain) { Strategy::Drain } else { scope.strategy };
    strategy.as_str().clone_into(&mut run.status.strategy);
    run.status.reboots = scope.reboots;
    run.status.limits = Some(Limits {
        drain_seconds: settings.drain_timeout_seconds,
        handover_seconds: settings.handover_timeout_seconds,
        return_seconds: settings.return_timeout_seconds,
        verify_seconds: settings.verify_timeout_seconds,
        settle_seconds: settings.settle_timeout_seconds,
    });
    Ok(())
}

/// Nobody's node goes down hours after he gave up: a manual wish ends with its first blocking finding.
fn give_up_in_time(run: &mut Run<'_>, why: &str) {
    let spec = &run.input.record.spec;
    let limit = spec.start_timeout_seconds.unwrap_or(run.settings().start_timeout_seconds);
    // A beginning that cannot be read is long ago.
    let began = parse_time(run.status.step_started_at.as_ref());
    let late = began.is_none_or(|began| run.input.now >= after(began, limit));
    match run.trigger() {
        Trigger::Manual if late => {
            let text = format!("could not start within {limit} s: {why}");
            run.end(Phase::Cancelled, Outcome::StartTimeout.as_str(), text);
        }
        Trigger::Manual => run.look_again_in(LOOK_SECONDS),
        Trigger::Unattended => look_when_a_window_opens(run),
    }
}

/// The window that an unattended run begins in. None for a person's, and where somebody waived the window.
fn began_in(run: &Run<'_>) -> Option<WindowRecord> {
    if run.trigger() == Trigger::Manual {
        return None;
    }
    match windows_now(run) {
        WindowState::Open(open) => Some(WindowRecord { opening: open.opening.id(), ends_at: stamp(open.ends_at) }),
        WindowState::Closed(_) => None,
    }
}

fn windows_now(run: &Run<'_>) -> WindowState {
    let settings = run.input.settings;
    windows::state(&settings.windows, SignedDuration::from_secs(settings.expected_duration_seconds), run.input.now)
}

/// A wish that gates stop need not be judged every few seconds, and outside the windows only when one opens.
fn look_when_a_window_opens(run: &mut Run<'_>) {
    // Set, since a wish is otherwise looked at as often as a run.
    run.wake_at = match windows_now(run) {
        WindowState::Open(_) => after(run.input.now, INSIDE_SECONDS),
        WindowState::Closed(closed) => {
            let latest = after(run.input.now, OUTSIDE_SECONDS);
            closed.next.map_or(latest, |next| latest.min(next.starts_at))
        }
    };
}

fn start(run: &mut Run<'_>, node: &Node, findings: &[crate::api::Finding]) {
    run.status.node = Some(NodeRecord {
        uid: node.metadata.uid.clone(),
        boot_id_before: node.boot_id.clone(),
        kernel_before: node.kernel_version.clone(),
        // The field alone: the taint follows it. What bears our mark and our name is ours already.
        was_unschedulable: node.unschedulable && !run.is_our_cordon(node),
        daemon_sets: gates::daemon_sets_of(&run.input.facts.target_pods, run.node_name()),
        ..NodeRecord::default()
    });
    run.status.window = began_in(run);
    run.status.baseline = records_of(findings);
    run.keep_waived();
    if let Some((before, broken)) = run.matrix_line() {
        run.status.matrix = Some(MatrixRecord { before, broken, ..MatrixRecord::default() });
    }
    for waived in &run.input.record.spec.overrides {
        run.warn(format!("gate {} waived by {}: {}", waived.gate, waived.by, waived.reason));
    }
    let why = format!(
        "gates agree; {} for scope {} by action {}",
        run.strategy(),
        run.input.record.spec.scope,
        run.input.record.spec.action
    );
    run.enter(Phase::Cordoning, why);
    let spec = &run.input.record.spec;
    let by = if spec.requested_by.is_empty() { String::new() } else { format!(", asked by {}", spec.requested_by) };
    let reason = spec.reason.trim_end_matches('.');
    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    let (node, scope, strategy) = (run.node_name(), &spec.scope, run.strategy());
    let text = format!(
        "{node} is being maintained ({scope}, {strategy}){by}{reason}. To keep it out of use afterwards: maint hold {node}"
    );
    run.tell(MessageKind::Started, "info", text);
    run.look_again_in(SOON_SECONDS);
}
