//! Parts that many kinds share: metadata, conditions, selectors.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Fields, Malformed};

/// The part of `metadata` that gates read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metadata {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.namespace`; empty for cluster-scoped kinds.
    pub namespace: String,
    /// `metadata.uid`; empty where a dump lacks it.
    pub uid: String,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`, only those that maint reads (see [`Metadata::KEPT_ANNOTATIONS`]).
    pub annotations: BTreeMap<String, String>,
    /// `metadata.deletionTimestamp`: the instant from which deletion is due (after the grace period).
    pub deletion_timestamp: Option<Timestamp>,
    /// `metadata.creationTimestamp`, by the clock of the API server, in whole seconds; none where a dump lacks it.
    pub created: Option<Timestamp>,
    /// `metadata.generation`; none where the kind has none.
    pub generation: Option<i64>,
    /// `metadata.resourceVersion`: the guard of every write; empty where a dump lacks it.
    pub resource_version: String,
}

impl Metadata {
    /// Prefixes of annotations that are kept; the others can be tens of kilobytes an object.
    pub const KEPT_ANNOTATIONS: &'static [&'static str] =
        &["maint.dev/", "weave.works/kured", "k3s.io/internal-ip", "etcd.k3s.cattle.io/node-name"];

    /// Reads `metadata` of a document.
    ///
    /// # Errors
    /// If the name is missing or a field has the wrong type.
    pub fn of(root: &Fields<'_>) -> Result<Self, Malformed> {
        let metadata = root.object("metadata")?;
        let mut annotations = metadata.string_map("annotations")?;
        annotations.retain(|name, _| Self::KEPT_ANNOTATIONS.iter().any(|prefix| name.starts_with(prefix)));
        Ok(Self {
            name: metadata.str("name")?.to_owned(),
            namespace: metadata.optional_str("namespace")?.unwrap_or_default().to_owned(),
            uid: metadata.optional_str("uid")?.unwrap_or_default().to_owned(),
            labels: metadata.string_map("labels")?,
            annotations,
            deletion_timestamp: metadata.optional_time("deletionTimestamp")?,
            created: metadata.optional_time("creationTimestamp")?,
            generation: metadata.optional_i64("generation")?,
            resource_version: metadata.optional_str("resourceVersion")?.unwrap_or_default().to_owned(),
        })
    }

    /// `namespace/name`, or the name alone.
    #[must_use]
    pub fn full_name(&self) -> String {
        if self.namespace.is_empty() { self.name.clone() } else { format!("{}/{}", self.namespace, self.name) }
    }
}

/// One entry of `metadata.ownerReferences`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnerReference {
    /// `apiVersion`; empty where a dump lacks it.
    pub api_version: String,
    /// `kind`
    pub kind: String,
    /// `name`
    pub name: String,
    /// `uid`; empty where a dump lacks it.
    pub uid: String,
    /// `controller`: unset means false (OwnerReference, apimachinery).
    pub controller: bool,
}

impl OwnerReference {
    /// Reads `ownerReferences` of `metadata`.
    ///
    /// # Errors
    /// If an entry lacks kind or name, or a field has the wrong type.
    pub fn list(metadata: &Fields<'_>) -> Result<Vec<Self>, Malformed> {
        metadata.objects("ownerReferences")?.iter().map(Self::one).collect()
    }

    fn one(entry: &Fields<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            api_version: entry.optional_str("apiVersion")?.unwrap_or_default().to_owned(),
            kind: entry.str("kind")?.to_owned(),
            name: entry.str("name")?.to_owned(),
            uid: entry.optional_str("uid")?.unwrap_or_default().to_owned(),
            controller: entry.optional_bool("controller")?.unwrap_or(false),
        })
    }

    /// Its API group; empty for core.
    #[must_use]
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

/// The status of a condition. Anything else than the three words is malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriState {
    /// "True"
    True,
    /// "False"
    False,
    /// "Unknown"
    Unknown,
}

impl TriState {
    /// The word as in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// One entry of `status.conditions`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// `type`
    pub kind: String,
    /// `status`
    pub status: TriState,
    /// `reason`; empty if not set.
    pub reason: String,
    /// `message`; empty if not set.
    pub message: String,
    /// `lastTransitionTime`
    pub last_transition: Option<Timestamp>,
    /// `lastHeartbeatTime` (Nodes) or `lastProbeTime` (Longhorn).
    pub last_heartbeat: Option<Timestamp>,
}

impl Condition {
    /// Reads `conditions` of `status`.
    ///
    /// # Errors
    /// If an entry lacks type or status, or its status is none of the three words.
    pub fn list(status: &Fields<'_>) -> Result<Vec<Self>, Malformed> {
        status.objects("conditions")?.iter().map(Self::one).collect()
    }

    fn one(entry: &Fields<'_>) -> Result<Self, Malformed> {
        let status = match entry.str("status")? {
            "True" => TriState::True,
            "False" => TriState::False,
            "Unknown" => TriState::Unknown,
            other => return Err(entry.malformed("status", format!("is `{other}`, wanted True, False or Unknown"))),
        };
        let heartbeat = entry.optional_time("lastHeartbeatTime")?;
        Ok(Self {
            kind: entry.str("type")?.to_owned(),
            status,
            reason: entry.optional_str("reason")?.unwrap_or_default().to_owned(),
            message: entry.optional_str("message")?.unwrap_or_default().to_owned(),
            last_transition: entry.optional_time("lastTransitionTime")?,
            last_heartbeat: if heartbeat.is_some() { heartbeat } else { entry.optional_time("lastProbeTime")? },
        })
    }
}

/// `matchLabels` and `matchExpressions`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelSelector {
    /// Every label must have this value.
    pub match_labels: BTreeMap<String, String>,
    /// Every expression must hold: key, operator, values.
    pub expressions: Vec<(String, String, Vec<String>)>,
}

impl LabelSelector {
    /// Reads a selector object.
    ///
    /// # Errors
    /// If a field has the wrong type or an operator is none of In, NotIn, Exists, DoesNotExist.
    pub fn of(selector: &Fields<'_>) -> Result<Self, Malformed> {
        let mut expressions = Vec::new();
        for expression in selector.objects("matchExpressions")? {
            let operator = expression.str("operator")?;
            if !["In", "NotIn", "Exists", "DoesNotExist"].contains(&operator) {
                return Err(expression.malformed("operator", format!("is `{operator}`, which is no known operator")));
            }
            expressions.push((expression.str("key")?.to_owned(), operator.to_owned(), expression.strings("values")?));
        }
        Ok(Self { match_labels: selector.string_map("matchLabels")?, expressions })
    }

    /// Whether labels satisfy it. The empty selector matches everything.
    #[must_use]
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.expressions.iter().all(|(key, operator, values)| {
                let value = labels.get(key);
                match operator.as_str() {
                    "In" => value.is_some_and(|value| values.contains(value)),
                    "NotIn" => value.is_none_or(|value| !values.contains(value)),
                    "Exists" => value.is_some(),
                    _ => value.is_none(),
                }
            })
    }
}
