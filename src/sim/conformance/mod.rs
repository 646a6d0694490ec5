//! Behaviours of the Kubernetes API that maint relies on, as one list that runs on the API server in memory and on
//! a real kube-apiserver. Each speaks raw requests over a `kube::Client`, so that codes, headers and bodies count.
//!
//! All of them were run on kube-apiserver 1.34.4, with and without its controller-manager.

mod custom;
mod evictions;
mod lists;
mod nodes;
mod objects;
mod patches;
mod pods;
mod probe;
mod watches;

use std::future::Future;
use std::pin::Pin;

pub use probe::{Failure, Probe, Reply};

/// What the suite may use.
#[derive(Debug, Clone)]
pub struct Capabilities {
    /// A namespace of its own; it is there and empty but for what controllers put there.
    pub namespace: String,
    /// A node that may be cordoned and get foreign status conditions. It needs a label, as every real node has: one
    /// without any `managedFields` is not tracked.
    pub node: Option<String>,
    /// Whether pods may be created in the namespace and made Ready by a patch of their status. They are bound to a
    /// node that does not exist, so that no kubelet minds them.
    pub pods: bool,
    /// Whether a namespace may be created, which is left to end.
    pub namespaces: bool,
    /// Whether CustomResourceDefinitions may be created.
    pub definitions: bool,
    /// A revision that the server has forgotten. A real one forgets when it starts: revision 1 is forgotten by an API
    /// server that was restarted after the first writes, and is not by a fresh one.
    pub forgotten: Option<u64>,
}

/// What a behaviour needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    Node,
    Pods,
    Namespaces,
    Definitions,
    Forgotten,
}

type Run = for<'a> fn(&'a Probe) -> Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + 'a>>;

/// A named behaviour.
struct Behaviour {
    name: &'static str,
    needs: Needs,
    run: Run,
}

/// Makes the table of a module: names, and the functions of the same name.
macro_rules! behaviours {
    ($needs:expr, [$($name:ident),+ $(,)?]) => {
        /// The behaviours of this module.
        pub(super) const BEHAVIOURS: &[super::Behaviour] = &[$(super::Behaviour {
            name: stringify!($name),
            needs: $needs,
            run: |probe| Box::pin($name(probe)),
        }),+];
    };
}
use behaviours;

fn all() -> impl Iterator<Item = &'static Behaviour> {
    [
        objects::BEHAVIOURS,
        patches::BEHAVIOURS,
        lists::BEHAVIOURS,
        watches::BEHAVIOURS,
        watches::OF_FORGOTTEN,
        custom::BEHAVIOURS,
        nodes::BEHAVIOURS,
        pods::BEHAVIOURS,
        evictions::BEHAVIOURS,
        evictions::IN_NAMESPACES,
    ]
    .into_iter()
    .flatten()
}

/// Runs every behaviour that the capabilities allow, one after the other. A name that is missing in the answer
/// was not allowed.
pub async fn run_all(client: kube::Client, capabilities: &Capabilities) -> Vec<(&'static str, Result<(), Failure>)> {
    let mut found = Vec::new();
    for behaviour in all() {
        let allowed = match behaviour.needs {
            Needs::Nothing => true,
            Needs::Node => capabilities.node.is_some(),
            Needs::Pods => capabilities.pods,
            Needs::Namespaces => capabilities.namespaces,
            Needs::Definitions => capabilities.definitions,
            Needs::Forgotten => capabilities.forgotten.is_some(),
        };
        if allowed {
            let probe = Probe::new(client.clone(), capabilities, behaviour.name);
            found.push((behaviour.name, (behaviour.run)(&probe).await));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::store::http::Cluster;
    use serde_json::json;

    #[tokio::test(start_paused = true)]
    async fn the_store_behaves_as_the_real_server() {
        let clock = Clock::starting_at("2026-11-30T02:00:00Z".parse().expect("a time"));
        let cluster = Cluster::new(1, clock, 1);
        {
            let mut inner = cluster.lock();
            for object in [
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "conformance"}}),
                json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"kubernetes.io/hostname": "n1"}}, "spec": {},
                    "status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
            ] {
                inner.store.seed(object, clock.now());
            }
        }
        let capabilities = Capabilities {
            namespace: "conformance".to_owned(),
            node: Some("n1".to_owned()),
            pods: true,
            namespaces: true,
            definitions: true,
            forgotten: Some(1),
        };
        let found = run_all(cluster.client(0, "conformance"), &capabilities).await;
        let failed: Vec<_> = found.iter().filter(|(_, result)| result.is_err()).collect();
        assert!(failed.is_empty(), "{failed:#?}");
        assert!(found.len() >= 40, "{}", found.len());
        // Names become label values, which end at 63 characters.
        assert!(found.iter().all(|(name, _)| name.len() <= 63));
        println!("figure conformance.behaviours {} count", found.len());
    }
}
