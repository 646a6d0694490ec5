//! What a dump says and what it does not, kind by kind.

use std::fs;

use maint_core::facts::longhorn::Volume;
use maint_core::facts::{ConfigMap, HorizontalPodAutoscaler, Node, Pod, PodDisruptionBudget, VolumeAttachment};
use serde_json::json;

use super::*;

const AT: &str = "2026-11-30T01:00:00Z";

/// Reads files; paths in messages lose the folder.
fn read(files: &[(&str, String)], complete: bool) -> Result<(Dump, String), String> {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("written");
    }
    let prefix = format!("{}/", folder.path().display());
    match Dump::read(folder.path(), complete, Limits::default()) {
        Ok(dump) => Ok((dump, prefix)),
        Err(error) => Err(error.to_string().replace(&prefix, "")),
    }
}

/// A short text for what one kind became: `known 1 bad 0`, `absent`, `failed KIND: DETAIL`.
fn outcome<S: Source>(files: &[(&str, String)], complete: bool, settings: &Settings) -> String {
    outcome_of::<S>(files, complete, settings, &S::SPEC)
}

fn outcome_of<S: Source>(files: &[(&str, String)], complete: bool, settings: &Settings, row: &SourceSpec) -> String {
    let (dump, prefix) = match read(files, complete) {
        Ok(read) => read,
        Err(error) => return format!("error {error}"),
    };
    match (Reader { dump: &dump, settings, at: AT.parse().expect("a time") }).list::<S>(row) {
        Observation::NotAsked => "not asked".to_owned(),
        Observation::Absent { .. } => "absent".to_owned(),
        Observation::Failed { kind, detail, .. } => format!("failed {kind}: {}", detail.replace(&prefix, "")),
        Observation::Known { value, .. } => {
            let bad = value.iter().filter(|item| matches!(item, Item::Malformed(_))).count();
            format!("known {} bad {bad}", value.len() - bad)
        }
    }
}

fn node(name: &str, version: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "resourceVersion": version}, "spec": {},
           "status": {"nodeInfo": {"bootID": "b"}, "conditions": []}})
}

fn volume(name: &str, namespace: &str) -> Value {
    json!({"apiVersion": "longhorn.io/v1beta2", "kind": "Volume", "metadata": {"name": name, "namespace": namespace},
           "spec": {"numberOfReplicas": 3, "size": "1073741824", "migrationNodeID": ""},
           "status": {"state": "detached", "robustness": "unknown", "restoreRequired": false, "expansionRequired": false}})
}

fn list(items: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": items, "metadata": {"resourceVersion": ""}}).to_string()
}

fn crds(names: &[(&str, &str)]) -> String {
    let crd = |(group, kind): &(&str, &str)| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
               "metadata": {"name": format!("{kind}.{group}")}, "spec": {"group": group, "names": {"kind": kind}}})
    };
    list(&names.iter().map(crd).collect::<Vec<_>>())
}

fn forbidden(kind: &str, group: &str) -> String {
    json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403,
           "message": "no", "details": {"kind": kind, "group": group}})
    .to_string()
}

#[test]
fn a_list_is_read_in_every_form() {
    let typed = json!({"apiVersion": "v1", "kind": "NodeList", "items": [
        {"metadata": {"name": "a"}, "spec": {}, "status": {"nodeInfo": {"bootID": "b"}}}]});
    let rows: Vec<(&str, Vec<(&str, String)>, &str)> = vec![
        ("List of kubectl", vec![("x", list(&[node("a", "1"), node("b", "1")]))], "known 2 bad 0"),
        ("typed list of --raw", vec![("x", typed.to_string())], "known 1 bad 0"),
        ("a List of one", vec![("x", list(&[node("a", "1")]))], "known 1 bad 0"),
        (
            "one object does not tell whether there are others",
            vec![("x", node("a", "1").to_string())],
            "failed partial: the dump has single objects of kind Node (x) and no list",
        ),
        (
            "a list and one more",
            vec![("x", node("a", "1").to_string()), ("y", list(&[node("b", "1")]))],
            "known 2 bad 0",
        ),
        (
            "objects one after another",
            vec![("x", format!("{}\n{}", node("a", "1"), node("b", "1")))],
            "failed partial: the dump has single objects",
        ),
        ("two files", vec![("x", list(&[node("a", "1")])), ("y", list(&[node("b", "1")]))], "known 2 bad 0"),
        (
            "the same object twice",
            vec![("x", list(&[node("a", "1")])), ("y", node("a", "1").to_string())],
            "known 1 bad 0",
        ),
        (
            "a list in a list",
            vec![("x", list(&[serde_json::from_str(&list(&[node("a", "1")])).expect("JSON")]))],
            "known 1 bad 0",
        ),
        (
            "another group's Node is none of ours",
            vec![(
                "x",
                list(&[
                    node("a", "1"),
                    json!({"apiVersion": "longhorn.io/v1beta2", "kind": "Node", "metadata": {"name": "a"}}),
                ]),
            )],
            "known 1 bad 0",
        ),
        (
            "a bad item is kept",
            vec![(
                "x",
                list(&[node("a", "1"), json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "b"}})]),
            )],
            "known 1 bad 1",
        ),
        (
            "an empty typed list is empty",
            vec![("x", r#"{"apiVersion":"v1","kind":"NodeList","items":null}"#.to_owned())],
            "known 0 bad 0",
        ),
        (
            "a page of a longer list",
            vec![("x", r#"{"apiVersion":"v1","kind":"NodeList","items":[],"metadata":{"continue":"abc"}}"#.to_owned())],
            "failed partial: ",
        ),
    ];
    for (name, files, wanted) in rows {
        let got = outcome::<Node>(&files, false, &Settings::default());
        assert!(got.starts_with(wanted), "{name}: {got}");
    }
}

#[test]
fn single_objects_count_if_a_person_says_that_there_are_no_others() {
    let files = [
        ("x", format!("{}\n{}", node("a", "1"), node("b", "1"))),
        ("y.yaml", "---\n".to_owned() + &node("c", "1").to_string()),
    ];
    assert_eq!(outcome::<Node>(&files, true, &Settings::default()), "known 3 bad 0");
}

#[test]
fn yaml_of_kubectl() {
    let text = "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata:\n    labels:\n      a: \"true\"\n    name: a\n  \
                spec: {}\n  status:\n    nodeInfo:\n      bootID: b\nkind: List\nmetadata:\n  resourceVersion: \"\"\n";
    assert_eq!(outcome::<Node>(&[("nodes.yaml", text.to_owned())], false, &Settings::default()), "known 1 bad 0");
}

#[test]
fn an_empty_list_proves_nothing_unless_a_person_says_so() {
    let files = [("volumeattachments.yaml", list(&[])), ("nodes.json", list(&[node("a", "1")]))];
    let got = outcome::<VolumeAttachment>(&files, false, &Settings::default());
    assert!(got.starts_with("failed partial: ") && got.contains("/apis/storage.k8s.io/v1/volumeattachments"), "{got}");
    assert_eq!(outcome::<VolumeAttachment>(&files, true, &Settings::default()), "known 0 bad 0");
    // Without a name that tells the kind it says nothing of any.
    // kubectl's short names name a file as well.
    let files = [("pdb.json", list(&[])), ("nodes.json", list(&[node("a", "1")]))];
    assert_eq!(outcome::<PodDisruptionBudget>(&files, true, &Settings::default()), "known 0 bad 0");
    let files = [("all.json", list(&[]))];
    let got = outcome::<VolumeAttachment>(&files, true, &Settings::default());
    assert!(got.starts_with("failed partial: no file in the dump has kind VolumeAttachment"), "{got}");
    // volumeattachments.longhorn.io is another kind.
    let files = [("volumeattachments.longhorn.io.yaml", list(&[]))];
    assert!(outcome::<VolumeAttachment>(&files, true, &Settings::default()).starts_with("failed partial: no file"));
}

#[test]
fn a_kind_without_a_file() {
    let nodes = ("nodes.json", list(&[node("a", "1")]));
    let rows: Vec<(&str, Vec<(&str, String)>, &str)> = vec![
        (
            "no CRD list",
            vec![nodes.clone()],
            "failed partial: no file in the dump has kind Volume (longhorn.io), and no CRD list tells whether it exists; add \
             the output of `kubectl get crd -o yaml`",
        ),
        (
            "the CRD list lacks the group",
            vec![nodes.clone(), ("crd", crds(&[("helm.cattle.io", "HelmChart")]))],
            "absent",
        ),
        (
            "the CRD list has it",
            vec![nodes.clone(), ("crd", crds(&[("longhorn.io", "Volume")]))],
            "failed partial: no file in the dump has kind Volume (longhorn.io), whose group is in the CRD list; add the output \
             of `kubectl get volumes.longhorn.io -A -o yaml`",
        ),
        (
            "the CRD list has the group and lacks the kind",
            vec![nodes.clone(), ("crd", crds(&[("longhorn.io", "Engine")]))],
            "failed partial: no file in the dump has kind Volume",
        ),
        (
            "a single CRD is no list of CRDs",
            vec![
                nodes.clone(),
                (
                    "crd",
                    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "x"}, "spec": {"group": "x"}})
                    .to_string(),
                ),
            ],
            "failed partial: no file in the dump has kind Volume (longhorn.io), and no CRD list",
        ),
        (
            "a page of a list of CRDs proves nothing",
            vec![nodes.clone(), ("crd", crds(&[("x", "X")]).replace("\"resourceVersion\":\"\"", "\"continue\":\"c\""))],
            "failed partial: no file in the dump has kind Volume (longhorn.io), and no CRD list",
        ),
        (
            "an empty List of CRDs proves nothing",
            vec![nodes, ("crd.yaml", list(&[]))],
            "failed partial: no file in the dump has kind Volume (longhorn.io), and no CRD list",
        ),
    ];
    for (name, files, wanted) in rows {
        let got = outcome::<Volume>(&files, false, &Settings::default());
        assert!(got.starts_with(wanted), "{name}: {got}");
    }
    let got = outcome::<Pod>(&[("n", list(&[node("a", "1")]))], false, &Settings::default());
    assert_eq!(
        got,
        "failed partial: no file in the dump has kind Pod; add the output of `kubectl get pods -A -o yaml`"
    );
}

#[test]
fn a_status_stands_for_its_kind() {
    let volumes = || list(&[volume("v", "longhorn-system")]);
    let plain = |reason: &str, code: i64| {
        json!({"apiVersion": "v1", "kind": "Status", "reason": reason, "code": code, "message": "m"}).to_string()
    };
    let rows: Vec<(&str, Vec<(&str, String)>, &str)> = vec![
        (
            "by details",
            vec![("x", forbidden("volumes", "longhorn.io"))],
            "failed forbidden: x holds a Status Forbidden: no",
        ),
        ("by kind in details", vec![("x", forbidden("Volume", "longhorn.io"))], "failed forbidden: "),
        ("by the file's name", vec![("volumes.longhorn.io.json", plain("InternalError", 500))], "failed server: "),
        ("a timeout", vec![("volumes.longhorn.io.yaml", plain("Timeout", 504))], "failed timeout: "),
        (
            "beside a list it wins",
            vec![("a", volumes()), ("b", forbidden("volumes", "longhorn.io"))],
            "failed forbidden: ",
        ),
        (
            "before a list it wins",
            vec![("a", forbidden("volumes", "longhorn.io")), ("b", volumes())],
            "failed forbidden: ",
        ),
        ("another group's", vec![("a", volumes()), ("b", forbidden("volumes", "other.io"))], "known 1 bad 0"),
        ("of no kind", vec![("x", plain("Forbidden", 403))], "error x:1: is a Status that names no kind"),
    ];
    for (name, files, wanted) in rows {
        let got = outcome::<Volume>(&files, false, &Settings::default());
        assert!(got.starts_with(wanted), "{name}: {got}");
    }
}

#[test]
fn errors_name_file_line_and_what_to_do() {
    let n = |version: &str| node("a", version).to_string();
    let rows: Vec<(&str, Vec<(&str, String)>, &str)> = vec![
        ("foreign YAML", vec![("values.yaml", "\nreplicas: 3\n".to_owned())], "values.yaml:2: is no Kubernetes object"),
        (
            "foreign text",
            vec![("README.md", "# My dump\nof last night\n".to_owned())],
            "README.md:2: is no Kubernetes object",
        ),
        (
            "cut YAML",
            vec![("n.yaml", "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n".to_owned())],
            "n.yaml:1: has items and no kind",
        ),
        (
            "list without items",
            vec![("n", r#"{"apiVersion":"v1","kind":"NodeList"}"#.to_owned())],
            "n:1: is a NodeList without items",
        ),
        (
            "item that is none",
            vec![("n", r#"{"apiVersion":"v1","kind":"List","items":[1]}"#.to_owned())],
            "n:1: has an item that is no object",
        ),
        (
            "item without a kind",
            vec![("n", r#"{"apiVersion":"v1","kind":"List","items":[{}]}"#.to_owned())],
            "n:1: is no Kubernetes object",
        ),
        (
            "two moments",
            vec![("a", n("1")), ("b", format!("\n{}", n("2")))],
            "b:2: Node a differs from the one in a:1 (resourceVersion 2 and 1)",
        ),
        ("an empty file among good ones", vec![("a", n("1")), ("b", String::new())], "b: is empty"),
    ];
    for (name, files, wanted) in rows {
        let error = read(&files, false).expect_err(name);
        assert!(error.starts_with(wanted), "{name}: {error}");
        assert!(error.contains("\n  help: "), "{name}: {error}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let error = Dump::read(folder.path(), false, Limits::default()).expect_err("empty").to_string();
    assert!(error.contains("the folder has no files"), "{error}");
    fs::write(folder.path().join("n"), list(&[node("a", "1"), node("b", "1")])).expect("written");
    let limits = Limits { objects: 1, ..Limits::default() };
    let error = Dump::read(folder.path(), false, limits).expect_err("too many").to_string();
    assert!(error.contains("more than 1 objects"), "{error}");
}

#[test]
fn namespaces_follow_the_settings() {
    let settings = Settings::default();
    let pod = |namespace: &str, label: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": label, "namespace": namespace,
               "labels": {"k8s-app": label}}, "spec": {}, "status": {}})
    };
    let files = [("p", list(&[pod("kube-system", "kube-dns"), pod("media", "kube-dns"), pod("kube-system", "x")]))];
    assert_eq!(outcome::<Pod>(&files, false, &settings), "known 1 bad 0");

    let files = [("v", list(&[volume("v", "storage")]))];
    let got = outcome::<Volume>(&files, false, &settings);
    assert!(got.ends_with("are in storage, none in longhorn-system; set [longhorn] namespace"), "{got}");
    let mut elsewhere = settings.clone();
    elsewhere.longhorn.namespace = "storage".to_owned();
    assert_eq!(outcome::<Volume>(&files, false, &elsewhere), "known 1 bad 0");

    let map = |namespace: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt", "namespace": namespace}});
    let got = outcome::<ConfigMap>(&[("c", list(&[map("default")]))], false, &settings);
    assert!(got.contains("of namespace default only"), "{got}");
    assert_eq!(outcome::<ConfigMap>(&[("c", list(&[map("a"), map("b")]))], false, &settings), "known 0 bad 0");
}

#[test]
fn another_version_of_a_kind_is_malformed() {
    let hpa = json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "coredns", "namespace": "kube-system"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "coredns"}}});
    let files = [("h", list(&[hpa]))];
    assert_eq!(outcome::<HorizontalPodAutoscaler>(&files, false, &Settings::default()), "known 0 bad 1");
}

fn lease(name: &str, at: &str) -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
           "metadata": {"name": name, "namespace": "kube-node-lease"}, "spec": {"renewTime": at}})
}

#[test]
fn a_node_that_renews_its_lease_must_be_in_the_dump() {
    let rows = [
        ("both", "b", "2026-11-30T01:00:00Z", "known 1 bad 0"),
        ("one long dead", "b", "2026-11-30T00:59:10Z", "known 1 bad 0"),
        (
            "one left out",
            "b",
            "2026-11-30T00:59:20Z",
            "failed partial: the kubelet of b renews its Lease, and the dump has no Node b",
        ),
    ];
    for (name, other, at, wanted) in rows {
        let nodes = if name == "both" { list(&[node(other, "1")]) } else { list(&[node("a", "1")]) };
        let mut leases = vec![lease(other, at)];
        if name != "both" {
            leases.push(lease("a", "2026-11-30T01:00:00Z"));
        }
        let got = outcome::<Node>(&[("n", nodes), ("l", list(&leases))], false, &Settings::default());
        assert!(got.starts_with(wanted), "{name}: {got}");
    }
}

#[test]
fn the_newest_lease_is_the_clock() {
    let files = [(
        "l",
        list(&[lease("a", "2026-11-30T00:59:58.123456Z"), lease("b", "2026-11-30T00:59:50Z"), lease("c", "?")]),
    )];
    let newest = read(&files, false).expect("read").0.newest_lease();
    assert_eq!(newest.map(|at| at.to_string()).as_deref(), Some("2026-11-30T00:59:58.123456Z"));
    assert_eq!(outcome::<Lease>(&files, false, &Settings::default()), "known 2 bad 1");
    assert_eq!(read(&[("n", node("a", "1").to_string())], false).expect("read").0.newest_lease(), None);
}

#[test]
fn the_pods_of_daemon_sets_are_those_that_they_select() {
    let agent = |namespace: &str| {
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "cilium", "namespace": namespace},
               "spec": {"selector": {"matchLabels": {"k8s-app": "cilium"}}, "template": {"spec": {"containers": []}}},
               "status": {"desiredNumberScheduled": 2, "numberReady": 2}})
    };
    let pod = |name: &str, namespace: &str, app: &str| {
        json!({"apiVersion": "v1", "kind": "Pod",
               "metadata": {"name": name, "namespace": namespace, "labels": {"k8s-app": app}}, "spec": {}, "status": {}})
    };
    let pods = ("pods", list(&[pod("a", "net", "cilium"), pod("b", "net", "cilium"), pod("c", "net", "web")]));
    let rows = [
        ("selected", vec![("daemonsets", list(&[agent("net")])), pods.clone()], "known 2 bad 0"),
        (
            "no agents",
            vec![("daemonsets", list(&[node("a", "1")])), pods.clone()],
            "failed partial: the DaemonSets that tell",
        ),
        (
            "pods of another namespace only",
            vec![("daemonsets", list(&[agent("kube-system")])), pods.clone()],
            "failed partial: network agents run in kube-system, and the dump has no pods of it",
        ),
        (
            "one that cannot be understood",
            vec![
                (
                    "daemonsets",
                    list(&[json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "odd"}})]),
                ),
                pods,
            ],
            "failed partial: DaemonSet odd: status is missing: it may be the network agents'",
        ),
    ];
    for (row, files, wanted) in rows {
        let got = outcome_of::<Pod>(&files, false, &Settings::default(), &Pod::NETWORK_AGENTS);
        assert!(got.starts_with(wanted), "{row}: {got}");
    }
}
