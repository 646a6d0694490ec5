//! The objects of an installation: kured's DaemonSet in its two common forms, its account and its rights.

use serde_json::{Value, json};

/// The name of DaemonSet, account, roles and bindings.
pub const NAME: &str = "kured";

/// Where kured's flags and names come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `kured-ds.yaml` of a release: kube-system, all flags in `command`, label `name=kured`.
    Manifest,
    /// The Helm chart: the program in `command`, the flags in `args`, recommended labels with the chart's version.
    Chart,
}

/// kured's DaemonSet with these flags and this version.
#[must_use]
pub fn daemonset(form: Form, namespace: &str, version: &str, flags: &[String]) -> Value {
    let program = "/usr/bin/kured".to_owned();
    let (selector, labels) = match form {
        Form::Manifest => (json!({"name": NAME}), json!({"name": NAME})),
        Form::Chart => (
            json!({"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": NAME}),
            json!({"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": NAME,
                "app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": "kured-6.1.0"}),
        ),
    };
    let mut container = json!({
        "name": NAME, "image": format!("ghcr.io/kubereboot/kured:{version}"), "imagePullPolicy": "IfNotPresent",
        "securityContext": {"privileged": true, "readOnlyRootFilesystem": true},
        "ports": [{"containerPort": 8080, "name": "metrics"}],
        "env": [{"name": "KURED_NODE_ID", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "volumeMounts": [{"mountPath": "/sentinel", "name": "sentinel", "readOnly": true}],
    });
    let own = match form {
        Form::Manifest => vec!["--reboot-sentinel=/sentinel/reboot-required".to_owned()],
        Form::Chart => vec![
            format!("--ds-name={NAME}"),
            format!("--ds-namespace={namespace}"),
            "--metrics-port=8080".to_owned(),
            "--reboot-sentinel=/sentinel/reboot-required".to_owned(),
        ],
    };
    let flags: Vec<String> = own.into_iter().chain(flags.iter().cloned()).collect();
    match form {
        Form::Manifest => {
            container["command"] = json!(std::iter::once(program).chain(flags).collect::<Vec<_>>());
        }
        Form::Chart => {
            container["command"] = json!([program]);
            container["args"] = json!(flags);
        }
    }
    let tolerations: Vec<Value> = ["control-plane", "master"]
        .map(|role| json!({"key": format!("node-role.kubernetes.io/{role}"), "effect": "NoSchedule"}))
        .to_vec();
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": NAME, "namespace": namespace, "labels": labels},
        "spec": {
            "selector": {"matchLabels": selector}, "updateStrategy": {"type": "RollingUpdate"},
            "template": {"metadata": {"labels": labels}, "spec": {
                "serviceAccountName": NAME, "tolerations": tolerations, "hostPID": true, "restartPolicy": "Always",
                "volumes": [{"name": "sentinel", "hostPath": {"path": "/var/run", "type": "Directory"}}],
                "containers": [container],
            }},
        },
    })
}

/// Account, rights and bindings, each with the path that it is created at. They are `kured-rbac.yaml` of a release;
/// the account itself stands in `kured-ds.yaml`, and without it the DaemonSet makes no pods.
#[must_use]
pub fn access(form: Form, namespace: &str) -> Vec<(String, Value)> {
    let group = "rbac.authorization.k8s.io";
    let api = format!("/apis/{group}/v1");
    let own = match form {
        Form::Manifest => json!(["update"]),
        Form::Chart => json!(["update", "patch"]),
    };
    let subjects = json!([{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}]);
    let reference = |kind: &str| json!({"apiGroup": group, "kind": kind, "name": NAME});
    let rules = json!([
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "delete", "get"]},
        {"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
    ]);
    let lock = json!([{"apiGroups": ["apps"], "resources": ["daemonsets"], "resourceNames": [NAME], "verbs": own}]);
    let named = |kind: &str, rest: Value| {
        let mut object = json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": NAME}});
        if let (Some(object), Some(rest)) = (object.as_object_mut(), rest.as_object()) {
            object.extend(rest.clone());
        }
        object
    };
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME}});
    vec![
        (format!("/api/v1/namespaces/{namespace}/serviceaccounts"), account),
        (format!("{api}/clusterroles"), named("ClusterRole", json!({"rules": rules}))),
        (
            format!("{api}/clusterrolebindings"),
            named("ClusterRoleBinding", json!({"roleRef": reference("ClusterRole"), "subjects": subjects})),
        ),
        (format!("{api}/namespaces/{namespace}/roles"), named("Role", json!({"rules": lock}))),
        (
            format!("{api}/namespaces/{namespace}/rolebindings"),
            named("RoleBinding", json!({"roleRef": reference("Role"), "subjects": subjects})),
        ),
    ]
}
