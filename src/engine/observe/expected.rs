//! Which API servers there should be. Pure.
//!
//! The `kubernetes` EndpointSlice is no answer to that: a stopped server vanishes from it at once, a killed one stays
//! for fifteen seconds. Node labels, the settings and the last known good set are; the slice only adds.

use maint_core::api::names;
use maint_core::config::Settings;
use maint_core::facts::{ConfigMap, Facts, FailureKind, Item, Node, Observation};
use maint_core::state::parse_api_servers;

/// An API server that should be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The node's name where it is known, else its name in the settings, else the address.
    pub name: String,
    /// The node it runs on, if known.
    pub node: Option<String>,
    /// `host:port`; none where that could not be found out.
    pub address: Option<String>,
    /// Where it is known from.
    pub origin: Origin,
}

/// Where an expected API server is known from, most telling first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// `[control_plane] api_servers` of the settings.
    Settings,
    /// The control-plane label of its node.
    Label,
    /// The set that was good the last time, in ConfigMap `maint-state`.
    KnownGood,
    /// The EndpointSlice of Service `kubernetes`.
    EndpointSlice,
    /// A Node that cannot be understood: whether it runs an API server is not known.
    MalformedNode {
        /// What is wrong with it.
        problem: String,
    },
}

/// The expected API servers, by name, or why they are not known.
///
/// # Errors
/// If nodes or the last known good set could not be read, or nothing but the EndpointSlice names a server.
pub fn expected(facts: &Facts, settings: &Settings) -> Result<Vec<Expected>, (FailureKind, String)> {
    let nodes = match &facts.nodes {
        Observation::Known { value, .. } => value,
        Observation::Failed { kind, detail, .. } => return Err((*kind, format!("nodes could not be read: {detail}"))),
        Observation::Absent { .. } | Observation::NotAsked => {
            return Err((FailureKind::Server, "nodes were not read".to_owned()));
        }
    };
    let mut found = Set { settings, nodes, servers: Vec::new() };
    found.add_settings();
    found.add_labelled();
    found.add_known_good(&facts.config_maps)?;
    if found.servers.iter().all(|server| matches!(server.origin, Origin::MalformedNode { .. })) {
        return Err((
            FailureKind::Partial,
            format!(
                "no node carries the label {}, and [control_plane] api_servers names none: which API servers there \
                 should be is not known",
                names::LABEL_CONTROL_PLANE
            ),
        ));
    }
    found.add_slices(facts);
    let mut servers = found.servers;
    servers.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(servers)
}

/// The columns of the matrix: every node, also those that cannot be understood, as far as they have a name.
pub(super) fn node_names(facts: &Facts) -> Vec<String> {
    let mut found: Vec<String> = facts
        .nodes
        .known()
        .into_iter()
        .flatten()
        .filter_map(|item| match item {
            Item::Good(node) => Some(node.metadata.name.clone()),
            Item::Malformed(malformed) => malformed.object.strip_prefix("Node ").map(str::to_owned),
        })
        .filter(|name| !name.contains(' '))
        .collect();
    found.sort();
    found
}

struct Set<'a> {
    settings: &'a Settings,
    nodes: &'a [Item<Node>],
    servers: Vec<Expected>,
}

impl Set<'_> {
    fn good_nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter_map(|item| match item {
            Item::Good(node) => Some(node),
            Item::Malformed(_) => None,
        })
    }

    fn has(&self, name: &str, address: &str) -> bool {
        self.servers.iter().any(|server| server.name == name || server.address.as_deref() == Some(address))
    }

    fn at_port(&self, ip: &str) -> String {
        let port = self.settings.control_plane.api_server_port;
        if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
    }

    /// The node that has this address, in brackets and with a port or without.
    fn node_of(&self, address: &str) -> Option<String> {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        self.good_nodes()
            .find(|node| node.internal_ips.iter().any(|ip| ip == host || ip == address))
            .map(|node| node.metadata.name.clone())
    }

    fn add_settings(&mut self) {
        for (name, address) in &self.settings.control_plane.api_servers {
            let named = self.good_nodes().any(|node| node.metadata.name == *name).then(|| name.clone());
            let node = named.or_else(|| self.node_of(address));
            self.servers.push(Expected {
                name: name.clone(),
                node,
                address: Some(address.clone()),
                origin: Origin::Settings,
            });
        }
    }

    fn add_labelled(&mut self) {
        for item in self.nodes {
            let server = match item {
                Item::Good(node) if !node.is_control_plane() => continue,
                Item::Good(node) => Expected {
                    name: node.metadata.name.clone(),
                    node: Some(node.metadata.name.clone()),
                    address: node.internal_ips.first().map(|ip| self.at_port(ip)),
                    origin: Origin::Label,
                },
                Item::Malformed(malformed) => {
                    let name = malformed.object.strip_prefix("Node ").unwrap_or(&malformed.object).to_owned();
                    let origin = Origin::MalformedNode { problem: malformed.to_string() };
                    Expected { node: Some(name.clone()), name, address: None, origin }
                }
            };
            if !self.has(&server.name, server.address.as_deref().unwrap_or_default()) {
                self.servers.push(server);
            }
        }
    }

    fn add_known_good(&mut self, config_maps: &Observation<Vec<Item<ConfigMap>>>) -> Result<(), (FailureKind, String)> {
        let items = match config_maps {
            Observation::Known { value, .. } => value,
            Observation::Failed { kind, detail, .. } => {
                return Err((*kind, format!("the last known good API servers could not be read: {detail}")));
            }
            Observation::Absent { .. } | Observation::NotAsked => return Ok(()),
        };
        let name = names::STATE_CONFIG_MAP;
        let at = format!("ConfigMap {}/{name}", self.settings.namespace);
        for item in items {
            let map = match item {
                Item::Good(map) if map.metadata.name == name => map,
                Item::Malformed(malformed) if malformed.object == at => {
                    return Err((FailureKind::Partial, malformed.to_string()));
                }
                _ => continue,
            };
            let Some(text) = map.data.get(names::STATE_API_SERVERS_KEY) else { continue };
            let known = parse_api_servers(text).map_err(|error| {
                (FailureKind::Partial, format!("{at}: data.{} cannot be read: {error}", names::STATE_API_SERVERS_KEY))
            })?;
            for (name, address) in known {
                if !self.has(&name, &address) {
                    let node = self.node_of(&address);
                    self.servers.push(Expected { name, node, address: Some(address), origin: Origin::KnownGood });
                }
            }
        }
        Ok(())
    }

    fn add_slices(&mut self, facts: &Facts) {
        let ours = facts.endpoint_slices.good().filter(|slice| {
            slice.metadata.namespace == "default"
                && slice.metadata.labels.get(names::LABEL_SERVICE_NAME).is_some_and(|service| service == "kubernetes")
        });
        let mut addresses: Vec<String> =
            ours.flat_map(|slice| &slice.endpoints).flat_map(|endpoint| &endpoint.addresses).cloned().collect();
        addresses.sort();
        for ip in addresses {
            let node = self.node_of(&ip);
            let address = self.at_port(&ip);
            // A node with two families is asked at one address; its other one is no further server.
            let name = node.clone().unwrap_or_else(|| address.clone());
            if !self.has(&name, &address) {
                self.servers.push(Expected { name, node, address: Some(address), origin: Origin::EndpointSlice });
            }
        }
    }
}

#[cfg(test)]
mod tests;
