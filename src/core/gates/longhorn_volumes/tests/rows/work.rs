//! Attached volumes that something is at work on, and volumes in transition.

use super::*;

pub(super) const WORK: &[Row] = &[
    (
        "a replica that the engine knows by address and not by mode",
        |w| remove(&mut w.engine("pvc-a")["replicaModeMap"], "pvc-a-r-worker3"),
        BLOCK,
        Reason::LonghornVolumeRebuilding,
        "volume pvc-a (media/pvc-a) is rebuilding replica r-worker3",
    ),
    (
        "mode WO although robustness lags",
        |w| w.engine("pvc-a")["replicaModeMap"]["pvc-a-r-worker3"] = json!("WO"),
        BLOCK,
        Reason::LonghornVolumeRebuilding,
        "volume pvc-a (media/pvc-a) is rebuilding replica r-worker3",
    ),
    (
        "isRebuilding alone",
        |w| w.engine("pvc-a")["rebuildStatus"] = json!({"tcp://worker3:10000": {"isRebuilding": true, "progress": 99}}),
        BLOCK,
        Reason::LonghornVolumeRebuilding,
        "volume pvc-a (media/pvc-a) is rebuilding replica r-worker3 at 99 %",
    ),
    (
        "a finished rebuild stays in the status",
        |w| {
            w.engine("pvc-a")["rebuildStatus"] =
                json!({"tcp://worker3:10000": {"isRebuilding": false, "progress": 100, "state": "complete"}});
        },
        PASS,
        PASSED,
        FINE,
    ),
    (
        "a rebuild at work while rebuilding is disabled says so",
        |w| {
            w.set("concurrent-replica-rebuild-per-node-limit", "0");
            w.rebuild("pvc-a", "worker3", 7);
        },
        BLOCK,
        Reason::LonghornVolumeRebuilding,
        "volume pvc-a (media/pvc-a) is rebuilding replica r-worker3 at 7 %; rebuilding is disabled \
         (concurrent-replica-rebuild-per-node-limit = 0), so it never heals by itself",
    ),
    (
        "a mode that is not known",
        |w| w.engine("pvc-a")["replicaModeMap"]["pvc-a-r-x"] = json!("RO"),
        UNKNOWN,
        Reason::ObservationMalformed,
        "volume pvc-a (media/pvc-a) has replica r-x in mode `RO`, which this version does not know",
    ),
    (
        "B49: a replica is to be moved away",
        |w| w.replica("pvc-a", "worker3")["evictionRequested"] = json!(true),
        BLOCK,
        Reason::LonghornVolumeRebuilding,
        "volume pvc-a (media/pvc-a) has a replica that is to be moved away: r-worker3 on worker3",
    ),
    (
        "B49: the same in status, as before 1.6",
        |w| {
            let replica = World::find(&mut w.docs.replicas, "pvc-a-r-worker3");
            remove(&mut replica["spec"], "evictionRequested");
            replica["status"]["evictionRequested"] = json!(true);
        },
        BLOCK,
        Reason::LonghornVolumeRebuilding,
        "volume pvc-a (media/pvc-a) has a replica that is to be moved away: r-worker3 on worker3",
    ),
    (
        "a replica that is placed and not filled yet",
        |w| {
            let mut new = longhorn_replica("pvc-a", "worker3");
            new["metadata"]["name"] = json!("pvc-a-r-new");
            new["spec"]["healthyAt"] = json!("");
            w.docs.replicas.push(new);
        },
        BLOCK,
        Reason::LonghornVolumeRebuilding,
        "volume pvc-a (media/pvc-a) has a replica that is yet to be filled: r-new on worker3",
    ),
    (
        "B42: the engine expands",
        |w| w.engine("pvc-a")["isExpanding"] = json!(true),
        BLOCK,
        Reason::LonghornVolumeExpanding,
        "volume pvc-a (media/pvc-a) is being expanded",
    ),
    (
        "B42: a detached volume that is to grow",
        |w| w.status("pvc-c")["expansionRequired"] = json!(true),
        BLOCK,
        Reason::LonghornVolumeExpanding,
        "volume pvc-c (media/pvc-c) is being expanded",
    ),
    (
        "B42: wanted and real size differ",
        |w| w.spec("pvc-a")["size"] = json!("3221225472"),
        BLOCK,
        Reason::LonghornVolumeExpanding,
        "volume pvc-a (media/pvc-a) is being expanded: its engine has 2147483648 of 3221225472 bytes",
    ),
    (
        "the engine does not tell its size",
        |w| remove(w.engine("pvc-a"), "currentSize"),
        UNKNOWN,
        Reason::ObservationMalformed,
        "volume pvc-a (media/pvc-a) has an engine that does not tell its size",
    ),
    (
        "the engine does not say whether it expands",
        |w| remove(w.engine("pvc-a"), "isExpanding"),
        UNKNOWN,
        Reason::ObservationMalformed,
        "volume pvc-a (media/pvc-a) has an engine that does not say whether it expands",
    ),
    (
        "the engine is not running",
        |w| w.engine("pvc-a")["currentState"] = json!("error"),
        BLOCK,
        Reason::LonghornVolumeRobustnessUnknown,
        "volume pvc-a (media/pvc-a) is attached, but its engine is error",
    ),
    (
        "attached without an engine",
        |w| w.docs.engines.retain(|engine| engine["spec"]["volumeName"] != "pvc-a"),
        UNKNOWN,
        Reason::LonghornVolumeRobustnessUnknown,
        "volume pvc-a (media/pvc-a) is attached and has no engine: what its copies do cannot be told",
    ),
    (
        "attached with an engine in deletion",
        |w| World::find(&mut w.docs.engines, "pvc-a-e-0")["metadata"]["deletionTimestamp"] = json!(ago(3)),
        UNKNOWN,
        Reason::LonghornVolumeRobustnessUnknown,
        "volume pvc-a (media/pvc-a) is attached and has no engine: what its copies do cannot be told",
    ),
    (
        "two engines",
        |w| {
            let mut second = longhorn_engine("pvc-a", &NODES);
            second["metadata"]["name"] = json!("pvc-a-e-1");
            w.docs.engines.push(second);
        },
        BLOCK,
        Reason::LonghornVolumeMigrating,
        "volume pvc-a (media/pvc-a) has 2 engines: it is being migrated or switched over",
    ),
    (
        "migrating",
        |w| w.spec("pvc-a")["migrationNodeID"] = json!("worker3"),
        BLOCK,
        Reason::LonghornVolumeMigrating,
        "volume pvc-a (media/pvc-a) is migrating to node worker3",
    ),
    (
        "switching over",
        |w| w.status("pvc-a")["switchoverState"] = json!("suspending"),
        BLOCK,
        Reason::LonghornVolumeMigrating,
        "volume pvc-a (media/pvc-a) is switching its engine over (suspending)",
    ),
    (
        "restoring, by condition in the old spelling",
        |w| {
            w.status("pvc-a")["restoreRequired"] = json!(true);
            w.status("pvc-a")["conditions"][1] =
                json!({"type": "restore", "status": "True", "reason": "RestoreInProgress", "message": ""});
        },
        BLOCK,
        Reason::LonghornVolumeRestoring,
        "volume pvc-a (media/pvc-a) is being restored from a backup (RestoreInProgress)",
    ),
    (
        "a detached volume that is yet to be restored",
        |w| w.status("pvc-c")["restoreRequired"] = json!(true),
        BLOCK,
        Reason::LonghornVolumeRestoring,
        "volume pvc-c (media/pvc-c) waits to be restored from a backup",
    ),
    (
        "Standby: restoring right now",
        |w| {
            w.spec("pvc-a")["Standby"] = json!(true);
            w.engine("pvc-a")["restoreStatus"] = json!({"tcp://worker1:10000": {"isRestoring": true}});
        },
        BLOCK,
        Reason::LonghornVolumeRestoring,
        "volume pvc-a (media/pvc-a) is being restored from a backup",
    ),
    (
        "attaching, since its attachment was made",
        |w| {
            w.status("pvc-a")["state"] = json!("attaching");
            w.attachments[0]["metadata"]["creationTimestamp"] = json!(ago(300));
            w.attachments[0]["status"]["attached"] = json!(false);
        },
        BLOCK,
        Reason::LonghornVolumeInTransition,
        "volume pvc-a (media/pvc-a) is attaching for 300 s",
    ),
    (
        "B33: attaching for too long",
        |w| {
            w.status("pvc-a")["state"] = json!("attaching");
            w.spec("pvc-a")["accessMode"] = json!("rwx");
            w.attachments[0]["metadata"]["creationTimestamp"] = json!(ago(301));
            w.attachments[0]["status"]["attached"] = json!(false);
        },
        BLOCK,
        Reason::LonghornVolumeInTransition,
        "volume pvc-a (media/pvc-a) is attaching for 301 s, longer than 300 s: stuck",
    ),
    (
        "B46: detaching, since its attachment was to go",
        |w| {
            w.status("pvc-a")["state"] = json!("detaching");
            w.attachments[0]["metadata"]["deletionTimestamp"] = json!(ago(400));
        },
        BLOCK,
        Reason::LonghornVolumeInTransition,
        "volume pvc-a (media/pvc-a) is detaching for 400 s, longer than 300 s: stuck",
    ),
    (
        "creating",
        |w| w.status("pvc-c")["state"] = json!("creating"),
        BLOCK,
        Reason::LonghornVolumeInTransition,
        "volume pvc-c (media/pvc-c) is creating for 864000 s, longer than 300 s: stuck",
    ),
    (
        "detaching, and nothing tells since when",
        |w| w.status("pvc-b")["state"] = json!("detaching"),
        BLOCK,
        Reason::LonghornVolumeInTransition,
        "volume pvc-b (media/pvc-b) is detaching",
    ),
];
