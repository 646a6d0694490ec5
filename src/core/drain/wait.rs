//! Why a pod is still there, in words that stay the same while it waits for the same thing.

use jiff::Timestamp;

use super::budgets::Refusal;
use super::classify::Never;
use super::waves::Wave;

/// A pod that has to go and is not gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Why.
    pub why: Wait,
}

/// What holds a pod until a replacement has a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeldBy {
    /// Its budget, by `namespace/name`.
    Budget(String),
    /// Its StatefulSet, by name.
    StatefulSet(String),
}

/// Why a pod is still there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    /// It is ending.
    Ending {
        /// When its time is over.
        due: Timestamp,
        /// Its finalizers, once its time is over: until then they keep nobody waiting.
        finalizers: Vec<String>,
    },
    /// Its time is over for a minute and it is still there.
    Stuck {
        /// When its time was over.
        due: Timestamp,
        /// Its finalizers.
        finalizers: Vec<String>,
        /// The node's kubelet is silent: nobody ends it.
        kubelet_silent: bool,
    },
    /// Its eviction is on its way to the API.
    OnItsWay,
    /// Its eviction was accepted, and the list does not show it yet.
    Accepted,
    /// It is evicted in this step.
    Asked,
    /// Another wave comes first.
    Wave {
        /// The wave whose turn it is.
        first: Wave,
    },
    /// It is not evicted.
    Never(Never),
    /// It is left to finish by itself.
    Completion,
    /// Its budget.
    Budget(Refusal),
    /// Its budget refused, although it seemed to allow it.
    Refused {
        /// The budget, where the answer names it.
        budget: Option<String>,
        /// What the API said.
        message: String,
        /// When it is asked again at the latest.
        until: Timestamp,
    },
    /// Another pod of its StatefulSet goes, or is not Ready again yet.
    StatefulSet {
        /// Name of the StatefulSet.
        name: String,
        /// What is awaited.
        why: String,
    },
    /// A replacement of its workload cannot be scheduled: neither its budget nor its StatefulSet lets it go until one is.
    Unscheduled {
        /// What holds it until then.
        held_by: HeldBy,
        /// Name of the replacement.
        replacement: String,
        /// What the scheduler says.
        message: String,
    },
    /// It took the place of others that were evicted, on the node again.
    Back {
        /// How many those were.
        times: u32,
        /// It tolerates the cordon; otherwise it is bound to the node past the scheduler.
        tolerates_cordon: bool,
        /// When it is evicted again.
        until: Timestamp,
    },
    /// Another database cluster is on the move.
    Database {
        /// That cluster.
        first: String,
    },
    /// The API server sheds load.
    Throttled {
        /// When it is asked again.
        until: Timestamp,
    },
    /// Its namespace is being deleted, and it with it.
    NamespaceTerminating,
    /// The API said something else that is no success.
    Failed {
        /// What it said, in short.
        lead: String,
        /// In its words.
        message: String,
        /// When it is asked again.
        until: Timestamp,
    },
    /// As many evictions as go at a time are before it.
    Turn,
}

impl Wait {
    /// Nothing but a budget holds it: the next wave need not wait for it.
    #[must_use]
    pub const fn is_budget(&self) -> bool {
        matches!(self, Self::Budget(refusal) if !matches!(refusal, Refusal::TwoBudgets(_) | Refusal::Unknown(_)))
            || matches!(self, Self::Refused { .. } | Self::Unscheduled { held_by: HeldBy::Budget(_), .. })
    }

    /// It may go when a budget changes.
    #[must_use]
    pub const fn is_parked(&self) -> bool {
        matches!(self, Self::Budget(_) | Self::Refused { .. } | Self::Unscheduled { held_by: HeldBy::Budget(_), .. })
    }

    /// It is on its way out, as far as is known.
    #[must_use]
    pub const fn is_leaving(&self) -> bool {
        self.is_asked() || matches!(self, Self::Ending { .. } | Self::Stuck { .. })
    }

    /// It is asked to go, and the list does not show what came of it.
    #[must_use]
    pub const fn is_asked(&self) -> bool {
        matches!(self, Self::Asked | Self::OnItsWay | Self::Accepted)
    }

    /// The part that stays the same while it waits for the same thing.
    #[must_use]
    pub fn lead(&self) -> String {
        match self {
            Self::Ending { due, .. } => format!("is ending, due {due}"),
            Self::Stuck { due, .. } => format!("is stuck: it should have ended by {due}"),
            Self::OnItsWay | Self::Asked => "is asked to go".to_owned(),
            Self::Accepted => "was asked to go".to_owned(),
            Self::Wave { first } => format!("waits for the pods before it ({first})"),
            Self::Never(why) => format!("is not evicted: it {why}"),
            Self::Completion => "is left to finish by itself".to_owned(),
            Self::Budget(refusal) => refusal.lead(),
            Self::Refused { budget: Some(budget), .. } => format!("was refused by budget {budget}"),
            Self::Refused { budget: None, .. } => "was refused by its budget".to_owned(),
            Self::StatefulSet { name, .. } => format!("waits for StatefulSet {name}"),
            Self::Unscheduled { held_by: HeldBy::Budget(name), .. } => format!("is blocked by budget {name}"),
            Self::Unscheduled { held_by: HeldBy::StatefulSet(name), .. } => {
                format!("is blocked by StatefulSet {name}")
            }
            Self::Back { .. } => "is on the node again after its eviction".to_owned(),
            Self::Database { first } => format!("waits for database cluster {first}"),
            Self::Throttled { .. } => "waits: the API server asks for less".to_owned(),
            Self::NamespaceTerminating => "waits for the deletion of its namespace".to_owned(),
            Self::Failed { lead, .. } => lead.clone(),
            Self::Turn => "waits for its turn".to_owned(),
        }
    }

    /// The rest; empty where there is none.
    #[must_use]
    pub fn detail(&self) -> String {
        let of = |finalizers: &[String]| format!("it has the finalizers {}", finalizers.join(", "));
        match self {
            Self::Ending { finalizers, .. } if !finalizers.is_empty() => of(finalizers),
            Self::Stuck { finalizers, kubelet_silent, .. } => {
                let mut told = Vec::new();
                if !finalizers.is_empty() {
                    told.push(of(finalizers));
                }
                if *kubelet_silent {
                    told.push(
                        "the node's kubelet is silent: nothing ends it, and whether it still runs is not known"
                            .to_owned(),
                    );
                }
                if told.is_empty() {
                    told.push("its containers do not end, or their volumes are not unmounted".to_owned());
                }
                told.join(", and ")
            }
            Self::Budget(refusal) => refusal.detail(),
            Self::Refused { message, .. } | Self::Failed { message, .. } => message.trim_end_matches('.').to_owned(),
            Self::StatefulSet { why, .. } => why.clone(),
            Self::Unscheduled { replacement, message, .. } => {
                format!("its replacement {replacement} cannot be scheduled: {}", message.trim_end_matches('.'))
            }
            Self::Back { times, tolerates_cordon, .. } => {
                let count = if *times == 1 { "once".to_owned() } else { format!("{times} times") };
                let why = if *tolerates_cordon {
                    "it tolerates the cordon: take that toleration away, scale it down, or leave it here by a rule"
                } else {
                    "it is put here without the scheduler"
                };
                format!("evicted {count}, and {why}")
            }
            _ => String::new(),
        }
    }

    /// When it is worth a look without any change in the cluster.
    #[must_use]
    pub const fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Refused { until, .. }
            | Self::Throttled { until }
            | Self::Back { until, .. }
            | Self::Failed { until, .. } => Some(*until),
            _ => None,
        }
    }
}

impl std::fmt::Display for Wait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (lead, detail) = (self.lead(), self.detail());
        if detail.is_empty() { f.write_str(&lead) } else { write!(f, "{lead}: {detail}") }
    }
}

impl Waiting {
    /// `namespace/name`
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}
