//! What the engine needs from the cluster, as traits: real clients and worlds in memory implement them.
//!
//! There are two cuts for reading. [`Observe`] is the one that decisions use: sources in, [`Facts`] out. Below it,
//! [`Reader`] (pages of lists, as facts) and [`Servers`] (each API server at its own address) are what the live
//! implementation of `Observe` rests on. Neither speaks of text: a simulated world implements both on its own state,
//! which is what makes masses of nights cheap while the observer itself stays the one of a real cluster.

use std::collections::BTreeSet;
use std::future::Future;

use maint_core::api::SourceId;
use maint_core::facts::{Facts, FailureKind, Item, Source, SourceSpec};
use maint_core::matrix::classify::Answer;

use crate::client::ClientError;
use crate::runtime::Clock;

/// What a reading is for.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// The sources to read; all others stay `NotAsked`, but for those that these rest on (see
    /// [`Wanted::with_dependencies`]).
    pub sources: BTreeSet<SourceId>,
    /// The node that the question is about. It matters for its pods, and for the matrix: a large one is then asked in
    /// this node's column and row alone. None asks for the pods of every node and for every pair.
    pub target: Option<String>,
    /// Every pair of the matrix is asked although a node is named.
    pub every_pair: bool,
}

impl Wanted {
    /// What the expected API servers and the columns of the matrix are taken from.
    pub const PROBE_SOURCES: &'static [SourceId] =
        &[SourceId::Nodes, SourceId::ConfigMaps, SourceId::EndpointSlices, SourceId::ApiServers];

    /// The sources, and for a matrix or API servers also those that they rest on.
    #[must_use]
    pub fn with_dependencies(&self) -> BTreeSet<SourceId> {
        let mut sources = self.sources.clone();
        if self.probes() {
            sources.extend(Self::PROBE_SOURCES);
        }
        if sources.contains(&SourceId::KuredPods) || sources.contains(&SourceId::NetworkAgentPods) {
            // Only their DaemonSets tell where these pods are.
            sources.insert(SourceId::DaemonSets);
        }
        if sources.contains(&SourceId::CnpgPods) {
            // Without a cluster its pods are not asked for.
            sources.insert(SourceId::CnpgClusters);
        }
        sources
    }

    /// Whether API servers are to be asked at their own addresses.
    #[must_use]
    pub fn probes(&self) -> bool {
        self.sources.contains(&SourceId::ApiServers) || self.sources.contains(&SourceId::Matrix)
    }
}

/// Reads the cluster. The answer is never an error: what could not be read is `Failed` in the facts.
pub trait Observe: Send + Sync {
    /// One view of the cluster, as fresh as it can be had.
    fn observe(&self, wanted: &Wanted) -> impl Future<Output = Facts> + Send;

    /// The same, but of nodes it is enough to read the one that the question is about: for what is asked often, in a
    /// cluster of any size.
    fn observe_around(&self, wanted: &Wanted) -> impl Future<Output = Facts> + Send {
        self.observe(wanted)
    }
}

/// Lists objects page by page.
pub trait Reader: Send + Sync {
    /// One page, in the most recent state, decoded object by object.
    fn list_page<S: Source>(
        &self,
        request: &PageRequest<'_>,
    ) -> impl Future<Output = Result<Page<S>, ReadError>> + Send;
}

/// A page to be read.
#[derive(Debug, Clone, Copy)]
pub struct PageRequest<'a> {
    /// The kind.
    pub spec: &'a SourceSpec,
    /// The namespace; none lists cluster-scoped kinds, or all namespaces.
    pub namespace: Option<&'a str>,
    /// A label selector, where it is not the row's.
    pub label_selector: Option<&'a str>,
    /// A field selector, such as the node whose pods are wanted.
    pub field_selector: Option<&'a str>,
    /// Where the page before ended.
    pub continue_token: Option<&'a str>,
    /// Objects a page at most.
    pub limit: u32,
}

/// A page of a list.
#[derive(Debug)]
pub struct Page<S> {
    /// The objects.
    pub items: Vec<Item<S>>,
    /// Where the next page begins; none after the last one.
    pub continue_token: Option<String>,
}

/// Why a page could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The API says that the kind does not exist.
    #[error("the API server does not know this kind")]
    Absent,
    /// The continue token is too old (410): the list must be read from its beginning.
    #[error("the list changed too much while it was read: {0}")]
    Expired(String),
    /// 401 or 403.
    #[error("{0}")]
    Forbidden(String),
    /// No answer in time.
    #[error("{0}")]
    Timeout(String),
    /// No connection, TLS, or an answer that was cut off.
    #[error("{0}")]
    Transport(String),
    /// An error of the server, or an answer that is no list.
    #[error("{0}")]
    Server(String),
}

impl ReadError {
    /// The kind of failure that a fact carries; none for [`ReadError::Absent`], which is no failure.
    #[must_use]
    pub const fn kind(&self) -> Option<FailureKind> {
        match self {
            Self::Absent => None,
            Self::Forbidden(_) => Some(FailureKind::Forbidden),
            Self::Timeout(_) => Some(FailureKind::Timeout),
            Self::Transport(_) => Some(FailureKind::Transport),
            Self::Server(_) | Self::Expired(_) => Some(FailureKind::Server),
        }
    }

    /// Label of metrics and Events.
    #[must_use]
    pub fn category(&self) -> &'static str {
        self.kind().map_or("absent", FailureKind::as_str)
    }
}

/// Asks one API server what the matrix is made of.
pub trait Probes: Clone + Send + Sync {
    /// Asks, and waits for the answer at most as long as the question allows.
    fn ask(&self, clock: &Clock, question: Question<'_>) -> impl Future<Output = Asked> + Send;
}

/// A question to one API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question<'a> {
    /// Is it ready?
    Readyz,
    /// Does a new connection to this node's kubelet come about?
    FreshDial(&'a str),
    /// Is this node's kubelet healthy? An old connection may carry it.
    Healthz(&'a str),
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The answer, or why there is none.
    pub answer: Answer,
    /// The certificate is good and does not name the address.
    pub wrong_name: bool,
}

/// Builds clients for single API servers.
pub trait Servers: Send + Sync {
    /// Asks one of them.
    type Client: Probes;

    /// A client that speaks HTTP/1.1 with the API server at `host:port` and nobody else, and verifies its certificate
    /// for the address or, if one is given, for `tls_server_name`. Each request has a connection of its own: a fresh
    /// dial ends its connection without notice, and must not be judged on one that was used before.
    ///
    /// # Errors
    /// If the address cannot be understood or the client cannot be built. Nothing is sent yet.
    fn client(&self, address: &str, tls_server_name: Option<&str>) -> Result<Self::Client, ClientError>;
}
