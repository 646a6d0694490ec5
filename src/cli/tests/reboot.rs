//! `maint reboot`: who acts where nobody was named, and what is refused before anything is written.

use maint_core::config::Settings;
use serde_json::{Value, json};

use super::cluster::{Cluster, Fault, status};
use super::{Exit, Interrupts, run_in, steps};

const IMAGE: &str = "kured.sentinel.image = \"busybox@sha256:0\"\n";
const POD: &str = "action.pod = { enabled = true, image = \"busybox@sha256:0\" }\n";
const BY_KURED: &str = r#"{"at":"2026-11-30T00:59:00Z","answer":"no: observe mode","epoch":0,"source":"kured"}"#;
const ELSEWHERE: &str = r#"{"at":"2026-11-30T00:59:00Z","answer":"no: observe mode","epoch":0,"source":"elsewhere"}"#;

async fn reboot(cluster: &Cluster, action: Option<&str>, settings: &str) -> (Exit, String) {
    let settings = Settings::parse(settings, "f").expect("settings");
    let named: Vec<&str> = action.iter().flat_map(|action| ["--action", action]).collect();
    let arguments = [&["reboot", "worker2", "--yes", "--as", "anna"], named.as_slice()].concat();
    run_in(cluster, &arguments, Interrupts::none(), settings).await
}

fn well() -> Cluster {
    Cluster::new().leader(steps(vec![status("Succeeded", "Proven")]))
}

#[tokio::test(start_paused = true)]
async fn kured_acts_where_it_asks_us_else_a_pod_where_it_may() {
    let both = format!("{IMAGE}{POD}");
    let rows = [
        ("kured asks us", well().gated_kured(&[]), None, IMAGE, "kured"),
        ("kured asks us, and a pod may", well().gated_kured(&[]), None, &both, "kured"),
        ("kured asks nobody, and a pod may", well().kured_with(&[]), None, &both, "pod"),
        ("no kured, and a pod may", well(), None, POD, "pod"),
        ("a pod was named", well().gated_kured(&[]), Some("pod"), IMAGE, "pod"),
        ("a person was named", well().gated_kured(&[]), Some("external"), IMAGE, "external"),
        ("kured was named", well().gated_kured(&[]), Some("kured"), &both, "kured"),
        ("named, and its flags say otherwise: the gate judges", well().kured_with(&[]), Some("kured"), IMAGE, "kured"),
        ("kured wants one itself: no sentinel is needed", well().gated_kured(&[]).annotated(), None, "", "kured"),
        (
            "the same with a command",
            well().gated_kured(&["--reboot-sentinel-command=x"]).annotated(),
            None,
            "",
            "kured",
        ),
    ];
    for (row, cluster, action, settings, wanted) in rows {
        assert_eq!(reboot(&cluster, action, settings).await, (Exit::Fine, String::new()), "{row}");
        assert_eq!(cluster.made(&[])["spec"]["action"], wanted, "{row}");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_who_can_act_is_told_with_what_helps_and_nothing_is_written() {
    let forbidden = |code| Fault { method: "GET", part: "daemonsets", code, done: false };
    let command = ["--reboot-sentinel-command=needs-restarting -r"];
    let rows: Vec<(&str, Cluster, Option<&str>, &str, Exit, &[&str])> = vec![
        (
            "no kured, no pod",
            well(),
            None,
            IMAGE,
            Exit::Usage,
            &["who makes the node go down? kured is not installed, and action `pod` is not enabled", "maint run NODE"],
        ),
        (
            "kured asks nobody, no pod",
            well().kured_with(&[]),
            None,
            IMAGE,
            Exit::Usage,
            &[
                "kured does not ask maint before it reboots (maint doctor tells why), and action `pod`",
                "maint run NODE",
            ],
        ),
        ("no kured", well(), Some("kured"), IMAGE, Exit::Usage, &["kured is not installed: no DaemonSet runs it"]),
        (
            "no image",
            well().gated_kured(&[]),
            Some("kured"),
            "",
            Exit::Usage,
            &["no [kured.sentinel] image is set", "--config FILE", "--action pod"],
        ),
        (
            "no image, and a pod may: it is not taken for it",
            well().gated_kured(&[]),
            None,
            POD,
            Exit::Usage,
            &["no [kured.sentinel] image is set"],
        ),
        (
            "a command",
            well().gated_kured(&command),
            Some("kured"),
            IMAGE,
            Exit::Usage,
            &[
                "kured asks the command `needs-restarting -r` (--reboot-sentinel-command of DaemonSet kube-system/kured)",
            ],
        ),
        (
            "a wish that somebody else may have sent",
            well().gated_kured(&[]).wish_of_kured("w", ELSEWHERE),
            Some("kured"),
            "",
            Exit::Usage,
            &["no [kured.sentinel] image is set"],
        ),
        (
            "forbidden",
            well().fault(forbidden(403)),
            None,
            POD,
            Exit::Error,
            &["you lack the right to list daemonsets.apps", "maint-operator has it"],
        ),
        (
            "a server that fails",
            well().fault(forbidden(500)),
            None,
            POD,
            Exit::Unknown,
            &["whether kured asks maint first is not known", "maint doctor"],
        ),
    ];
    for (row, cluster, action, settings, exit, parts) in rows {
        let (got, text) = reboot(&cluster, action, settings).await;
        assert_eq!(got, exit, "{row}: {text}");
        for part in parts {
            assert!(text.contains(part), "{row}: no `{part}` in {text}");
        }
        assert!(text.contains("\n  what helps: "), "{row}: {text}");
        assert_eq!(cluster.writes(), Vec::<String>::new(), "{row}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wish_of_kured_is_superseded_and_what_it_asked_is_taken_along() {
    let rows: [(&str, Option<&str>, Value); 2] =
        [("by kured", None, json!(BY_KURED)), ("by a pod: nobody waits for a question", Some("pod"), Value::Null)];
    for (row, action, wanted) in rows {
        let cluster = well().gated_kured(&[]).wish_of_kured("w", BY_KURED);
        assert_eq!(reboot(&cluster, action, "").await, (Exit::Fine, String::new()), "{row}");
        assert_eq!(cluster.writes(), ["PATCH w supersededBy", "POST "], "{row}");
        let made = cluster.made(&["w"]);
        assert_eq!(made["metadata"]["annotations"]["maint.dev/asked"], wanted, "{row}");
        assert_eq!(made["spec"]["trigger"], "manual", "{row}");
    }
    // A wish of an earlier boot says nothing of this one.
    let cluster = well().gated_kured(&[]).wish_of_kured("w", BY_KURED);
    cluster.boot("b2");
    assert_eq!(reboot(&cluster, Some("kured"), "").await.0, Exit::Usage);
    assert_eq!(cluster.writes(), Vec::<String>::new());
}
