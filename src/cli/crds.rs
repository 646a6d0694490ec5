//! `maint crds`: the CustomResourceDefinitions, for `kubectl apply -f -`. Needs no cluster.

use maint_core::api;
use serde_json::json;

use super::{Common, Exit, Output, terminal};

/// Prints them: two YAML documents, or one List as JSON.
///
/// # Errors
/// If they cannot be written.
pub fn run(common: &Common) -> anyhow::Result<Exit> {
    let crds = api::crds()?;
    match common.output {
        Output::Text => {
            let mut text = String::new();
            for crd in &crds {
                text.push_str("---\n");
                text.push_str(&serde_saphyr::to_string(crd)?);
            }
            terminal::data(&text)?;
        }
        // kubectl applies a List like its items, which plain documents of maint.dev/v1 would not be.
        Output::Json => terminal::json(&json!({"apiVersion": "v1", "kind": "List", "items": crds}))?,
    }
    Ok(Exit::Fine)
}
