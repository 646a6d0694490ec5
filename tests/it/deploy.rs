//! The manifests of `deploy/`: what is generated is what the program says, and all of it is YAML.

use std::path::PathBuf;

use maint_core::api::rights::{Part, manifest};
use serde_json::Value;

use crate::support::{maint, root};
use crate::tidy::{files, same_or_bless, shown, text_of};

/// Every document of a file.
fn documents(path: &std::path::Path) -> Vec<Value> {
    serde_saphyr::from_multiple(&text_of(path)).unwrap_or_else(|error| panic!("{}: {error}", shown(path)))
}

fn manifests() -> Vec<PathBuf> {
    let found = files("deploy", ".yaml");
    assert!(found.len() > 10, "found only {} manifests", found.len());
    found
}

#[test]
fn the_roles_are_the_table_of_rights() {
    for (part, folder) in [(Part::Base, "base"), (Part::Actions, "actions"), (Part::Kured, "kured")] {
        same_or_bless(&root().join(format!("deploy/{folder}/rbac.yaml")), &manifest(part));
    }
}

#[test]
fn the_crds_are_those_of_the_program() {
    let run = maint(&["crds"]);
    let text = format!("# `maint crds`, kept equal by `MAINT_BLESS=1 cargo test --test it deploy`.\n{}", run.stdout);
    same_or_bless(&root().join("deploy/base/crds.yaml"), &text);
}

/// kustomize takes no file from outside of its folder.
#[test]
fn the_configuration_is_the_shipped_one() {
    same_or_bless(&root().join("deploy/base/maint.toml"), &text_of(&root().join("config/maint.toml")));
}

#[test]
fn every_manifest_can_be_read_and_says_what_it_is() {
    for path in manifests() {
        for document in documents(&path) {
            let values = path.ends_with("values.yaml");
            assert!(values || document["kind"].is_string(), "{} has a document without kind", shown(&path));
        }
    }
}

#[test]
fn no_role_has_a_wildcard_or_reads_secrets() {
    let mut rules = 0;
    for path in manifests() {
        for document in documents(&path) {
            for rule in document["rules"].as_array().into_iter().flatten() {
                rules += 1;
                let text = rule.to_string();
                let bad = ["\"*\"", "secrets", "pods/exec", "pods/attach"].iter().find(|word| text.contains(**word));
                assert!(bad.is_none(), "{} grants {bad:?}: {text}", shown(&path));
            }
        }
    }
    assert!(rules > 20, "only {rules} rules");
}
