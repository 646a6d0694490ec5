//! What makes a drain hard: pods that stay, budgets that lag, operators that take their time, webhooks that refuse.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::TARGET;
use crate::invariants::History;
use crate::kinds::FaultKind;
use crate::random::Random;
use crate::store::http::Inner;
use crate::store::{ObjectKey, Webhook};
use crate::trace::Step;
use crate::world::{self, FINALIZER_ANNOTATION, ROLE_LABEL, START_ANNOTATION, STUCK_ANNOTATION, SWITCHOVER_ANNOTATION};

/// One trouble. Times are in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The disruption controller looks so late.
    SlowBudgets(u64),
    /// A pod is Ready so long after it was bound.
    SlowStart(u64),
    /// A budget of its own over several pods on the target, whose successors are Ready so late.
    Crowd {
        /// Pods, all over the cluster.
        replicas: i64,
        /// From the binding of a successor to Ready.
        start: u64,
    },
    /// A pod on the target whose finalizer somebody takes off so long after its deletion; none: nobody does.
    Finalizer(Option<u64>),
    /// A pod on the target that its kubelet does not end.
    Stuck,
    /// A database whose primary is on the target; its operator moves it so long after the cordon.
    Primary(u64),
    /// A StatefulSet all over the cluster: its pods come back by the same name on another node.
    Successors,
    /// A webhook refuses the evictions of a pod on the target so often; none: always.
    Webhook(Option<u32>),
    /// A namespace ends while it has a pod on the target.
    EndingNamespace,
}

/// How they are named in labels and objects.
const CROWD: &str = "crowd";
/// The label by which a database of CloudNativePG is known.
const DATABASE: &str = "cnpg.io/cluster";

impl Trouble {
    /// Whether a drain cannot end while it lasts.
    #[must_use]
    pub const fn is_endless(self) -> bool {
        matches!(self, Self::Finalizer(None) | Self::Stuck | Self::Webhook(None) | Self::EndingNamespace)
    }

    /// Which kind of trouble it is.
    #[must_use]
    pub const fn kind(self) -> FaultKind {
        match self {
            Self::SlowBudgets(_) => FaultKind::SlowBudgets,
            Self::SlowStart(_) => FaultKind::SlowStart,
            Self::Crowd { .. } => FaultKind::Crowd,
            Self::Finalizer(Some(_)) => FaultKind::Finalizer,
            Self::Finalizer(None) => FaultKind::FinalizerStays,
            Self::Stuck => FaultKind::StuckPod,
            Self::Primary(_) => FaultKind::Switchover,
            Self::Successors => FaultKind::SameName,
            Self::Webhook(Some(_)) => FaultKind::Webhook,
            Self::Webhook(None) => FaultKind::WebhookStays,
            Self::EndingNamespace => FaultKind::EndingNamespace,
        }
    }

    /// How the pods begin that make it; none where it slows all of them.
    #[must_use]
    pub const fn pods(self) -> Option<&'static str> {
        match self {
            Self::SlowBudgets(_) | Self::SlowStart(_) => None,
            Self::Crowd { .. } => Some("crowd-"),
            Self::Finalizer(_) => Some("kept-"),
            Self::Stuck => Some("stuck-"),
            Self::Primary(_) => Some("db-"),
            Self::Successors => Some("ledger-"),
            Self::Webhook(_) => Some("moved-"),
            Self::EndingNamespace => Some("leaving-"),
        }
    }

    /// Puts what it needs into the cluster.
    pub fn prepare(self, inner: &mut Inner, now: Timestamp) {
        match self {
            Self::SlowBudgets(_) | Self::SlowStart(_) => {}
            Self::Crowd { replicas, start } => {
                let notes = json!({START_ANNOTATION: start.to_string()});
                seed(inner, now, &set("Deployment", CROWD, "default", replicas, &template(CROWD, &notes, &[], false)));
                seed(inner, now, &budget(CROWD, &json!({"maxUnavailable": 1, "selector": app(CROWD)})));
            }
            Self::Finalizer(freed) => {
                let notes = freed.map_or_else(|| json!({}), |after| json!({FINALIZER_ANNOTATION: after.to_string()}));
                let pods = template("kept", &notes, &["example.com/kept"], true);
                seed(inner, now, &set("StatefulSet", "kept", "default", 1, &pods));
            }
            Self::Stuck => {
                let pods = template("stuck", &json!({STUCK_ANNOTATION: "true"}), &[], true);
                seed(inner, now, &set("StatefulSet", "stuck", "default", 1, &pods));
            }
            Self::Primary(after) => primary(inner, now, after),
            Self::Successors => {
                seed(
                    inner,
                    now,
                    &set("StatefulSet", "ledger", "default", 3, &template("ledger", &json!({}), &[], false)),
                );
                seed(inner, now, &budget("ledger", &json!({"maxUnavailable": 1, "selector": app("ledger")})));
            }
            Self::Webhook(left) => {
                let pods = template("moved", &json!({}), &[], true);
                seed(inner, now, &set("StatefulSet", "moved", "default", 1, &pods));
                inner.store.webhooks.set(Webhook {
                    name: "drain.example.com".to_owned(),
                    namespace: "default".to_owned(),
                    label: ("app".to_owned(), "moved".to_owned()),
                    message: "the pod is moved by its operator".to_owned(),
                    code: 0,
                    left,
                });
            }
            Self::EndingNamespace => {
                seed(inner, now, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "leaving"}}));
                let pods = template("leaving", &json!({}), &[], true);
                seed(inner, now, &set("StatefulSet", "leaving", "leaving", 1, &pods));
            }
        }
    }

    /// Changes how long things take.
    pub fn pace(self, settings: &mut world::Settings) {
        match self {
            Self::SlowBudgets(seconds) => settings.budget_lag = Duration::from_secs(seconds),
            Self::SlowStart(seconds) => settings.start = Duration::from_secs(seconds),
            _ => {}
        }
    }

    /// One of each kind, by chance how bad.
    pub fn all(random: &mut Random) -> Vec<Self> {
        let mut all = Self::passing(random).to_vec();
        all.push(Self::EndingNamespace);
        all.extend(Self::ENDLESS);
        all
    }

    /// What never ends.
    const ENDLESS: [Self; 3] = [Self::Finalizer(None), Self::Stuck, Self::Webhook(None)];

    /// What ends by itself, or lets the drain go on.
    fn passing(random: &mut Random) -> [Self; 7] {
        [
            Self::SlowBudgets(1 + random.below(8)),
            Self::SlowStart(3 + random.below(12)),
            Self::Crowd { replicas: 4 + i64::try_from(random.below(6)).unwrap_or(0), start: random.below(15) },
            Self::Finalizer(Some(random.below(40))),
            Self::Primary(random.below(40)),
            Self::Successors,
            Self::Webhook(Some(1 + u32::try_from(random.below(4)).unwrap_or(0))),
        ]
    }

    /// Some of them, by chance.
    pub fn draw(random: &mut Random) -> Vec<Self> {
        let all = Self::passing(random);
        let mut drawn: Vec<Self> = all.into_iter().filter(|_| random.chance(400)).collect();
        // What never ends is there now and then, and ends the run at its deadline.
        for endless in Self::ENDLESS {
            if random.chance(60) {
                drawn.push(endless);
            }
        }
        distinct(drawn)
    }
}

/// Of a trouble that passes and one of the same pods that never ends only the latter is there.
pub fn distinct(mut drawn: Vec<Trouble>) -> Vec<Trouble> {
    let endless: Vec<Trouble> = drawn.iter().copied().filter(|one| one.is_endless()).collect();
    let same = |one: &Trouble, other: &Trouble| std::mem::discriminant(one) == std::mem::discriminant(other);
    drawn.retain(|one| one.is_endless() || !endless.iter().any(|other| same(one, other)));
    drawn
}

/// How often each kind of trouble was hit, with what made the drain hard: it was if the service asked for such a pod's
/// eviction, or for any where it slows all.
pub(super) fn met(
    troubles: &[Trouble],
    history: &History,
    others: &BTreeMap<FaultKind, u64>,
) -> BTreeMap<FaultKind, u64> {
    let mut found = others.clone();
    let arrived = |step: &&Step| step.subresource == "eviction" && step.client.starts_with("maint") && step.code != 0;
    // A namespace counts when it ends.
    for trouble in troubles.iter().filter(|one| **one != Trouble::EndingNamespace) {
        let concerns = |step: &&Step| trouble.pods().is_none_or(|pods| step.name.starts_with(pods));
        let count = history.steps.iter().filter(arrived).filter(concerns).count();
        if count > 0 {
            *found.entry(trouble.kind()).or_insert(0) += count as u64;
        }
    }
    found
}

/// What ends the troubles that nobody else ends: the webhook is gone, the namespace's pods are deleted.
pub fn relent(inner: &mut Inner, now: Timestamp) {
    inner.store.webhooks.remove("drain.example.com");
    let Some(kind) = inner.store.kinds().find("", "v1", "pods").cloned() else { return };
    let key = ObjectKey::pod("leaving", "leaving-0");
    if inner.store.object(&key).is_some() {
        let context = crate::store::Context::new(now, "namespace-controller");
        // It may be ending already.
        let _ended =
            inner.store.delete(&kind, "leaving", "leaving-0", &crate::store::DeleteOptions::default(), &context);
    }
}

/// The namespace begins to end; nothing can be created in it from now on.
pub fn leave(inner: &mut Inner, now: Timestamp) {
    inner.store.edit(&ObjectKey::new("", "namespaces", "", "leaving"), |namespace| {
        let at = json!(crate::store::object::seconds(now));
        crate::store::object::set_meta(namespace, "deletionTimestamp", at);
        namespace["status"]["phase"] = json!("Terminating");
    });
}

fn seed(inner: &mut Inner, now: Timestamp, object: &Value) {
    inner.store.seed(object.clone(), now);
}

fn app(name: &str) -> Value {
    json!({"matchLabels": {"app": name}})
}

fn template(name: &str, annotations: &Value, finalizers: &[&str], on_target: bool) -> Value {
    let mut spec = json!({"terminationGracePeriodSeconds": 30, "containers": [{"name": "main", "image": name}]});
    if on_target {
        spec["nodeSelector"] = json!({"kubernetes.io/hostname": TARGET});
    }
    json!({"metadata": {"labels": {"app": name}, "annotations": annotations, "finalizers": finalizers}, "spec": spec})
}

fn set(kind: &str, name: &str, namespace: &str, replicas: i64, template: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": replicas, "selector": app(name), "template": template}})
}

fn budget(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"}, "spec": spec})
}

/// Three instances, the primary on the target: a budget holds it for as long as it is that, another keeps one replica.
fn primary(inner: &mut Inner, now: Timestamp, after: u64) {
    let mut database = set("StatefulSet", "db", "default", 3, &template("db", &json!({}), &[], false));
    database["metadata"]["uid"] = json!("db");
    database["spec"]["template"]["metadata"]["labels"][DATABASE] = json!("db");
    database["metadata"]["annotations"] = json!({SWITCHOVER_ANNOTATION: after.to_string()});
    seed(inner, now, &database);
    for (index, (node, role)) in [(TARGET, "primary"), ("n2", "replica"), ("n3", "replica")].into_iter().enumerate() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("db-{index}"),
            "namespace": "default", "labels": {"app": "db", DATABASE: "db", ROLE_LABEL: role}, "ownerReferences": [{"apiVersion": "apps/v1",
                "kind": "StatefulSet", "name": "db", "uid": "db", "controller": true}]},
            "spec": {"nodeName": node, "terminationGracePeriodSeconds": 30, "containers": [{"name": "main", "image": "db"}]},
            "status": {"phase": "Pending"}});
        seed(inner, now, &pod);
    }
    let primary = json!({"matchLabels": {DATABASE: "db", ROLE_LABEL: "primary"}});
    seed(inner, now, &budget("db-primary", &json!({"minAvailable": 1, "selector": primary})));
    let others = json!({"matchLabels": {"app": "db"},
        "matchExpressions": [{"key": ROLE_LABEL, "operator": "NotIn", "values": ["primary"]}]});
    seed(inner, now, &budget("db", &json!({"minAvailable": 1, "selector": others})));
}
