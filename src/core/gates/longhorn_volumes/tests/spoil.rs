//! No gap in a blocking cluster makes it fine: each path of each document is deleted, nulled and retyped in turn.

use super::super::super::storage::spoiling::spoilt;
use super::*;
use crate::facts::{Facts, Item, Listed, Observation, Source};

/// What may go without a stop: the row, how what was done ends, and why that is right.
const ALLOWED: &[(&str, &[&str], &str)] = &[
    (
        "isRebuilding alone",
        &["/rebuildStatus deleted", "/rebuildStatus nulled", "worker3:10000 deleted"],
        "the map is nullable, and without the entry nothing is being rebuilt; in real life mode WO tells too",
    ),
    (
        "Standby: restoring right now",
        &["/restoreStatus deleted", "/restoreStatus nulled", "worker1:10000 deleted"],
        "the map is nullable, and without the entry nothing is being restored",
    ),
    (
        "switching over",
        &["/switchoverState deleted", "/switchoverState nulled"],
        "Longhorn before 1.12 does not know the field",
    ),
    (
        "B26: the other copy is on a cordoned node",
        &["/spec/unschedulable deleted", "/spec/unschedulable nulled"],
        "the API leaves false out",
    ),
    (
        "the other copy of a detached volume is on a cordoned node",
        &["/spec/unschedulable deleted", "/spec/unschedulable nulled"],
        "the API leaves false out",
    ),
];

fn allowed(row: &str, deed: &str) -> bool {
    ALLOWED.iter().any(|(name, ends, _)| *name == row && ends.iter().any(|end| deed.ends_with(end)))
}

type Documents = fn(&World) -> &[Value];
type Put = fn(&mut Facts, usize, &Value);

fn put<S: Source>(listed: &mut Listed<S>, index: usize, document: &Value) {
    let Observation::Known { value, .. } = listed else { panic!("known") };
    value[index] = S::item(document);
}

/// The kinds, their documents, and how one of them is put into the facts.
const KINDS: [(&str, Documents, Put); 5] = [
    ("volume", |w| &w.docs.volumes, |f, index, document| put(&mut f.longhorn_volumes, index, document)),
    ("replica", |w| &w.docs.replicas, |f, index, document| put(&mut f.longhorn_replicas, index, document)),
    ("engine", |w| &w.docs.engines, |f, index, document| put(&mut f.longhorn_engines, index, document)),
    ("setting", |w| &w.docs.settings, |f, index, document| put(&mut f.longhorn_settings, index, document)),
    ("node", |w| &w.nodes, |f, index, document| put(&mut f.nodes, index, document)),
];

/// Whether a document is of this volume; nodes and settings are of all.
fn concerns(kind: &str, document: &Value, volume: &str) -> bool {
    match kind {
        "volume" => document["metadata"]["name"] == volume,
        "replica" | "engine" => document["spec"]["volumeName"] == volume,
        _ => true,
    }
}

#[test]
fn no_gap_makes_a_blocking_cluster_fine() {
    let mut fine = Vec::new();
    let mut asked = 0;
    for (name, bend, ..) in rows::all().into_iter().filter(|row| row.2 == Status::Block) {
        let world = World::bent(bend);
        let mut case = World::bent(bend).case();
        let finding = case.ask(&GATE);
        let volume = finding.evidence[0].object.rsplit('/').next().expect("a name").to_owned();
        for (kind, documents, put) in KINDS {
            let mine = documents(&world).iter().enumerate().filter(|(_, one)| concerns(kind, one, &volume));
            for (index, document) in mine {
                for (deed, changed) in spoilt(document) {
                    put(&mut case.facts, index, &changed);
                    asked += 1;
                    if !case.ask(&GATE).stops() && !allowed(name, &deed) {
                        fine.push(format!("{name}: {kind} {index} {deed}"));
                    }
                }
                put(&mut case.facts, index, document);
            }
        }
    }
    assert!(asked > 10_000, "only {asked} gaps were tried");
    assert!(fine.is_empty(), "{} of {asked} gaps make it fine:\n{}", fine.len(), fine.join("\n"));
}

/// A good item that was put back must be good: a slip here would let every row pass as malformed.
#[test]
fn what_is_put_back_is_good() {
    let world = World::new();
    let mut case = World::new().case();
    for (_, documents, put) in KINDS {
        for (index, document) in documents(&world).iter().enumerate() {
            put(&mut case.facts, index, document);
        }
    }
    assert!(
        case.facts.longhorn_volumes.known().is_some_and(|all| all.iter().all(|item| matches!(item, Item::Good(_))))
    );
    assert_eq!(case.ask(&GATE).message, FINE);
}
