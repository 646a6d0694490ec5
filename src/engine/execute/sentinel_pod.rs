//! The short pods that put kured's sentinel file on a node and take it away.
//!
//! kured's own mount of the file is read-only, so a pod with the file's folder as a host path is the way; it needs no
//! privilege beyond that path. Where SELinux confines containers, its namespace must let them write there.

use maint_core::config::SentinelPod;
use serde_json::{Value, json};

/// Makes the file where there is none, on the boot that it was asked for only. The file says whose it is.
const MAKE: &str = r#"now="$(cat /proc/sys/kernel/random/boot_id)"
if [ "$now" != "$EXPECTED_BOOT_ID" ]; then
  echo "boot $now is not $EXPECTED_BOOT_ID: nothing to do"
  exit 0
fi
if (set -C; echo "$MARK" > "$FILE") 2>/dev/null; then
  echo "made $FILE"
elif [ -e "$FILE" ]; then
  echo "$FILE was there: left as it is"
else
  echo "$FILE could not be made"
  exit 1
fi"#;

/// Removes the file where it still says that it is ours.
const REMOVE: &str = r#"if [ ! -e "$FILE" ]; then
  echo "$FILE is gone"
elif [ "$(cat "$FILE")" != "$MARK" ]; then
  echo "$FILE is not ours: left as it is"
else
  rm "$FILE" && echo "removed $FILE"
fi"#;

/// Seconds after which the kubelet ends the pod.
const DEADLINE_SECONDS: i64 = 120;
/// Where the file's folder is in the pod.
const FOLDER: &str = "/sentinel";

/// One of the two pods.
pub(super) struct Asked<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// The node.
    pub(super) node: &'a str,
    /// The file on the node, an absolute path.
    pub(super) path: &'a str,
    /// What the file says.
    pub(super) mark: &'a str,
    /// The boot on which it is wanted; none: it is taken away.
    pub(super) wanted_on: Option<&'a str>,
}

/// The pod. It is bound to the node by name: the node is cordoned, the scheduler would not place it.
pub(super) fn manifest(settings: &SentinelPod, asked: &Asked<'_>) -> Value {
    let (folder, file) = asked.path.rsplit_once('/').unwrap_or_default();
    let folder = if folder.is_empty() { "/" } else { folder };
    let script = if asked.wanted_on.is_some() { MAKE } else { REMOVE };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": asked.name, "namespace": settings.namespace,
            "labels": {"app.kubernetes.io/managed-by": "maint", "maint.dev/action": "sentinel"},
        },
        "spec": {
            "nodeName": asked.node,
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "activeDeadlineSeconds": DEADLINE_SECONDS,
            "terminationGracePeriodSeconds": 5,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{
                "name": "sentinel",
                "image": settings.image,
                "command": ["/bin/sh", "-c", script],
                "env": [
                    {"name": "FILE", "value": format!("{FOLDER}/{file}")},
                    {"name": "MARK", "value": asked.mark},
                    {"name": "EXPECTED_BOOT_ID", "value": asked.wanted_on.unwrap_or_default()},
                ],
                "securityContext": {
                    "privileged": false, "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                    "runAsUser": 0, "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": [{"name": "folder", "mountPath": FOLDER}],
                "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
            }],
            "volumes": [{"name": "folder", "hostPath": {"path": folder, "type": "Directory"}}],
        },
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::*;

    fn asked(wanted_on: Option<&str>) -> Asked<'_> {
        let (name, node, path) = ("maint-a-sentinel", "worker2", "/var/run/reboot-required");
        Asked { name, node, path, mark: "maint u-1", wanted_on }
    }

    #[test]
    fn it_has_one_folder_of_its_node_and_no_privilege() {
        let settings = SentinelPod { image: "busybox@sha256:00".into(), ..SentinelPod::default() };
        let pod = manifest(&settings, &asked(Some("boot-1")));
        assert_eq!(pod["spec"]["nodeName"], "worker2");
        assert_eq!(pod["metadata"]["namespace"], "maint-actions");
        assert_eq!(pod["spec"]["volumes"][0]["hostPath"]["path"], "/var/run");
        let container = &pod["spec"]["containers"][0];
        assert_eq!(container["env"][0]["value"], "/sentinel/reboot-required");
        assert_eq!(container["securityContext"]["privileged"], false);
        assert_eq!(container["securityContext"]["capabilities"]["drop"], json!(["ALL"]));
        assert!(pod["spec"]["hostPID"].is_null());
    }

    /// Runs a script as the pod would, with the file at another place.
    fn run(script: &str, file: &Path, boot: &str) -> (bool, String) {
        let output = Command::new("/bin/sh")
            .args(["-c", script])
            .envs([("FILE", file.as_os_str()), ("MARK", "maint u-1".as_ref()), ("EXPECTED_BOOT_ID", boot.as_ref())])
            .output()
            .expect("a shell");
        let said = String::from_utf8_lossy(&output.stdout).replace(&file.display().to_string(), "FILE");
        (output.status.success(), said.trim().to_owned())
    }

    #[test]
    fn the_scripts_touch_nothing_that_is_not_ours() {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("Linux");
        let boot = boot.trim();
        let folder = std::env::temp_dir().join(format!("maint-sentinel-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("reboot-required");
        let says = || std::fs::read_to_string(&file).unwrap_or_default();
        let nowhere = folder.join("no/such/folder");

        let (fine, said) = run(MAKE, &file, "another");
        assert!(fine && said.ends_with("nothing to do") && !file.exists(), "{said}");
        assert_eq!(run(MAKE, &file, boot), (true, "made FILE".to_owned()));
        assert_eq!(says(), "maint u-1\n");
        assert_eq!(run(MAKE, &file, boot), (true, "FILE was there: left as it is".to_owned()));
        assert_eq!(run(REMOVE, &file, ""), (true, "removed FILE".to_owned()));
        assert_eq!(run(REMOVE, &file, ""), (true, "FILE is gone".to_owned()));
        assert_eq!(run(MAKE, &nowhere, boot), (false, "FILE could not be made".to_owned()));
        std::fs::write(&file, "*** System restart required ***\n").expect("written");
        assert_eq!(run(MAKE, &file, boot), (true, "FILE was there: left as it is".to_owned()));
        assert_eq!(run(REMOVE, &file, ""), (true, "FILE is not ours: left as it is".to_owned()));
        assert_eq!(says(), "*** System restart required ***\n");
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
