//! Odd, and right.

use super::*;

pub(super) const HEALTHY: &[Row] = &[
    ("B50: all whole", same, start, PASS, PASSED, DRAINABLE),
    ("B26: replicas = nodes = 3, all clean", same, start, PASS, PASSED, DRAINABLE),
    ("cordon-only", same, cordon_only, PASS, PASSED, WHOLE),
    (
        "Longhorn does not run on the target",
        |w| {
            w.of(SourceId::LonghornNodes).retain(|one| one["metadata"]["name"] != "worker2");
            without_manager(w, "worker2");
            without_replicas(w, "worker2");
        },
        start,
        PASS,
        PASSED,
        "all 2 Longhorn nodes are Ready, with what a drain of worker2 needs of them",
    ),
    (
        "two minutes in the life of a node: no disk yet",
        |w| member(w, "worker3")["spec"]["disks"] = json!({}),
        start,
        PASS,
        PASSED,
        DRAINABLE,
    ),
    (
        "an emptied node: eviction requested and granted",
        |w| {
            member(w, "worker3")["spec"]["evictionRequested"] = json!(true);
            member(w, "worker3")["spec"]["allowScheduling"] = json!(false);
            without_replicas(w, "worker3");
        },
        start,
        PASS,
        PASSED,
        DRAINABLE,
    ),
    (
        "an emptied disk beside one that is used",
        |w| {
            let emptied = json!({"path": "/mnt/old", "allowScheduling": false, "evictionRequested": true});
            member(w, "worker3")["spec"]["disks"]["old"] = emptied;
            let mut report = member(w, "worker3")["status"]["diskStatus"]["default"].clone();
            report["diskUUID"] = json!("disk-old");
            member(w, "worker3")["status"]["diskStatus"]["old"] = report;
        },
        start,
        PASS,
        PASSED,
        DRAINABLE,
    ),
    (
        "a full disk where nothing is to be placed",
        |w| {
            disk(w, "worker3")["allowScheduling"] = json!(false);
            disk_says(w, "worker3", "Schedulable", "False", "DiskPressure");
        },
        start,
        PASS,
        PASSED,
        DRAINABLE,
    ),
    (
        "an empty leftover of an upgrade beside the new instance manager",
        |w| {
            let mut old = instance_manager("worker3", &[]);
            old["metadata"]["name"] = json!("instance-manager-old");
            old["status"] = json!({"currentState": "stopped", "instanceEngines": null, "instanceReplicas": null});
            w.of(SourceId::LonghornInstanceManagers).push(old);
        },
        start,
        PASS,
        PASSED,
        DRAINABLE,
    ),
    (
        "an old instance manager with the engines of volumes that are attached since before an upgrade",
        |w| {
            let mut old = instance_manager("worker2", &["pvc-b-e-0"]);
            old["metadata"]["name"] = json!("instance-manager-old");
            w.of(SourceId::LonghornInstanceManagers).push(old);
            *manager(w, "worker2") = instance_manager("worker2", &[]);
        },
        start,
        PASS,
        PASSED,
        DRAINABLE,
    ),
    (
        "Longhorn 1.4: an engine and a replica manager on each node",
        |w| {
            let mut engines = Vec::new();
            for one in w.of(SourceId::LonghornInstanceManagers) {
                let mut other = one.clone();
                one["spec"]["type"] = json!("replica");
                one["spec"].as_object_mut().expect("an object").remove("dataEngine");
                one["status"] =
                    json!({"currentState": "running", "instances": {"pvc-a-r-x": {"status": {"state": "running"}}}});
                let name = other["metadata"]["name"].as_str().expect("a name").replace("manager", "manager-e");
                other["metadata"]["name"] = json!(name);
                other["spec"]["type"] = json!("engine");
                other["status"] = json!({"currentState": "running", "instances": {}});
                engines.push(other);
            }
            w.of(SourceId::LonghornInstanceManagers).extend(engines);
        },
        start,
        PASS,
        PASSED,
        DRAINABLE,
    ),
    (
        "only data engine v2, and a node that is kept from it",
        |w| {
            setting(w, "v1-data-engine", "false");
            without_manager(w, "worker3");
            without_replicas(w, "worker3");
        },
        start,
        PASS,
        PASSED,
        DRAINABLE,
    ),
    (
        "the target's instance manager is about to start",
        |w| manager(w, "worker2")["status"]["currentState"] = json!("starting"),
        start,
        PASS,
        PASSED,
        DRAINABLE,
    ),
    (
        "a node that the settings ignore",
        |w| {
            says(w, "worker3", "Ready", "False", "ManagerPodMissing");
            w.named(SourceId::Nodes, "worker3")["metadata"]["labels"] = json!({});
        },
        |c| c.settings.limits.ignore_nodes = vec!["worker3".to_owned()],
        PASS,
        PASSED,
        DRAINABLE,
    ),
    (
        "B29: Longhorn lets go of what was attached by hand",
        |w| {
            setting(w, "detach-manually-attached-volumes-when-cordoned", "true");
            w.of(SourceId::LonghornAttachments).push(longhorn_attachment("pvc-c", "longhorn-api", "worker2"));
        },
        start,
        PASS,
        PASSED,
        DRAINABLE,
    ),
    (
        "B29: by hand, on another node",
        |w| w.of(SourceId::LonghornAttachments).push(longhorn_attachment("pvc-c", "longhorn-api", "worker1")),
        start,
        PASS,
        PASSED,
        DRAINABLE,
    ),
    (
        "B29: by hand, and nothing is drained",
        |w| w.of(SourceId::LonghornAttachments).push(longhorn_attachment("pvc-c", "longhorn-api", "worker2")),
        cordon_only,
        PASS,
        PASSED,
        WHOLE,
    ),
    (
        "B25: a replica on the target that was never used",
        |w| {
            for node in ["worker1", "worker2", "worker3"] {
                replica(w, "pvc-c", node)["spec"]["healthyAt"] = json!("");
            }
            without_budget(w, "worker2");
        },
        start,
        PASS,
        PASSED,
        DRAINABLE,
    ),
    (
        "B27: a stopped replica, and the policy lets it be",
        |w| {
            setting(w, "node-drain-policy", "allow-if-replica-is-stopped");
            w.of(SourceId::LonghornReplicas).retain(|one| one["spec"]["volumeName"] == "pvc-c");
            without_budget(w, "worker1");
            without_budget(w, "worker3");
        },
        start,
        PASS,
        PASSED,
        DRAINABLE,
    ),
    (
        "no budget anywhere, and a policy that asks for none",
        |w| {
            setting(w, "node-drain-policy", "always-allow");
            w.of(SourceId::PodDisruptionBudgets).clear();
        },
        start,
        PASS,
        PASSED,
        DRAINABLE,
    ),
    ("one of the other two copies is enough", |w| without_budget(w, "worker3"), start, PASS, PASSED, DRAINABLE),
    (
        "block-for-eviction-if-contains-last-replica, and none is the last",
        |w| setting(w, "node-drain-policy", "block-for-eviction-if-contains-last-replica"),
        start,
        PASS,
        PASSED,
        DRAINABLE,
    ),
    (
        "B35: shared volumes elsewhere",
        |w| {
            share(w, "running");
            volume(w, "pvc-b")["status"]["currentNodeID"] = json!("worker1");
            manager(w, "worker2")["status"]["instanceEngines"] = Value::Null;
        },
        start,
        PASS,
        PASSED,
        DRAINABLE,
    ),
    (
        "a shared volume that is attached for a rebuild only",
        |w| {
            share(w, "stopped");
            volume(w, "pvc-b")["status"]["currentNodeID"] = json!("worker2");
            w.named(SourceId::LonghornAttachments, "pvc-b")["spec"]["attachmentTickets"] = json!({});
        },
        handover,
        PASS,
        PASSED,
        "Longhorn is whole without worker2",
    ),
];
