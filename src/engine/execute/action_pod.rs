//! The short-lived privileged pod that makes a node go down.

use maint_core::config::PodAction;
use serde_json::{Value, json};

/// Compares the boot ID first: a pod that starts again after the reboot, or on a node that was rebooted meanwhile,
/// does nothing. What follows is run in the host's namespaces.
const SCRIPT: &str = r#"now="$(cat /proc/sys/kernel/random/boot_id)"
if [ "$now" != "$EXPECTED_BOOT_ID" ]; then
  echo "boot $now is not $EXPECTED_BOOT_ID: nothing to do"
  exit 0
fi
exec nsenter --target 1 --mount --uts --ipc --net --pid -- "$@""#;

/// Seconds after which the kubelet ends the pod if the command hangs.
const DEADLINE_SECONDS: i64 = 300;

/// The pod. It is bound to the node by name: the node is cordoned, the scheduler would not place it.
pub(super) fn manifest(action: &PodAction, name: &str, node: &str, boot_id: &str) -> Value {
    let mut command = vec!["/bin/sh", "-c", SCRIPT, "maint"];
    command.extend(action.command.iter().map(String::as_str));
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": action.namespace,
            "labels": {"app.kubernetes.io/managed-by": "maint", "maint.dev/action": "pod"},
            "annotations": {"maint.dev/reboot-action": "true"},
        },
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "hostPID": true,
            "automountServiceAccountToken": false,
            "activeDeadlineSeconds": DEADLINE_SECONDS,
            "terminationGracePeriodSeconds": 5,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{
                "name": "action",
                "image": action.image,
                "command": command,
                "env": [{"name": "EXPECTED_BOOT_ID", "value": boot_id}],
                "securityContext": {"privileged": true, "runAsUser": 0},
                "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
            }],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_acts_on_one_boot_only_and_is_bound_to_its_node() {
        let action = PodAction { image: "busybox@sha256:00".into(), ..PodAction::default() };
        let pod = manifest(&action, "maint-a", "worker2", "boot-1");
        assert_eq!(pod["spec"]["nodeName"], "worker2");
        let container = &pod["spec"]["containers"][0];
        assert_eq!(container["env"][0]["value"], "boot-1");
        let script = container["command"][2].as_str().expect("a script");
        let (compare, act) = (script.find("EXPECTED_BOOT_ID"), script.find("nsenter"));
        assert!(compare < act, "the boot ID is compared before anything is done");
        assert_eq!(container["command"][4], "systemctl");
    }
}
