//! Newer facts laid over older ones.

use super::{Facts, Item, Listed, Node, Observation};

/// What was asked for anew replaces what was known, also where it could not be read: what is unknown stays so.
fn renew<T>(known: &mut Observation<T>, newer: Observation<T>) {
    if !matches!(newer, Observation::NotAsked) {
        *known = newer;
    }
}

/// Replaces one node. The time stays that of the others, which is the older one.
fn renew_node(known: &mut Listed<Node>, newer: Listed<Node>, name: &str) {
    let is_it = |item: &Item<Node>| match item {
        Item::Good(node) => node.metadata.name == name,
        Item::Malformed(bad) => bad.object == format!("Node {name}"),
    };
    match (known, newer) {
        (Observation::Known { value: known, .. }, Observation::Known { value: newer, .. }) => {
            known.retain(|item| !is_it(item));
            known.extend(newer.into_iter().filter(is_it));
        }
        // One node is not all of them.
        (_, Observation::Known { .. }) => {}
        (known, newer) => renew(known, newer),
    }
}

impl Facts {
    /// Takes over whatever `newer` asked for, and of nodes only this one. Each fact keeps its own time, so that what
    /// stayed ages as before.
    pub fn overlay(&mut self, newer: Self, node: &str) {
        let Self {
            nodes,
            leases,
            daemon_sets,
            services,
            endpoint_slices,
            dns_pods,
            target_pods,
            action_pods,
            unscheduled_pods,
            own_pods,
            kured_pods,
            deployments,
            stateful_sets,
            replica_sets,
            horizontal_pod_autoscalers,
            pod_disruption_budgets,
            longhorn_volumes,
            longhorn_replicas,
            longhorn_engines,
            longhorn_settings,
            longhorn_nodes,
            longhorn_instance_managers,
            longhorn_attachments,
            cnpg_clusters,
            cnpg_pods,
            network_agent_pods,
            cilium_nodes,
            upgrade_plans,
            jobs,
            flux_kustomizations,
            flux_helm_releases,
            velero_backups,
            velero_restores,
            longhorn_backups,
            longhorn_system_backups,
            longhorn_system_restores,
            cnpg_backups,
            virtual_machine_instances,
            virtual_machine_migrations,
            kubevirts,
            volume_attachments,
            config_maps,
            maintenances,
            maintenance_reports,
            api_servers,
            matrix,
            alerts,
        } = newer;
        renew_node(&mut self.nodes, nodes, node);
        renew(&mut self.leases, leases);
        renew(&mut self.daemon_sets, daemon_sets);
        renew(&mut self.services, services);
        renew(&mut self.endpoint_slices, endpoint_slices);
        renew(&mut self.dns_pods, dns_pods);
        renew(&mut self.target_pods, target_pods);
        renew(&mut self.action_pods, action_pods);
        renew(&mut self.unscheduled_pods, unscheduled_pods);
        renew(&mut self.own_pods, own_pods);
        renew(&mut self.kured_pods, kured_pods);
        renew(&mut self.deployments, deployments);
        renew(&mut self.stateful_sets, stateful_sets);
        renew(&mut self.replica_sets, replica_sets);
        renew(&mut self.horizontal_pod_autoscalers, horizontal_pod_autoscalers);
        renew(&mut self.pod_disruption_budgets, pod_disruption_budgets);
        renew(&mut self.longhorn_volumes, longhorn_volumes);
        renew(&mut self.longhorn_replicas, longhorn_replicas);
        renew(&mut self.longhorn_engines, longhorn_engines);
        renew(&mut self.longhorn_settings, longhorn_settings);
        renew(&mut self.longhorn_nodes, longhorn_nodes);
        renew(&mut self.longhorn_instance_managers, longhorn_instance_managers);
        renew(&mut self.longhorn_attachments, longhorn_attachments);
        renew(&mut self.cnpg_clusters, cnpg_clusters);
        renew(&mut self.cnpg_pods, cnpg_pods);
        renew(&mut self.network_agent_pods, network_agent_pods);
        renew(&mut self.cilium_nodes, cilium_nodes);
        renew(&mut self.upgrade_plans, upgrade_plans);
        renew(&mut self.jobs, jobs);
        renew(&mut self.flux_kustomizations, flux_kustomizations);
        renew(&mut self.flux_helm_releases, flux_helm_releases);
        renew(&mut self.velero_backups, velero_backups);
        renew(&mut self.velero_restores, velero_restores);
        renew(&mut self.longhorn_backups, longhorn_backups);
        renew(&mut self.longhorn_system_backups, longhorn_system_backups);
        renew(&mut self.longhorn_system_restores, longhorn_system_restores);
        renew(&mut self.cnpg_backups, cnpg_backups);
        renew(&mut self.virtual_machine_instances, virtual_machine_instances);
        renew(&mut self.virtual_machine_migrations, virtual_machine_migrations);
        renew(&mut self.kubevirts, kubevirts);
        renew(&mut self.volume_attachments, volume_attachments);
        renew(&mut self.config_maps, config_maps);
        renew(&mut self.maintenances, maintenances);
        renew(&mut self.maintenance_reports, maintenance_reports);
        renew(&mut self.api_servers, api_servers);
        renew(&mut self.matrix, matrix);
        renew(&mut self.alerts, alerts);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::facts::{FailureKind, Source as _};

    #[test]
    fn what_was_asked_anew_counts_also_where_it_failed() {
        fn known<T>(time: &str) -> Listed<T> {
            Observation::Known { value: Vec::new(), at: time.parse().expect("a time") }
        }
        let failed = || Observation::Failed {
            kind: FailureKind::Timeout,
            detail: "no answer".to_owned(),
            at: "2026-11-30T01:00:05Z".parse().expect("a time"),
        };
        let mut facts = Facts {
            nodes: known("2026-11-30T01:00:00Z"),
            target_pods: known("2026-11-30T01:00:00Z"),
            pod_disruption_budgets: known("2026-11-30T01:00:00Z"),
            ..Facts::default()
        };
        let newer =
            Facts { target_pods: known("2026-11-30T01:00:05Z"), pod_disruption_budgets: failed(), ..Facts::default() };
        facts.overlay(newer, "n1");
        assert_eq!(facts.nodes, known("2026-11-30T01:00:00Z"), "nobody asked");
        assert_eq!(facts.target_pods, known("2026-11-30T01:00:05Z"), "asked anew");
        assert_eq!(facts.pod_disruption_budgets, failed(), "asked anew in vain");
    }
    #[test]
    fn one_node_is_replaced_among_the_others() {
        let at = |seconds: u8| format!("2026-11-30T01:00:0{seconds}Z").parse().expect("a time");
        let node = |name: &str, unschedulable: bool| {
            Node::item(&json!({"metadata": {"name": name}, "spec": {"unschedulable": unschedulable},
                "status": {"nodeInfo": {"bootID": "b"}}}))
        };
        let listed = |items: Vec<Item<Node>>, seconds: u8| Observation::Known { value: items, at: at(seconds) };
        let odd = || Node::item(&json!({"metadata": {"name": "n1"}}));
        let failed = || Observation::Failed { kind: FailureKind::Timeout, detail: "no answer".to_owned(), at: at(5) };
        let before = || listed(vec![node("n1", false), node("n2", false)], 0);
        let rows = [
            (
                "changed",
                before(),
                listed(vec![node("n1", true)], 5),
                listed(vec![node("n2", false), node("n1", true)], 0),
            ),
            ("gone", before(), listed(vec![], 5), listed(vec![node("n2", false)], 0)),
            ("not understood", before(), listed(vec![odd()], 5), listed(vec![node("n2", false), odd()], 0)),
            (
                "understood again",
                listed(vec![odd()], 0),
                listed(vec![node("n1", true)], 5),
                listed(vec![node("n1", true)], 0),
            ),
            (
                "others with it",
                before(),
                listed(vec![node("n1", true), node("n2", true)], 5),
                listed(vec![node("n2", false), node("n1", true)], 0),
            ),
            ("not read", before(), failed(), failed()),
            ("the others are not known", failed(), listed(vec![node("n1", true)], 5), failed()),
        ];
        for (row, known, newer, wanted) in rows {
            let mut facts = Facts { nodes: known, ..Facts::default() };
            facts.overlay(Facts { nodes: newer, ..Facts::default() }, "n1");
            assert_eq!(facts.nodes, wanted, "{row}");
        }
    }
}
