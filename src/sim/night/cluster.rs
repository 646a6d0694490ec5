//! The healthy cluster that nights begin with, and the settings of the service.

use std::time::Duration;

use jiff::Timestamp;
use maint_core::config::{PodAction, Settings};
use serde_json::{Value, json};

use super::Scenario;
use crate::store::http::Inner;
use crate::store::object;
use crate::world::{self, fixture};

/// Three servers as k3s has them, Longhorn with two volumes, an autoscaler of CoreDNS, applications with budgets and
/// without, one DaemonSet, and a Lease that nobody holds.
pub fn healthy(inner: &mut Inner, seed: u64, now: Timestamp) {
    fixture::three_servers(inner, seed, now);
    fixture::register_longhorn(&mut inner.store, now);
    let mut objects: Vec<Value> = Vec::new();
    objects.extend(fixture::volume("data", &["n2", "n1"], now));
    objects.extend(fixture::volume("logs", &["n3", "n2"], now));
    let attached: [(&str, &[&str]); 3] = [("n1", &[]), ("n2", &["data-e-0"]), ("n3", &["logs-e-0"])];
    for (node, engines) in attached {
        objects.extend(fixture::longhorn_node(node, engines, now));
    }
    objects.extend([fixture::longhorn_attachment("data", "n2"), fixture::longhorn_attachment("logs", "n3")]);
    objects.push(
        json!({"apiVersion": "longhorn.io/v1beta2", "kind": "Setting", "value": "block-if-contains-last-replica",
        "metadata": {"name": "node-drain-policy", "namespace": fixture::LONGHORN_NAMESPACE}}),
    );
    objects.push(fixture::autoscaler(now));
    objects.push(lease("kube-system", "kube-controller-manager", Some("n2"), now));
    objects.push(lease("maint", "maint", None, now));
    // Without a budget; on the target it is moved all the same.
    objects.extend(fixture::application("default", "free", &json!({"app": "free"}), 4).into_iter().take(1));
    for object in objects {
        inner.store.seed(object, now);
    }
}

fn lease(namespace: &str, name: &str, holder: Option<&str>, now: Timestamp) -> Value {
    let spec = match holder {
        Some(holder) => json!({"holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 1,
            "renewTime": object::micros(now)}),
        None => json!({"leaseDurationSeconds": 30, "leaseTransitions": 3}),
    };
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "namespace": namespace}, "spec": spec})
}

/// The pace of the world: quick reboots, and etcd heartbeats that need not be waited for five minutes.
#[must_use]
pub fn pace() -> world::Settings {
    let (reboot, etcd_period) = (Duration::from_secs(20), Duration::from_secs(30));
    world::Settings { reboot, etcd_period, ..world::Settings::default() }
}

/// The settings of the service: the defaults, with shorter waits where they only cost time.
#[must_use]
pub fn settings(scenario: &Scenario) -> Settings {
    let mut settings = quick(Settings::default());
    settings.action.pod = PodAction { enabled: true, image: "sim@sha256:00".to_owned(), ..PodAction::default() };
    (scenario.configure)(&mut settings);
    settings
}

/// Shorter waits where they only cost time.
pub(super) const fn quick(mut settings: Settings) -> Settings {
    settings.run.drain_timeout_seconds = 90;
    settings.run.verify_timeout_seconds = 90;
    settings.run.sweeps = 2;
    settings.run.sweep_interval_seconds = 10;
    settings.run.settle_for_seconds = 10;
    settings
}
