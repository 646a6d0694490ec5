//! `maint lock release`: what is written, and what is not.

use super::{Exit, run};
use crate::cli::tests::cluster::Cluster;

const GHOST: &str =
    r#"{"nodeID":"worker9","metadata":{"unschedulable":false},"created":"2026-11-20T01:00:00Z","TTL":0}"#;
const NODE: &str = r#"{"nodeID":"worker1","TTL":0}"#;
const OURS: &str = r#"{"nodeID":"maint:worker2","maint":{"maintenance":"r"}}"#;

/// Name, lock, concurrency, phase of record `r` of worker2, arguments, exit, what is said, the lock afterwards.
type Row<'a> = (&'a str, Option<&'a str>, usize, &'a str, &'a [&'a str], Exit, &'a str, Option<&'a str>);

#[tokio::test(start_paused = true)]
async fn a_person_takes_a_holder_out() {
    let two = format!(r#"{{"locks":[{GHOST},{NODE}],"maxOwners":2}}"#);
    let one = r#"{"locks":[{"TTL":0,"nodeID":"worker1"}],"maxOwners":2}"#;
    let held: &[&str] = &["--holder", "worker9"];
    let rows: [Row<'_>; 15] = [
        ("a ghost", Some(GHOST), 1, "Succeeded", held, Exit::Fine, "", None),
        ("a ghost of two", Some(&two), 2, "Succeeded", held, Exit::Fine, "", Some(one)),
        (
            "a node, without a word",
            Some(NODE),
            1,
            "Succeeded",
            &["--holder", "worker1"],
            Exit::Usage,
            "say --yes if you are sure",
            Some(NODE),
        ),
        ("a node", Some(NODE), 1, "Succeeded", &["--holder", "worker1", "--yes"], Exit::Fine, "", None),
        (
            "nobody",
            Some(NODE),
            1,
            "Succeeded",
            held,
            Exit::Usage,
            "worker9 is not in the lock; in it: worker1",
            Some(NODE),
        ),
        ("a free lock", None, 1, "Succeeded", held, Exit::Conflict, "the lock is free", None),
        (
            "garbage by a name",
            Some("anna"),
            1,
            "Succeeded",
            &["--holder", "anna", "--yes"],
            Exit::Usage,
            "the lock is no JSON",
            Some("anna"),
        ),
        (
            "garbage, without a word",
            Some("anna"),
            1,
            "Succeeded",
            &["--garbage"],
            Exit::Usage,
            "before: anna",
            Some("anna"),
        ),
        ("garbage", Some("anna"), 1, "Succeeded", &["--garbage", "--yes"], Exit::Fine, "", None),
        ("the wrong format", Some(NODE), 2, "Succeeded", &["--garbage", "--yes"], Exit::Fine, "", None),
        (
            "no garbage",
            Some(GHOST),
            1,
            "Succeeded",
            &["--garbage", "--yes"],
            Exit::Usage,
            "the lock is no garbage",
            Some(GHOST),
        ),
        (
            "a hold in use",
            Some(OURS),
            1,
            "BackingOut",
            &["--holder", "maint:worker2", "--yes"],
            Exit::Conflict,
            "the run r (BackingOut) needs it",
            Some(OURS),
        ),
        (
            "a hold that is over",
            Some(OURS),
            1,
            "Cancelled",
            &["--holder", "maint:worker2", "--yes"],
            Exit::Fine,
            "",
            None,
        ),
        (
            "another DaemonSet",
            Some(GHOST),
            1,
            "Succeeded",
            &["--holder", "worker9", "--daemon-set", "a/b"],
            Exit::Usage,
            "there are: kube-system/kured",
            Some(GHOST),
        ),
        (
            "this DaemonSet",
            Some(GHOST),
            1,
            "Succeeded",
            &["--holder", "worker9", "--daemon-set", "kube-system/kured"],
            Exit::Fine,
            "",
            None,
        ),
    ];
    for (row, lock, concurrency, phase, arguments, exit, said, after) in rows {
        let cluster = Cluster::new().record("r", phase).kured(lock, concurrency);
        let (got, text) = run(&cluster, &[&["lock", "release"], arguments].concat()).await;
        assert_eq!(got, exit, "{row}: {text}");
        assert!(text.contains(said), "{row}: {text}");
        assert_eq!(cluster.lock().as_deref(), after, "{row}");
        assert_eq!(cluster.writes().len(), usize::from(exit == Exit::Fine), "{row}: one write, or none");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_changed_is_not_written_over() {
    for (row, then) in [("taken by another", Some(NODE)), ("given back", None)] {
        let cluster = Cluster::new().record("r", "Succeeded").kured(Some(GHOST), 1).lock_becomes(then);
        let (exit, text) = run(&cluster, &["lock", "release", "--holder", "worker9"]).await;
        assert_eq!(exit, Exit::Conflict, "{row}: {text}");
        assert!(text.contains("kured's lock is no longer what was read"), "{row}: {text}");
        assert_eq!(cluster.lock().as_deref(), then, "{row}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_kured_there_is_nothing_to_release() {
    let cluster = Cluster::new().record("r", "Succeeded");
    let (exit, text) = run(&cluster, &["lock", "release", "--holder", "worker9"]).await;
    assert_eq!((exit, text.as_str()), (Exit::Usage, "kured is not installed, and left no lock behind"));
}
