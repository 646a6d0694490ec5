//! Who makes the node of `maint reboot` go down: as the person said, else kured where it asks us, else a pod.

use maint_core::api::record::Maintenance;
use maint_core::api::{Action, SourceId, names};
use maint_core::facts::{Facts, FailureKind, Node, Observation};
use maint_core::kured::{Place, Places, is_gated, places};

use super::ask::is_wish_of_kured;
use super::cluster::{Right, Session, forbidden};
use super::{Exit, Failure, terminal};

/// What else can be done, behind every refusal.
const OTHERS: &str = "--action pod where the leader has [action.pod] enabled = true and an image; --action external where you \
                      reboot it yourself and say `maint done`; or maint run NODE --scope reboot -- COMMAND";

/// The action of a reboot. `pending` are the records of the node that it will replace.
///
/// # Errors
/// Usage where nobody can act, or kured cannot be asked by a person; unknown where kured could not be read.
pub async fn who_acts(
    session: &Session,
    named: Option<Action>,
    node: &Node,
    pending: &[Maintenance],
) -> anyhow::Result<Action> {
    match named {
        // The leader's own configuration decides whether a pod may; ours need not be the same.
        Some(action @ (Action::Pod | Action::External)) => return Ok(action),
        Some(Action::Kured) | None => {}
    }
    let facts = session.facts(&[SourceId::DaemonSets]).await;
    let found = match places(&facts) {
        Places::Found(found) => found,
        Places::NotInstalled if named.is_none() => return pod_or_nobody(session, "kured is not installed"),
        Places::NotInstalled => {
            return Err(refused("kured is not installed: no DaemonSet runs it", OTHERS));
        }
        Places::Unreadable(why) => return Err(unread(&facts, &why)),
    };
    if !is_gated(&facts, &session.settings) {
        if named.is_none() {
            return pod_or_nobody(session, "kured does not ask maint before it reboots (maint doctor tells why)");
        }
        // Where its flags come from cannot always be read; the leader's gate judges the pods that run.
        terminal::talk("kured does not ask maint, as far as can be seen here: gate kured decides (maint doctor)\n")?;
    }
    let asks = node.metadata.annotations.contains_key(names::ANNOTATION_KURED_IN_PROGRESS)
        || pending.iter().any(|record| is_wish_of_kured(record, node));
    match cannot_be_asked(&found, &session.settings.kured.sentinel.image) {
        Some((why, helps)) if !asks => Err(refused(&why, &format!("{helps}; {OTHERS}"))),
        _ => Ok(Action::Kured),
    }
}

fn pod_or_nobody(session: &Session, kured: &str) -> anyhow::Result<Action> {
    if session.settings.action.pod.enabled {
        return Ok(Action::Pod);
    }
    let why = format!("who makes the node go down? {kured}, and action `pod` is not enabled in this configuration");
    Err(refused(&why, OTHERS))
}

/// Why kured cannot be made to want a reboot that its node does not want, and what would change that.
fn cannot_be_asked(places: &[Place], image: &str) -> Option<(String, String)> {
    if let Some((place, command)) = places.iter().find_map(|place| Some((place, place.sentinel_command.as_ref()?))) {
        let why = format!(
            "kured asks the command `{command}` (--reboot-sentinel-command of {}) whether its node wants a reboot, and looks at \
             no file that maint could make",
            place.object()
        );
        return Some((why, "make that command want a reboot on the node, then again".to_owned()));
    }
    image.is_empty().then(|| {
        (
            "kured can be asked only by its sentinel file, and no [kured.sentinel] image is set in this configuration"
                .to_owned(),
            "set it for the leader, and say it here too: --config FILE".to_owned(),
        )
    })
}

fn refused(why: &str, helps: &str) -> anyhow::Error {
    Failure::usage(format!("{why}\n  what helps: {helps}")).into()
}

fn unread(facts: &Facts, why: &str) -> anyhow::Error {
    if let Observation::Failed { kind: FailureKind::Forbidden, detail, .. } = &facts.daemon_sets {
        return forbidden(Right::DAEMON_SETS, detail);
    }
    let text = format!(
        "whether kured asks maint first is not known: {why}\n  what helps: maint doctor; or say who acts: {OTHERS}"
    );
    Failure { exit: Exit::Unknown, text }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kured_can_be_asked_by_a_file_that_it_looks_at() {
        let place = |command: Option<&str>| Place {
            namespace: "kube-system".into(),
            name: "kured".into(),
            key: "k".into(),
            text: None,
            concurrency: 1,
            period_seconds: 60,
            sentinel: "/var/run/reboot-required".into(),
            sentinel_command: command.map(str::to_owned),
            always_open: true,
            runners: Vec::new(),
        };
        let rows = [
            ("a file and an image", None, "busybox@sha256:0", None),
            ("no image", None, "", Some("no [kured.sentinel] image is set")),
            ("a command", Some("needs-restarting -r"), "busybox@sha256:0", Some("`needs-restarting -r`")),
        ];
        for (row, command, image, wanted) in rows {
            let why = cannot_be_asked(&[place(None), place(command)], image).map(|(why, _)| why);
            assert_eq!(why.is_some(), wanted.is_some(), "{row}: {why:?}");
            assert!(why.unwrap_or_default().contains(wanted.unwrap_or_default()), "{row}");
        }
    }
}
