//! Who may do what in the cluster: the manifests of `deploy/` are made from this table, and nothing else gives a right.
//!
//! What is read follows from [`SOURCES`]; what is written is one row for each write of the engine's ports. No row has a
//! wildcard, reads a Secret or gets into a container. What a right cannot be narrowed to in RBAC stands in its `why`.

mod manifest;

use crate::facts::{Namespaces, SOURCES, SourceSpec};

use super::names;

/// maint's namespace in the manifests, equal to the default of the setting `namespace`.
pub const OWN: &str = "maint";
/// The namespace of the pods that act on nodes, equal to the default of `[action.pod] namespace`.
pub const ACTIONS: &str = "maint-actions";
/// Where kured runs by its own manifest and by its chart's documentation.
pub const KURED: &str = "kube-system";
/// Events about objects without a namespace (Nodes, records) must be in this one (validation of events.k8s.io/v1).
const EVENTS: &str = "default";

/// Who has the right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Account {
    /// The service.
    Service,
    /// The matrix' own account: `get nodes/proxy` runs commands in every pod (kubernetes/kubernetes issue 119640), so
    /// the token that the service uses all day does not have it.
    Probe,
    /// People who look: `status`, `show`, `history`, `report`, `lock show`.
    Viewer,
    /// People and programs that judge: `check`, but for the matrix.
    Checker,
    /// People who act: `reboot`, `run`, `resume`, `cancel`, `done`, `halt`, `hold`.
    Operator,
}

impl Account {
    /// In the order of the manifests.
    pub const ALL: &'static [Self] = &[Self::Service, Self::Probe, Self::Viewer, Self::Checker, Self::Operator];

    /// Name of its roles, and of its service account where it has one.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Service => "maint",
            Self::Probe => names::PROBE_ACCOUNT,
            Self::Viewer => "maint-viewer",
            Self::Checker => "maint-checker",
            Self::Operator => "maint-operator",
        }
    }

    /// Whether it is a service account of ours; roles of people are bound by whoever installs maint.
    #[must_use]
    pub const fn is_ours(self) -> bool {
        matches!(self, Self::Service | Self::Probe)
    }
}

/// Where a right holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Cluster-scoped objects, and all namespaces.
    Cluster,
    /// One namespace.
    Namespace(&'static str),
}

/// The folder of `deploy/` that grants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// `deploy/base`
    Base,
    /// `deploy/actions`: action `pod`.
    Actions,
    /// `deploy/kured`
    Kured,
}

/// What a right is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A kind, or a subresource of it.
    Resource {
        /// API group; empty for core.
        group: &'static str,
        /// Plural name, with `/subresource` where it is one.
        resource: &'static str,
        /// Only objects of these names; none means all. It cannot narrow `create` and `list`.
        names: &'static [&'static str],
    },
    /// A path that is no resource.
    Path(&'static str),
}

/// One right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// Who.
    pub account: Account,
    /// By which folder.
    pub part: Part,
    /// Where.
    pub place: Place,
    /// On what.
    pub subject: Subject,
    /// The verbs of RBAC.
    pub verbs: &'static [&'static str],
    /// What for; a comment in the manifest.
    pub why: &'static str,
}

/// A row without its account: kind, place, verbs, why.
type Row = (Place, Subject, &'static [&'static str], &'static str);

const fn all(group: &'static str, resource: &'static str) -> Subject {
    Subject::Resource { group, resource, names: &[] }
}

const fn named(group: &'static str, resource: &'static str, names: &'static [&'static str]) -> Subject {
    Subject::Resource { group, resource, names }
}

const CLUSTER: Place = Place::Cluster;
const IN_OWN: Place = Place::Namespace(OWN);
const COORDINATION: &str = "coordination.k8s.io";
const EVENTS_GROUP: &str = "events.k8s.io";

/// What the service does beyond listing: a row for each write of the engine.
const SERVICE: &[Row] = &[
    (CLUSTER, all("", "nodes"), &["watch"], "wake up when a node changes"),
    (CLUSTER, all("", "pods"), &["watch"], "look at a pod right before its eviction; wake up when it is gone"),
    (CLUSTER, all("policy", "poddisruptionbudgets"), &["watch"], "wake up when a budget has room again"),
    (CLUSTER, all("apps", "daemonsets"), &["watch"], "wake up when kured takes its lock"),
    (CLUSTER, all(names::GROUP, "maintenances"), &["get", "watch"], "read a record again; wake up when one changes"),
    (CLUSTER, all("", "nodes"), &["patch"], "cordon, uncordon, owner and proof, each guarded by resourceVersion"),
    (CLUSTER, all("", "pods/eviction"), &["create"], "drain; pods are never deleted"),
    (CLUSTER, all(names::GROUP, "maintenances"), &["create"], "write a wish down"),
    (CLUSTER, all(names::GROUP, "maintenances"), &["patch"], "the finalizer, and when a standby was asked"),
    (CLUSTER, all(names::GROUP, "maintenances/status"), &["update"], "the state of a run"),
    (CLUSTER, all(names::GROUP, "maintenancereports"), &["create"], "reports and post-checks"),
    (CLUSTER, all(names::GROUP, "maintenancereports/status"), &["update"], "reports and post-checks"),
    (IN_OWN, all(COORDINATION, "leases"), &["create"], "the leader's Lease; RBAC cannot narrow create to a name"),
    (IN_OWN, named(COORDINATION, "leases", &[names::LEASE]), &["get", "update"], "the leader's Lease"),
    (IN_OWN, all("", "configmaps"), &["create"], "maint-state; RBAC cannot narrow create to a name"),
    (IN_OWN, named("", "configmaps", &[names::STATE_CONFIG_MAP]), &["patch"], "what a leader leaves"),
    (
        IN_OWN,
        named("", "serviceaccounts/token", &[names::PROBE_ACCOUNT]),
        &["create"],
        "a token of ten minutes for the matrix, see runbooks/decisions/0009-probe-account.md",
    ),
    (IN_OWN, all(EVENTS_GROUP, "events"), &["create", "patch"], "Events about our own pods"),
    (
        Place::Namespace(EVENTS),
        all(EVENTS_GROUP, "events"),
        &["create", "patch"],
        "Events about nodes and records, which have no namespace of their own",
    ),
];

/// Action `pod` and the pod that sets kured's sentinel.
const SERVICE_ACTIONS: &[Row] = &[(
    Place::Namespace(ACTIONS),
    all("", "pods"),
    &["create", "delete"],
    "pods that act on a node; whoever may create pods here is root on every node",
)];

/// kured's lock.
const SERVICE_KURED: &[Row] = &[(
    Place::Namespace(KURED),
    named("apps", "daemonsets", &["kured"]),
    &["patch"],
    "kured's lock is an annotation of its DaemonSet; RBAC cannot narrow patch to it, and kured's pods are privileged",
)];

/// Nothing else, ever.
const PROBE: &[Row] = &[
    (CLUSTER, all("", "nodes/proxy"), &["get"], "the matrix: a fresh dial and /healthz of every kubelet"),
    (CLUSTER, Subject::Path("/readyz"), &["get"], "each API server, where system:public-info-viewer was taken away"),
];

const VIEWER: &[Row] = &[
    (CLUSTER, all(names::GROUP, "maintenances"), &["get", "list", "watch"], "runs"),
    (CLUSTER, all(names::GROUP, "maintenancereports"), &["get", "list", "watch"], "reports"),
    (CLUSTER, all("", "nodes"), &["list"], "cordons, holds and proofs"),
    (CLUSTER, all("apps", "daemonsets"), &["list"], "kured's lock, and whether kured asks us"),
    (IN_OWN, all("", "configmaps"), &["get", "list"], "halt, state and configuration"),
    (IN_OWN, named(COORDINATION, "leases", &[names::LEASE]), &["get"], "who leads"),
];

/// Beyond what a viewer has.
const OPERATOR: &[Row] = &[
    (
        CLUSTER,
        all(names::GROUP, "maintenances"),
        &["create", "patch"],
        "ask for a run, say a word in it; with deploy/actions a record can start a privileged pod",
    ),
    (
        CLUSTER,
        all("", "nodes"),
        &["patch"],
        "hold and release a node; RBAC cannot narrow it to an annotation, so it also cordons, labels and taints",
    ),
    (IN_OWN, all("", "configmaps"), &["create"], "the first halt; RBAC cannot narrow create to a name"),
    (IN_OWN, named("", "configmaps", &[names::CONTROL_CONFIG_MAP]), &["patch"], "halt and unhalt"),
];

/// Every right, in the order of the manifests.
#[must_use]
pub fn grants() -> Vec<Grant> {
    let mut grants = Vec::new();
    let mut add = |account, part, rows: &[Row]| {
        for (place, subject, verbs, why) in rows {
            grants.push(Grant { account, part, place: *place, subject: *subject, verbs, why });
        }
    };
    let reads = reads();
    add(Account::Service, Part::Base, &reads);
    add(Account::Service, Part::Base, SERVICE);
    add(Account::Service, Part::Actions, SERVICE_ACTIONS);
    add(Account::Service, Part::Kured, SERVICE_KURED);
    add(Account::Probe, Part::Base, PROBE);
    add(Account::Viewer, Part::Base, VIEWER);
    add(Account::Checker, Part::Base, &reads);
    add(Account::Operator, Part::Base, VIEWER);
    add(Account::Operator, Part::Base, OPERATOR);
    grants
}

/// What the sources list. Kinds of which only some namespaces are read are granted in all: which ones is a setting, and
/// a kind whose namespace does not exist (Longhorn's) could not be granted there. ConfigMaps are the exception.
fn reads() -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for SourceSpec { group, resource, namespaces, .. } in SOURCES {
        let place = match namespaces {
            Namespaces::Own => IN_OWN,
            _ => CLUSTER,
        };
        let row: Row = (place, all(group, resource), &["list"], "what the gates read");
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    rows
}

/// The roles and bindings of a folder, as YAML.
#[must_use]
pub fn manifest(part: Part) -> String {
    manifest::text(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;

    fn has(account: Account, verb: &str, wanted: &str) -> bool {
        grants().iter().any(|grant| {
            let same = matches!(grant.subject, Subject::Resource { resource, .. } if resource == wanted);
            grant.account == account && same && grant.verbs.contains(&verb)
        })
    }

    #[test]
    fn no_right_is_wider_than_its_use() {
        let never = ["secrets", "pods/exec", "pods/attach", "pods/portforward", "roles", "clusterroles", "*"];
        let verbs = ["get", "list", "watch", "create", "update", "patch", "delete"];
        for grant in grants() {
            assert!(!grant.why.is_empty() && grant.verbs.iter().all(|verb| verbs.contains(verb)), "{grant:?}");
            match grant.subject {
                Subject::Resource { group, resource, names } => {
                    assert!(!never.contains(&resource) && group != "*", "{grant:?}");
                    let deletes = grant.verbs.contains(&"delete");
                    assert!(!deletes || grant.place == Place::Namespace(ACTIONS), "{grant:?}");
                    let narrowed = !names.is_empty() && resource != "serviceaccounts/token";
                    let blind = grant.verbs.iter().any(|verb| matches!(*verb, "create" | "list" | "watch"));
                    assert!(!(narrowed && blind), "names do not narrow these verbs: {grant:?}");
                    assert!(resource != "serviceaccounts/token" || names == [names::PROBE_ACCOUNT], "{grant:?}");
                }
                Subject::Path(path) => assert_eq!(path, "/readyz"),
            }
        }
    }

    #[test]
    fn only_the_probe_reaches_kubelets_and_it_does_nothing_else() {
        for account in Account::ALL {
            assert_eq!(has(*account, "get", "nodes/proxy"), *account == Account::Probe, "{account:?}");
        }
        assert_eq!(grants().iter().filter(|grant| grant.account == Account::Probe).count(), 2);
    }

    #[test]
    fn people_have_what_their_verbs_need() {
        // Account, verb, resource, wanted.
        let rows = [
            (Account::Viewer, "list", "maintenances", true),
            (Account::Viewer, "patch", "maintenances", false),
            (Account::Viewer, "create", "maintenances", false),
            (Account::Viewer, "patch", "configmaps", false),
            (Account::Viewer, "patch", "nodes", false),
            (Account::Viewer, "list", "daemonsets", true),
            (Account::Operator, "list", "daemonsets", true),
            (Account::Operator, "patch", "daemonsets", false),
            (Account::Checker, "list", "volumes", true),
            (Account::Checker, "create", "maintenances", false),
            (Account::Operator, "list", "maintenances", true),
            (Account::Operator, "create", "maintenances", true),
            (Account::Operator, "patch", "configmaps", true),
            (Account::Operator, "update", "maintenances/status", false),
            (Account::Operator, "create", "pods/eviction", false),
        ];
        for (account, verb, resource, wanted) in rows {
            assert_eq!(has(account, verb, resource), wanted, "{account:?} {verb} {resource}");
        }
    }

    #[test]
    fn every_source_can_be_listed_by_the_service() {
        for spec in SOURCES {
            assert!(has(Account::Service, "list", spec.resource), "{}", spec.id);
        }
    }

    #[test]
    fn the_namespaces_are_the_default_ones() {
        let settings = Settings::default();
        assert_eq!((settings.namespace.as_str(), settings.action.pod.namespace.as_str()), (OWN, ACTIONS));
    }
}
