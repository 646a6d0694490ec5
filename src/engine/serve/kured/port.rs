//! What an answer needs of the cluster: fresh reads of one node's matters, and two writes that need no lease.

use std::future::Future;

use maint_core::api::Asked;
use maint_core::api::names::CONTROL_CONFIG_MAP;
use maint_core::api::record::Maintenance as Record;
use maint_core::facts::{
    ConfigMap, DaemonSet, Facts, FailureKind, Fields, Item, Listed, Maintenance, Malformed, Node, Observation, Pod,
    Source, SourceSpec,
};

use crate::execute::{Calls, KubeCalls, WriteError};
use crate::ports::{PageRequest, ReadError, Reader};
use crate::request::Requests;
use crate::runtime::Clock;

/// Objects a page, and pages read at most: 10,000 DaemonSets, or records of one node.
const PAGE: (u32, usize) = (500, 20);

/// What was read for one question.
#[derive(Debug, Clone)]
pub struct View {
    /// The node (or none of that name), the DaemonSets, maint's ConfigMap of control.
    pub facts: Facts,
    /// All records of the node.
    pub records: Records,
}

/// All records of a node, or why they are not known. One that cannot be understood makes all of them unknown: it may be
/// the one that counts.
pub type Records = Result<Vec<Record>, String>;

/// Reads, and the two writes.
pub trait QuestionPort: Send + Sync + 'static {
    /// The most recent state of what concerns a node, never a cache's.
    fn view(&self, node: &str) -> impl Future<Output = View> + Send;

    /// The pods of a node.
    fn pods(&self, node: &str) -> impl Future<Output = Listed<Pod>> + Send;

    /// Creates a pending record. False: one of that name exists.
    ///
    /// # Errors
    /// See [`WriteError`].
    fn wish(&self, record: &Record) -> impl Future<Output = Result<bool, WriteError>> + Send;

    /// Writes into a record that kured asked.
    ///
    /// # Errors
    /// See [`WriteError`].
    fn asked(&self, record: &Record, asked: &Asked) -> impl Future<Output = Result<(), WriteError>> + Send;
}

/// Through a reader of lists and the port of requests. Only lists: the service has no right to `get` nodes, and a list
/// by name costs the API server one read too.
pub struct ApiQuestions<R, C = KubeCalls> {
    reader: R,
    requests: Requests<C>,
    clock: Clock,
    namespace: String,
}

impl<R: Reader, C: Calls> ApiQuestions<R, C> {
    /// A port for maint's namespace.
    #[must_use]
    pub const fn new(reader: R, requests: Requests<C>, clock: Clock, namespace: String) -> Self {
        Self { reader, requests, clock, namespace }
    }

    async fn list<S: Source>(
        &self,
        spec: &SourceSpec,
        namespace: Option<&str>,
        field_selector: Option<&str>,
    ) -> Listed<S> {
        let at = self.clock.now();
        match self.items(spec, namespace, field_selector).await {
            Ok(value) => Observation::Known { value, at },
            Err(ReadError::Absent) => Observation::Absent { at },
            Err(error) => {
                let kind = error.kind().unwrap_or(FailureKind::Server);
                Observation::Failed { kind, detail: error.to_string(), at }
            }
        }
    }

    /// The objects of all pages.
    async fn items<S: Source>(
        &self,
        spec: &SourceSpec,
        namespace: Option<&str>,
        field_selector: Option<&str>,
    ) -> Result<Vec<Item<S>>, ReadError> {
        let mut items = Vec::new();
        let mut token: Option<String> = None;
        for _ in 0..PAGE.1 {
            let continue_token = token.as_deref();
            let limit = PAGE.0;
            let request = PageRequest { spec, namespace, field_selector, label_selector: None, continue_token, limit };
            let page = self.reader.list_page::<S>(&request).await?;
            items.extend(page.items);
            match page.continue_token {
                None => return Ok(items),
                next => token = next,
            }
        }
        Err(ReadError::Server(format!("the list of {} does not end", spec.resource)))
    }

    async fn records(&self, node: &str) -> Records {
        let selector = format!("spec.nodeName={node}");
        let items = self.items::<Whole>(&Whole::SPEC, None, Some(&selector)).await;
        let items = items.map_err(|error| format!("the records could not be read: {error}"))?;
        let mut found = items.into_iter().map(record).collect::<Result<Vec<Record>, String>>()?;
        // A server that passes the selector over must not show us others' records as this node's.
        found.retain(|record| record.spec.node_name == node);
        Ok(found)
    }
}

/// A record with all that it says, not only what gates read.
#[derive(Debug, Clone)]
struct Whole(Box<Record>);

impl Source for Whole {
    const SPEC: SourceSpec = Maintenance::SPEC;

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        root.whole().map(Self)
    }
}

fn record(item: Item<Whole>) -> Result<Record, String> {
    match item {
        Item::Good(Whole(record)) => Ok(*record),
        Item::Malformed(malformed) => Err(format!("a record cannot be understood: {malformed}")),
    }
}

impl<R: Reader + 'static, C: Calls + 'static> QuestionPort for ApiQuestions<R, C> {
    async fn view(&self, node: &str) -> View {
        let (of_node, control) = (format!("metadata.name={node}"), format!("metadata.name={CONTROL_CONFIG_MAP}"));
        let mut facts = Facts::default();
        let records;
        (facts.nodes, facts.daemon_sets, facts.config_maps, records) = tokio::join!(
            biased;
            self.list::<Node>(&Node::SPEC, None, Some(&of_node)),
            self.list::<DaemonSet>(&DaemonSet::SPEC, None, None),
            self.list::<ConfigMap>(&ConfigMap::SPEC, Some(&self.namespace), Some(&control)),
            self.records(node),
        );
        View { facts, records }
    }

    async fn pods(&self, node: &str) -> Listed<Pod> {
        self.list(&Pod::ON_TARGET, None, Some(&format!("spec.nodeName={node}"))).await
    }

    async fn wish(&self, record: &Record) -> Result<bool, WriteError> {
        self.requests.wish(record).await
    }

    async fn asked(&self, record: &Record, asked: &Asked) -> Result<(), WriteError> {
        self.requests.asked(record, asked).await
    }
}
