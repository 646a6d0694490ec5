//! What was seen since the last write, as far as it is worth remembering.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::GreenMatrix;
use super::since::{is_about_the_cluster, objects};
use crate::api::{Finding, GateId, Moment, Reason, Status, names};
use crate::config::Settings;
use crate::facts::{Facts, Item, Node, Observation};
use crate::matrix::{CellVerdict, Matrix, Readiness};

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Look {
    /// API servers, where they were asked or the nodes were read.
    pub servers: Option<ServersLook>,
    /// The last sweep, if it was full and green.
    pub matrix: Option<GreenMatrix>,
    /// What gates found, by gate.
    pub gates: BTreeMap<GateId, GateLook>,
}

/// What was seen of API servers and of the nodes that they run on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServersLook {
    /// Those on a known node that said they are ready: node to `host:port`.
    pub good: BTreeMap<String, String>,
    /// Names and addresses of all nodes; none where they were not read in full.
    pub nodes: Option<BTreeSet<String>>,
    /// All of them, where the labels of the nodes and the entries that the API servers keep of themselves in the
    /// EndpointSlice `kubernetes` agree.
    pub whole: Option<BTreeMap<String, String>>,
}

/// What one gate found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GateLook {
    /// Reason and object of what is not fine, and when that was seen first since the last write.
    pub open: BTreeMap<(Reason, String), Timestamp>,
    /// It could judge: what it does not name is over.
    pub judged: bool,
}

impl Look {
    /// What facts show, and findings of a moment. Only at `start` and `settle` a gate asks all that it ever asks.
    #[must_use]
    pub fn of(facts: &Facts, asked: Option<(Moment, &[Finding])>, settings: &Settings, now: Timestamp) -> Self {
        let gates = match asked {
            Some((Moment::Start | Moment::Settle, findings)) => {
                let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
                findings.iter().map(|finding| (finding.gate, GateLook::of(finding, now))).collect()
            }
            _ => BTreeMap::new(),
        };
        Self { servers: ServersLook::of(facts, settings), matrix: facts.matrix.known().and_then(green), gates }
    }

    /// Whether nothing was seen that could be written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds what was seen later.
    pub fn then(&mut self, later: Self) {
        self.servers = later.servers.or(self.servers.take());
        self.matrix = later.matrix.or(self.matrix.take());
        for (gate, mut seen) in later.gates {
            if let Some(earlier) = self.gates.remove(&gate) {
                for (key, first) in earlier.open {
                    match seen.open.get_mut(&key) {
                        Some(at) => *at = first.min(*at),
                        None if !seen.judged => drop(seen.open.insert(key, first)),
                        None => {}
                    }
                }
                seen.judged |= earlier.judged;
            }
            self.gates.insert(gate, seen);
        }
    }
}

impl GateLook {
    fn of(finding: &Finding, now: Timestamp) -> Self {
        // What the source itself tells since when needs no memory.
        let open = matches!(finding.status, Status::Warn | Status::Unknown | Status::Block)
            && finding.since.is_none()
            && is_about_the_cluster(finding);
        let objects = if open { objects(finding) } else { BTreeSet::new() };
        Self {
            open: objects.into_iter().map(|object| ((finding.reason, object), now)).collect(),
            judged: finding.status != Status::Unknown && finding.reason != Reason::NotAsked,
        }
    }
}

impl ServersLook {
    fn of(facts: &Facts, settings: &Settings) -> Option<Self> {
        let Observation::Known { value, .. } = &facts.nodes else { return None };
        let mut nodes: Vec<&Node> = Vec::new();
        for item in value {
            match item {
                Item::Good(node) => nodes.push(node),
                // Whatever it is, it is there, and its addresses are not known.
                Item::Malformed(_) => return Some(Self { good: good(facts), ..Self::default() }),
            }
        }
        let mut known = BTreeSet::new();
        for node in &nodes {
            known.insert(node.metadata.name.clone());
            known.extend(node.internal_ips.iter().cloned());
        }
        Some(Self { good: good(facts), nodes: Some(known), whole: whole(&nodes, facts, settings) })
    }

    /// Whether a server's Node is still there, by name or by address, or may be.
    pub(super) fn may_still_be(&self, name: &str, address: &str) -> bool {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        self.nodes.as_ref().is_none_or(|nodes| nodes.contains(name) || nodes.contains(host))
    }
}

/// The servers that said they are ready, by node. Others are in the settings, or nobody knows where they run.
fn good(facts: &Facts) -> BTreeMap<String, String> {
    let ready = facts.api_servers.known().into_iter().flatten().filter(|server| server.readiness == Readiness::Ready);
    ready.filter_map(|server| Some((server.node.clone()?, server.address.clone()))).collect()
}

fn whole(nodes: &[&Node], facts: &Facts, settings: &Settings) -> Option<BTreeMap<String, String>> {
    facts.endpoint_slices.known()?;
    let listed: BTreeSet<&str> = facts
        .endpoint_slices
        .good()
        .filter(|slice| {
            slice.metadata.namespace == "default"
                && slice.metadata.labels.get(names::LABEL_SERVICE_NAME).is_some_and(|service| service == "kubernetes")
        })
        .flat_map(|slice| &slice.endpoints)
        .filter(|endpoint| endpoint.ready && !endpoint.terminating)
        .flat_map(|endpoint| endpoint.addresses.iter().map(String::as_str))
        .collect();
    let servers: Vec<&&Node> = nodes.iter().filter(|node| node.is_control_plane()).collect();
    let there = |node: &Node| node.internal_ips.iter().any(|ip| listed.contains(ip.as_str()));
    let ours = |ip: &str| servers.iter().any(|node| node.internal_ips.iter().any(|own| own == ip));
    if servers.is_empty() || !servers.iter().all(|node| there(node)) || !listed.iter().all(|ip| ours(ip)) {
        return None;
    }
    let port = settings.control_plane.api_server_port;
    let address = |node: &Node| {
        let ip = node.internal_ips.first()?;
        Some(if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") })
    };
    servers.iter().map(|node| Some((node.metadata.name.clone(), address(node)?))).collect()
}

/// A sweep over every pair with nothing but green cells.
fn green(matrix: &Matrix) -> Option<GreenMatrix> {
    let pairs = matrix.servers.len() * matrix.nodes.len();
    let whole = pairs > 0 && matrix.cells.len() == pairs;
    let all = matrix.cells.iter().all(|cell| cell.verdict == CellVerdict::Green);
    let at = Timestamp::from_second(matrix.swept_at.as_second()).unwrap_or(matrix.swept_at);
    let (servers, nodes) = (matrix.servers.len(), matrix.nodes.len());
    (whole && all).then(|| GreenMatrix { at, servers, nodes, line: format!("{pairs}/{pairs}") })
}
