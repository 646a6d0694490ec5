//! Annotations, labels, object names and field managers that maint reads or writes.

/// API group of maint's own resources.
pub const GROUP: &str = "maint.dev";
/// Field manager of every write; `managedFields` of `spec.unschedulable` prove with it that a cordon is ours.
pub const FIELD_MANAGER: &str = "maint";
/// `apiVersion` of every JSON document that the command line prints.
pub const OUTPUT_API_VERSION: &str = "maint.dev/v1";

/// Node annotation: {maintenance uid, term}, written in the same request as the cordon.
pub const ANNOTATION_OWNER: &str = "maint.dev/owner";
/// Node annotation: {by, reason, until}; nothing of ours touches such a node.
pub const ANNOTATION_HOLD: &str = "maint.dev/hold";
/// Node annotation: the reason why somebody wants this node rebooted.
pub const ANNOTATION_REBOOT_REQUESTED: &str = "maint.dev/reboot-requested";
/// Node annotation: {bootID, at}, written when a run or post-check found the node good.
pub const ANNOTATION_PROVEN: &str = "maint.dev/proven";

/// Pod annotation: "true" lets a drain evict a pod that nothing would bring back.
pub const ANNOTATION_EVICT: &str = "maint.dev/evict";
/// Pod label of Cluster API: "skip" or "wait-completed".
pub const LABEL_DRAIN: &str = "cluster.x-k8s.io/drain";

/// Annotation of a record: what kured last asked for its node and what it heard, see [`super::Asked`]. Any replica
/// writes it.
pub const ANNOTATION_ASKED: &str = "maint.dev/asked";

/// ConfigMap with the halt; made by the command line, never by GitOps.
pub const CONTROL_CONFIG_MAP: &str = "maint-control";
/// ConfigMap that the leader writes: expected API servers, last green matrix, since-when.
pub const STATE_CONFIG_MAP: &str = "maint-state";
/// Key of the halt document {by, reason, since, until} in [`CONTROL_CONFIG_MAP`].
pub const CONTROL_HALT_KEY: &str = "halt";
/// Key of the list of expected API servers in [`STATE_CONFIG_MAP`].
pub const STATE_API_SERVERS_KEY: &str = "api-servers";
/// Key of the term of the leader that wrote [`STATE_CONFIG_MAP`] last.
pub const STATE_TERM_KEY: &str = "term";
/// Key of the last full green sweep of the matrix {at, servers, nodes, line} in [`STATE_CONFIG_MAP`].
pub const STATE_MATRIX_KEY: &str = "last-green-matrix";
/// Key of since when findings about the cluster are so, a list of {gate, reason, object, since}, in
/// [`STATE_CONFIG_MAP`].
pub const STATE_SINCE_KEY: &str = "since";
/// `reportingController` of every Event.
pub const REPORTING_CONTROLLER: &str = "maint.dev/maint";
/// The service account whose token asks for the matrix, in maint's namespace.
pub const PROBE_ACCOUNT: &str = "maint-probe";
/// The leader's Lease in maint's namespace.
pub const LEASE: &str = "maint";

/// Label of maint's own pods; in maint's namespace nothing else bears it.
pub const LABEL_OWN_PODS: (&str, &str) = ("app.kubernetes.io/name", "maint");

/// kured's lock annotation on its DaemonSet (flag `--lock-annotation`).
pub const ANNOTATION_KURED_LOCK: &str = "weave.works/kured-node-lock";
/// Node annotation that kured sets (`--annotate-nodes`) when it first wants a reboot, before it asks anybody.
pub const ANNOTATION_KURED_IN_PROGRESS: &str = "weave.works/kured-reboot-in-progress";
/// Labels of objects that Flux applies: by kustomize-controller, by helm-controller.
pub const LABELS_FLUX: [&str; 2] = ["kustomize.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/name"];
/// Label of a control-plane node; k3s writes "true", kubeadm "".
pub const LABEL_CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
/// Label of an etcd member (k3s, RKE2).
pub const LABEL_ETCD: &str = "node-role.kubernetes.io/etcd";
/// Label of the DNS Service, its slices and pods on k3s, kubeadm and RKE2.
pub const LABEL_DNS: (&str, &str) = ("k8s-app", "kube-dns");
/// Label that ties an EndpointSlice to its Service (KEP-752).
pub const LABEL_SERVICE_NAME: &str = "kubernetes.io/service-name";
