//! Text and Markdown of a post-check.

use super::super::{Clock, Glyphs};
use super::*;

fn now() -> Timestamp {
    "2026-11-30T01:00:00Z".parse().expect("a time")
}

fn line(id: &'static str, status: Status, reason: Reason, message: &str) -> Line {
    let fine = is_fine(status);
    Line {
        id,
        status,
        reason,
        message: message.to_owned(),
        evidence: if fine { vec![] } else { vec![Evidence::new("Node a", "status.x", "1", "2")] },
        evidence_left_out: 0,
        since: None,
        until: None,
    }
}

fn report(verdict: Verdict, lines: Vec<Line>, waited: Waited) -> PostCheckReport {
    let check = PostCheck { verdict, lines, not_asked: vec![] };
    let source =
        Origin { kind: "live", name: "context k3s (https://10.0.0.1:6443/)".to_owned(), clock: Clock::Machine };
    PostCheckReport::new(check, source, vec![], waited, now(), now())
}

#[test]
fn what_is_worst_comes_first_with_its_end_and_the_command() {
    let degraded = Line {
        since: Some("2026-11-30T00:57:01Z".parse().expect("a time")),
        until: Some("2026-11-30T01:07:01Z".parse().expect("a time")),
        ..line("longhorn-volumes", Status::Block, Reason::LonghornVolumeDegraded, "volume v is degraded")
    };
    let lines = vec![degraded, line("cordons", Status::Pass, Reason::Passed, "none of 3 nodes is cordoned")];
    let waited = Waited { seconds: 12, settle_seconds: 60, clear_seconds: None, settled: false };
    let report = report(Verdict::Blocked, lines, waited);
    let wanted = "\
BLOCKED by longhorn-volumes (LonghornVolumeDegraded)
  live context k3s (https://10.0.0.1:6443/), judged at 2026-11-30T01:00:00Z (clock of this machine), looked for 12 s

  × longhorn-volumes      LonghornVolumeDegraded: volume v is degraded, since 00:02:59 (00:57:01Z); it waits until 01:07:01Z (in 00:07:01)
                          Node a: status.x is 1, wanted 2
                          maint explain LonghornVolumeDegraded
  √ cordons               none of 3 nodes is cordoned

nothing was restarted, uncordoned or written: maint only reports, a person decides
";
    assert_eq!(post_check(&report, Paint::PLAIN), wanted);
    let wanted = "\
## Post-check: BLOCKED by longhorn-volumes (LonghornVolumeDegraded)

live context k3s (https://10.0.0.1:6443/), judged at 2026-11-30T01:00:00Z (clock of this machine), looked for 12 s

| | what | answer |
|---|---|---|
| × | longhorn-volumes | **LonghornVolumeDegraded**: volume v is degraded, since 00:02:59 (00:57:01Z); it waits until 01:07:01Z (in 00:07:01)<br>`maint explain LonghornVolumeDegraded` |
| √ | cordons | none of 3 nodes is cordoned |

nothing was restarted, uncordoned or written: maint only reports, a person decides
";
    assert_eq!(post_check_markdown(&report), wanted);
}

#[test]
fn headlines() {
    let block = || line("cordons", Status::Block, Reason::TargetCordonedByOther, "b");
    let unknown = || line("clocks", Status::Unknown, Reason::ClockSkew, "u");
    let warn = || line("control-plane", Status::Warn, Reason::EtcdVotersEven, "w");
    let pass = || line("nodes", Status::Pass, Reason::Passed, "p");
    let settled = |seconds| Waited { seconds, settle_seconds: 60, clear_seconds: Some(seconds), settled: true };
    let red = Waited { settle_seconds: 60, ..Waited::default() };
    let early = Waited { seconds: 70, settle_seconds: 60, clear_seconds: Some(5), settled: false };
    let rows = [
        (
            Verdict::Clear,
            vec![pass(), pass()],
            settled(61),
            "CLEAR 2 things that were looked at hold, and they held for 61 s",
        ),
        (Verdict::Clear, vec![pass()], settled(0), "CLEAR 1 things that were looked at hold"),
        (Verdict::Clear, vec![warn(), pass()], settled(0), "CLEAR 2 things that were looked at hold, 1 warning"),
        (Verdict::Clear, vec![pass()], early, "CLEAR but only for 5 s, wanted 60 s"),
        (
            Verdict::Blocked,
            vec![block(), block(), unknown()],
            red.clone(),
            "BLOCKED by cordons (TargetCordonedByOther), 1 more, 1 unknown",
        ),
        (
            Verdict::Unknown,
            vec![unknown(), unknown(), warn()],
            red,
            "UNKNOWN because of clocks (ClockSkew), 1 more, 1 warning",
        ),
    ];
    for (verdict, lines, waited, wanted) in rows {
        let text = post_check(&report(verdict, lines, waited), Paint { glyphs: Glyphs::Ascii, colour: false });
        assert_eq!(text.lines().next(), Some(wanted));
    }
}

#[test]
fn names_from_the_cluster_steer_neither_terminal_nor_page() {
    let bad = "a\u{1b}[31m <img src=x> | [x](http://y) `z` *w*";
    let report = report(
        Verdict::Blocked,
        vec![line("cordons", Status::Block, Reason::TargetCordonedByOther, bad)],
        Waited::default(),
    );
    assert!(!post_check(&report, Paint::PLAIN).contains('\u{1b}'));
    let markdown = post_check_markdown(&report);
    assert!(markdown.contains(r"&lt;img src=x&gt; \| \[x\](http://y) \`z\` \*w\*"), "{markdown}");
}

#[test]
fn the_json_has_kind_and_names() {
    let report = report(Verdict::Clear, vec![line("nodes", Status::Pass, Reason::Passed, "p")], Waited::default());
    let json = serde_json::to_value(&report).expect("JSON");
    assert_eq!((json["apiVersion"].as_str(), json["kind"].as_str()), (Some("maint.dev/v1"), Some("PostCheckReport")));
    assert_eq!((json["verdict"].as_str(), json["lines"][0]["id"].as_str()), (Some("clear"), Some("nodes")));
    assert!(json["lines"][0]["hint"].is_null() && json["waited"]["settleSeconds"] == 0);
}
