//! What a row looks at, and what an operator or maint does to the objects.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::world::{Did, World};
use crate::doubles::kured::calls;
use crate::store::ObjectKey;

impl World {
    fn daemonset() -> ObjectKey {
        ObjectKey::new("apps", "daemonsets", "kube-system", "kured")
    }

    pub fn lock(&self) -> Option<String> {
        let daemonset = self.store.object(&Self::daemonset()).expect("the DaemonSet");
        calls::annotation(daemonset, "weave.works/kured-node-lock").map(str::to_owned)
    }

    pub fn set_lock(&mut self, value: Option<&str>) {
        self.store.edit(&Self::daemonset(), |daemonset| {
            let annotations = calls::member(calls::member(daemonset, "metadata"), "annotations");
            let annotations = annotations.as_object_mut().expect("a map");
            match value {
                Some(value) => annotations.insert("weave.works/kured-node-lock".to_owned(), json!(value)),
                None => annotations.remove("weave.works/kured-node-lock"),
            };
        });
    }

    /// maint's edit of the lock: the node was cordoned before.
    pub fn edit_lock(&mut self) {
        let lock = self.lock().expect("a lock").replace(r#""unschedulable":false"#, r#""unschedulable":true"#);
        self.set_lock(Some(&lock));
    }

    pub fn holds(&self, node: &str) -> bool {
        self.lock().is_some_and(|lock| lock.contains(&format!(r#""nodeID":"{node}""#)))
    }

    pub fn node(&self, node: &str) -> &Value {
        self.store.object(&ObjectKey::node(node)).expect("the node")
    }

    pub fn cordon(&mut self, node: &str) {
        self.store.edit(&ObjectKey::node(node), |node| node["spec"]["unschedulable"] = json!(true));
    }

    pub fn is_cordoned(&self, node: &str) -> bool {
        self.node(node)["spec"]["unschedulable"] == true
    }

    pub fn has_taint(&self, node: &str) -> bool {
        let taints = self.node(node)["spec"]["taints"].as_array();
        taints.into_iter().flatten().any(|taint| taint["effect"] == "PreferNoSchedule")
    }

    pub fn is_in_progress(&self, node: &str) -> bool {
        calls::annotation(self.node(node), calls::IN_PROGRESS).is_some()
    }

    /// A running pod; one of kured's own DaemonSet if it is named so.
    pub fn pod(&mut self, node: &str, name: &str) {
        let own = name.starts_with("kured");
        let owners = if own {
            json!([{"kind": "DaemonSet", "name": "kured", "controller": true, "uid": "x"}])
        } else {
            json!([])
        };
        let namespace = if own { "kube-system" } else { "default" };
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace,
            "labels": {"app": name.split('-').next(), "name": name}, "ownerReferences": owners},
            "spec": {"nodeName": node, "containers": [{"name": "main", "image": "i"}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
        self.store.seed(pod, self.now);
    }

    /// A pod whose budget allows nothing: a drain can only run out of time.
    pub fn stuck_pod(&mut self, node: &str) {
        let name = format!("stuck-{node}");
        self.pod(node, &name);
        let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"name": name}}},
            "status": {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1,
                "observedGeneration": 1}});
        self.store.seed(budget, self.now);
    }

    pub fn free_stuck_pod(&mut self, node: &str) {
        self.store.remove(&ObjectKey::new("policy", "poddisruptionbudgets", "default", &format!("stuck-{node}")));
    }

    /// Who rebooted, in order.
    pub fn rebooted(&self) -> String {
        self.reboots.iter().map(|did| did.node.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// Which nodes are cordoned.
    pub fn cordoned(&self) -> String {
        self.hosts.keys().filter(|node| self.is_cordoned(node)).cloned().collect::<Vec<_>>().join(" ")
    }

    /// Lines of a node's log that contain a text.
    pub fn said<'a>(&'a self, node: &'a str, text: &'a str) -> impl Iterator<Item = &'a Did> {
        self.logs.iter().filter(move |did| did.node == node && did.what.contains(text))
    }

    pub fn says(&self, node: &str, text: &str) -> bool {
        self.said(node, text).next().is_some()
    }

    /// Requests of a node, by their shorthand.
    pub fn made<'a>(&'a self, node: &'a str, what: &'a str) -> impl Iterator<Item = &'a Did> {
        self.calls.iter().filter(move |did| did.node == node && did.what == what)
    }

    /// Seconds since the beginning of the world.
    pub fn clock(&self, at: Timestamp) -> f64 {
        at.duration_since(self.begin).as_secs_f64()
    }
}
