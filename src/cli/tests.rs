//! Conversations with a cluster in memory: what is written, in which order, and which exit code it gives.

mod cluster;
mod lock;
mod reboot;

use clap::{CommandFactory as _, Parser as _};
use maint_core::config::Settings;
use serde_json::{Value, json};

use super::interrupt::Interrupts;
use super::{Cli, Exit, Failure, Verb};
use cluster::{Cluster, Fault, go, status};

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

/// Runs a verb on a cluster; an error gives its exit code and text.
async fn run(cluster: &Cluster, arguments: &[&str]) -> (Exit, String) {
    run_with(cluster, arguments, Interrupts::none()).await
}

/// The same with what is heard meanwhile.
async fn run_with(cluster: &Cluster, arguments: &[&str], interrupts: Interrupts) -> (Exit, String) {
    run_in(cluster, arguments, interrupts, Settings::default()).await
}

/// The same with these settings.
async fn run_in(cluster: &Cluster, arguments: &[&str], interrupts: Interrupts, settings: Settings) -> (Exit, String) {
    let cli = Cli::try_parse_from([&["maint"], arguments].concat()).expect("usage");
    let session = cluster.session(settings.clone());
    let interrupts = || Ok(interrupts);
    let done = match &cli.verb {
        Verb::Reboot(verb) => match verb.wish(&settings) {
            Ok((wish, scope)) => Box::pin(verb.on(&session, &cli.common, wish, &scope, interrupts)).await,
            Err(failure) => Err(failure.into()),
        },
        Verb::Run(verb) => match verb.wish(&settings) {
            Ok((wish, scope)) => Box::pin(verb.on(&session, &cli.common, wish, &scope, interrupts)).await,
            Err(failure) => Err(failure.into()),
        },
        Verb::Resume(verb) => Box::pin(verb.on(&session, &cli.common, interrupts)).await,
        Verb::Lock(super::lock::Lock::Release(verb)) => verb.on(&session, &cli.common).await,
        _ => panic!("not one of these"),
    };
    match done {
        Ok(exit) => (exit, String::new()),
        Err(error) => (error.downcast_ref::<Failure>().map_or(Exit::Error, |failure| failure.exit), error.to_string()),
    }
}

const REBOOT: &[&str] = &["reboot", "worker2", "--yes", "--as", "anna", "--action", "pod"];

/// A leader that sets these statuses, one a look, and keeps the last.
fn steps(statuses: Vec<Value>) -> impl FnMut(&mut Value, usize) + Send + 'static {
    move |record, look| record["status"] = statuses[(look - 1).min(statuses.len() - 1)].clone()
}

#[tokio::test(start_paused = true)]
async fn a_reboot_is_asked_for_and_watched_to_its_end() {
    let rows = [
        ("proven", "Succeeded", "Proven", Exit::Fine),
        ("failed", "Failed", "DrainDeadline", Exit::PersonNeeded),
        ("cancelled", "Cancelled", "StartTimeout", Exit::PersonNeeded),
        ("held", "Held", "NodeNotBack", Exit::PersonNeeded),
    ];
    for (row, phase, outcome, wanted) in rows {
        let steps = steps(vec![status("Pending", ""), status("Draining", ""), status(phase, outcome)]);
        let cluster = Cluster::new().leader(steps);
        assert_eq!(run(&cluster, REBOOT).await, (wanted, String::new()), "{row}");
        let record = cluster.made(&[]);
        let name = record["metadata"]["name"].as_str().expect("a name");
        assert_eq!((name.len(), &name[..8]), (13, "worker2-"), "{row}");
        let spec = &record["spec"];
        assert_eq!((&spec["trigger"], &spec["requestedBy"]), (&json!("manual"), &json!("anna")), "{row}");
        assert_eq!((&spec["startTimeoutSeconds"], &spec["commandWaits"]), (&json!(600), &json!(false)), "{row}");
        assert_eq!(cluster.writes(), ["POST "], "{row}: nothing else is written");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pending_record_is_superseded_before_the_new_one_is_made() {
    let cluster = Cluster::new().record("old", "Pending").leader(steps(vec![status("Succeeded", "Proven")]));
    assert_eq!(run(&cluster, REBOOT).await.0, Exit::Fine);
    let new = cluster.made(&["old"]);
    assert_eq!(cluster.writes(), ["PATCH old supersededBy", "POST "]);
    assert_eq!(
        cluster.made(&[new["metadata"]["name"].as_str().expect("a name")])["spec"]["supersededBy"],
        new["metadata"]["name"]
    );
}

#[tokio::test(start_paused = true)]
async fn what_stands_in_the_way_is_told_and_nothing_is_written() {
    let forbidden = || Fault { method: "POST", part: "", code: 403, done: false };
    let rows: Vec<(&str, Cluster, Exit, &str)> = vec![
        (
            "in flight",
            Cluster::new().record("running", "Draining"),
            Exit::Conflict,
            "a run of worker2 is in flight: running (Draining)",
        ),
        ("held", Cluster::new().record("held", "Held"), Exit::Conflict, "a run of worker2 is in flight: held (Held)"),
        (
            "a phase of a later version",
            Cluster::new().record("odd", "Resting"),
            Exit::Conflict,
            "a run of worker2 is in flight: odd (Held)",
        ),
        ("no CRDs", Cluster::new().without_crds(), Exit::Error, "maint crds | kubectl apply -f -"),
        (
            "forbidden",
            Cluster::new().fault(forbidden()),
            Exit::Error,
            "you lack the right to create maintenances.maint.dev",
        ),
        (
            "the nodes are forbidden",
            Cluster::new().fault(Fault { method: "GET", part: "/api/v1/nodes", code: 403, done: false }),
            Exit::Error,
            "you lack the right to list nodes",
        ),
        (
            "the nodes cannot be read",
            Cluster::new().fault(Fault { method: "GET", part: "/api/v1/nodes", code: 500, done: false }),
            Exit::Unknown,
            "cannot tell which nodes there are (server)",
        ),
    ];
    for (row, cluster, exit, wanted) in rows {
        let (got, text) = run(&cluster, REBOOT).await;
        assert_eq!(got, exit, "{row}: {text}");
        assert!(text.contains(wanted), "{row}: {text}");
        let wrote: Vec<String> = cluster.writes().into_iter().filter(|line| line != "POST ").collect();
        assert!(wrote.is_empty(), "{row}: {wrote:?}");
    }
    let unknown = run(&Cluster::new(), &["reboot", "workr2", "--yes", "--action", "pod"]).await;
    let text = "unknown node `workr2`, did you mean `worker2`?; known: worker1, worker2";
    assert_eq!(unknown, (Exit::Usage, text.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_record_that_no_leader_takes_is_cancelled() {
    let cluster = Cluster::new();
    assert_eq!(run(&cluster, REBOOT).await.0, Exit::WaitedTooLong);
    let record = cluster.made(&[]);
    assert_eq!(record["spec"]["cancel"]["by"], "anna");
    assert_eq!(record["spec"]["cancel"]["at"], "2026-11-30T01:00:30Z", "after 30 s");
}

#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_read_for_a_while_is_not_given_up() {
    let mut cluster = Cluster::new().leader(steps(vec![status("Draining", ""), status("Succeeded", "Proven")]));
    for _ in 0..100 {
        cluster = cluster.fault(Fault { method: "GET", part: "worker2-", code: 0, done: false });
    }
    assert_eq!(run(&cluster, REBOOT).await.0, Exit::Fine);
    assert_eq!(cluster.writes(), ["POST "]);
}

/// `maint run` of a command that adds a line to a file and ends with a code; how often it ran.
async fn run_command(cluster: &Cluster, code: u8) -> (Exit, String, usize) {
    run_command_with(cluster, code, Interrupts::none()).await
}

/// The same with what is heard meanwhile.
async fn run_command_with(cluster: &Cluster, code: u8, interrupts: Interrupts) -> (Exit, String, usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("ran");
    let script = format!("echo ran >> {}; exit {code}", file.display());
    let run_it =
        ["run", "worker2", "--scope", "service-restart", "--yes", "--as", "anna", "--", "/bin/sh", "-c", &script];
    let (exit, text) = run_with(cluster, &run_it, interrupts).await;
    (exit, text, std::fs::read_to_string(file).unwrap_or_default().lines().count())
}

/// Says go until it is claimed, then goes on to the end once the command is over.
fn patient(record: &mut Value, _: usize) {
    let spec = &record["spec"];
    record["status"] = match (&spec["claimed"], &spec["actionDone"], &spec["cancel"]) {
        (_, _, Value::Object(_)) => status("Cancelled", "Cancelled"),
        (Value::Null, ..) => go("2026-11-30T02:00:00Z"),
        (_, Value::Null, _) => status("Returning", ""),
        (_, done, _) if done["failed"] == json!(true) => status("Held", "ActionFailed"),
        _ => status("Succeeded", "Proven"),
    };
}

const CLAIMED: Fault = Fault { method: "PATCH", part: "claimed", code: 0, done: true };

#[tokio::test(start_paused = true)]
async fn a_command_runs_once_and_its_end_is_said() {
    let done = |code, done| Fault { method: "PATCH", part: "actionDone", code, done };
    let claim = |code, done| Fault { code, done, ..CLAIMED };
    let rows: Vec<(&str, Vec<Fault>, u8, Exit, usize)> = vec![
        ("all well", vec![], 0, Exit::Fine, 1),
        ("the command fails", vec![], 3, Exit::PersonNeeded, 1),
        ("somebody wrote first: judged anew", vec![claim(409, false)], 0, Exit::Fine, 1),
        ("the claim's answer is lost", vec![claim(0, true)], 0, Exit::Fine, 1),
        ("the claim is lost", vec![claim(0, false), claim(500, false)], 0, Exit::Fine, 1),
        ("the claim is refused", vec![claim(422, false)], 0, Exit::Error, 0),
        ("the end is heard at the third try", vec![done(0, false), done(503, false)], 0, Exit::Fine, 1),
    ];
    for (row, faults, code, wanted, times) in rows {
        let cluster = faults.into_iter().fold(Cluster::new().leader(patient), Cluster::fault);
        let (exit, text, ran) = run_command(&cluster, code).await;
        assert_eq!((exit, ran), (wanted, times), "{row}: {text}");
        let record = cluster.made(&[]);
        assert_eq!(record["spec"]["commandWaits"], json!(true), "{row}");
        assert_eq!(record["spec"]["cancel"].is_null(), times == 1, "{row}: else the leader would wait for ever");
        if times == 1 {
            assert_eq!(record["spec"]["actionDone"]["failed"] == json!(true), code != 0, "{row}");
            assert_eq!(record["spec"]["claimed"]["by"], record["spec"]["actionDone"]["by"], "{row}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_lost_to_whoever_was_first() {
    let mut looks = 0;
    let cluster = Cluster::new().leader(move |record, _| {
        looks += 1;
        record["status"] = go("2026-11-30T02:00:00Z");
        if looks == 3 {
            record["spec"]["claimed"] = json!({"by": "ben", "at": "2026-11-30T01:00:02Z"});
        }
        if looks < 3 {
            // It changes at every look, so that no compare-and-swap can hit.
            record["status"]["greenSweeps"] = json!(looks);
        }
    });
    let cluster = (0..2).fold(cluster, |cluster, _| cluster.fault(Fault { code: 409, done: false, ..CLAIMED }));
    let (exit, _, ran) = run_command(&cluster, 0).await;
    assert_eq!((exit, ran), (Exit::Conflict, 0));
    assert_eq!(cluster.made(&[])["spec"]["claimed"]["by"], "ben");
}

#[tokio::test(start_paused = true)]
async fn without_a_valid_go_the_command_never_runs() {
    let end = |look, record: &mut Value, first: Value| {
        record["status"] = if look < 5 { first } else { status("Cancelled", "HandoverTimeout") };
    };
    let rows: Vec<(&str, Cluster, Exit)> = vec![
        (
            "it ended before",
            Cluster::new().leader(move |r, look| end(look, r, status("Draining", ""))),
            Exit::PersonNeeded,
        ),
        (
            "the go was over",
            Cluster::new().leader(move |r, look| end(look, r, go("2026-11-30T01:00:00Z"))),
            Exit::PersonNeeded,
        ),
        ("no leader", Cluster::new(), Exit::WaitedTooLong),
        (
            "rebooted elsewhere and proven",
            Cluster::new().leader(steps(vec![status("Succeeded", "RebootedElsewhere")])),
            Exit::PersonNeeded,
        ),
    ];
    for (row, cluster, wanted) in rows {
        let (exit, text, ran) = run_command(&cluster, 0).await;
        assert_eq!((exit, ran), (wanted, 0), "{row}: {text}");
        assert!(cluster.made(&[])["spec"]["claimed"].is_null(), "{row}");
    }
    let booted = Cluster::new().leader(move |r, look| end(look, r, go("2026-11-30T02:00:00Z")));
    booted.boot("b2");
    assert_eq!(run_command(&booted, 0).await.2, 0, "another boot than the go's");
    assert!(booted.made(&[])["spec"]["claimed"].is_null());
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_leaves_a_reboot_and_calls_off_a_command_that_nobody_would_run() {
    let cluster = Cluster::new().leader(steps(vec![status("Draining", "")]));
    assert_eq!(run_with(&cluster, REBOOT, Interrupts::one()).await, (Exit::Interrupted, String::new()));
    assert_eq!(cluster.writes(), ["POST "], "the run goes on");

    let waits = Cluster::new().leader(steps(vec![status("Draining", "")]));
    let (exit, text, ran) = run_command_with(&waits, 0, Interrupts::one()).await;
    assert_eq!((exit, ran), (Exit::Interrupted, 0), "{text}");
    assert!(waits.made(&[])["spec"]["cancel"]["by"].as_str().is_some_and(|by| by.starts_with("anna ")));

    // With the go at the first look the command is claimed before anything is heard; its end is said all the same.
    let runs = Cluster::new().leader(patient);
    let (exit, text, ran) = run_command_with(&runs, 0, Interrupts::one()).await;
    assert_eq!((exit, ran), (Exit::Fine, 1), "{text}");
    assert_eq!(runs.made(&[])["spec"]["actionDone"]["failed"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_resumed_run_is_watched_from_the_word_on() {
    let hears = |outcome: &'static str, phase: &'static str| {
        move |record: &mut Value, look: usize| {
            if !record["spec"]["resume"].is_null() && look > 3 {
                record["status"] = status(phase, outcome);
                record["status"]["stepStartedAt"] = json!("2026-11-30T01:00:05Z");
            }
        }
    };
    let rows: Vec<(&str, Cluster, Exit)> = vec![
        ("proven", Cluster::new().leader(hears("Proven", "Succeeded")), Exit::Fine),
        ("held again", Cluster::new().leader(hears("NotVerified", "Held")), Exit::PersonNeeded),
        ("nobody hears", Cluster::new(), Exit::WaitedTooLong),
    ];
    for (row, cluster, wanted) in rows {
        let cluster = cluster.record("r", "Held");
        assert_eq!(run(&cluster, &["resume", "r", "--wait", "--as", "anna"]).await.0, wanted, "{row}");
        assert_eq!(cluster.writes(), ["PATCH r resume"], "{row}: the word, and nothing else");
    }
    let moving = Cluster::new().record("r", "Draining");
    let (exit, text) = run(&moving, &["resume", "r"]).await;
    assert_eq!((exit, text.as_str()), (Exit::Conflict, "the run is Draining: only a held one can be resumed"));
    assert!(moving.writes().is_empty());
    let (exit, text) = run(&moving, &["resume", "worker2"]).await;
    assert_eq!((exit, text.as_str()), (Exit::Usage, "`worker2` is a node; the record of its run is r"));
    let (exit, text) = run(&moving, &["resume", "rr"]).await;
    assert_eq!((exit, text.as_str()), (Exit::Usage, "unknown record `rr`, did you mean `r`?; known: r"));
}
