//! What the engine needs from the cluster, as traits: real clients and worlds in memory implement them.
//!
//! There are two cuts for reading. [`Observe`] is the one that decisions use: sources in, [`Facts`] out. A simulated
//! world implements it directly on its own state, without any JSON, which is what makes masses of nights cheap.
//! Below it, [`Reader`] (pages of lists) and [`Servers`] (a client for each API server's own address) are what the
//! live implementation of `Observe` rests on; an API server in memory implements those two.

use std::collections::BTreeSet;
use std::future::Future;

use maint_core::api::SourceId;
use maint_core::facts::{Facts, FailureKind, SourceSpec};
use serde_json::value::RawValue;

use crate::client::ClientError;

/// What a reading is for.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// The sources to read; all others stay `NotAsked`, but for those that these rest on (see
    /// [`Wanted::with_dependencies`]).
    pub sources: BTreeSet<SourceId>,
    /// The node that the question is about. It matters for the matrix only: a large one is then asked in this node's
    /// column and row alone. None asks every pair.
    pub target: Option<String>,
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
        if sources.contains(&SourceId::KuredPods) {
            // Only its DaemonSets tell where kured's pods are.
            sources.insert(SourceId::DaemonSets);
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
}

/// Lists objects page by page.
pub trait Reader: Send + Sync {
    /// One page, in the most recent state.
    fn list_page(&self, request: &PageRequest<'_>) -> impl Future<Output = Result<Page, ReadError>> + Send;
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

/// A page of a list. Its objects are still text: they are decoded one by one, so that a page of large Nodes never
/// stands in memory as a tree.
#[derive(Debug, Default)]
pub struct Page {
    /// The objects.
    pub items: Vec<Box<RawValue>>,
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

/// Builds clients for single API servers.
pub trait Servers: Send + Sync {
    /// A client that speaks HTTP/1.1 with the API server at `host:port` and nobody else, and verifies its certificate
    /// for the address or, if one is given, for `tls_server_name`. Each request has a connection of its own: a fresh
    /// dial ends its connection without notice, and must not be judged on one that was used before.
    ///
    /// # Errors
    /// If the address cannot be understood or the client cannot be built. Nothing is sent yet.
    fn client(&self, address: &str, tls_server_name: Option<&str>) -> Result<kube::Client, ClientError>;
}
