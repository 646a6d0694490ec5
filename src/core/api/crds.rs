//! The CustomResourceDefinitions, with the rules of what may change after creation.

use kube_core::CustomResourceExt;
use serde_json::{Value, json};

use super::record::{Maintenance, MaintenanceReport};
use super::{Action, Strategy, Trigger};

/// Both CRDs as they are applied.
///
/// # Errors
/// If a generated schema is no JSON, which a test rules out.
pub fn crds() -> Result<Vec<Value>, serde_json::Error> {
    let mut maintenance = serde_json::to_value(Maintenance::crd())?;
    let report = serde_json::to_value(MaintenanceReport::crd())?;
    if let Some(spec) = maintenance.pointer_mut(SPEC_SCHEMA) {
        spec["x-kubernetes-validations"] = Value::Array(rules());
    }
    Ok(vec![maintenance, report])
}

const SPEC_SCHEMA: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";

/// Written once at creation.
const FIXED: &[&str] = &["nodeName", "scope", "action", "trigger"];
/// Fixed as well, and may be left out.
const FIXED_IF_SET: &[&str] = &["strategy", "startTimeoutSeconds", "bootID"];
/// Said once: a second one cannot take its place, so two programs never run one command.
const ONCE: &[&str] = &["claimed", "actionDone", "supersededBy"];

fn rules() -> Vec<Value> {
    let list =
        |names: Vec<&str>| format!("[{}]", names.iter().map(|n| format!("'{n}'")).collect::<Vec<_>>().join(", "));
    let mut rules = vec![
        rule(
            format!("self.action in {}", list(Action::ALL.iter().map(|action| action.as_str()).collect())),
            "action is none of ours",
        ),
        rule(
            format!("self.trigger in {}", list(Trigger::ALL.iter().map(|trigger| trigger.as_str()).collect())),
            "trigger is none of ours",
        ),
        rule(
            format!(
                "!has(self.strategy) || self.strategy in {}",
                list(Strategy::ALL.iter().map(|strategy| strategy.as_str()).collect())
            ),
            "strategy is none of ours",
        ),
    ];
    for field in FIXED {
        rules.push(rule(format!("self.{field} == oldSelf.{field}"), &format!("{field} cannot change")));
    }
    for field in FIXED_IF_SET {
        rules.push(rule(
            format!(
                "has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"
            ),
            &format!("{field} cannot change"),
        ));
    }
    for field in ONCE {
        rules.push(rule(
            format!("!has(oldSelf.{field}) || (has(self.{field}) && self.{field} == oldSelf.{field})"),
            &format!("{field} can be said once"),
        ));
    }
    rules
}

fn rule(rule: String, message: &str) -> Value {
    json!({"rule": rule, "message": message})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crds_have_their_names_status_and_rules() {
        let crds = crds().expect("schemas");
        let names: Vec<&str> = crds.iter().filter_map(|crd| crd["metadata"]["name"].as_str()).collect();
        assert_eq!(names, ["maintenances.maint.dev", "maintenancereports.maint.dev"]);
        let version = &crds[0]["spec"]["versions"][0];
        assert!(version["subresources"]["status"].is_object());
        assert_eq!(version["selectableFields"][1]["jsonPath"], ".status.phase");
        let spec = crds[0].pointer(SPEC_SCHEMA).expect("a schema");
        assert!(spec["x-kubernetes-validations"].as_array().is_some_and(|rules| rules.len() > 8));
        // Every field that a rule names exists.
        let properties = spec["properties"].as_object().expect("properties");
        for field in FIXED.iter().chain(FIXED_IF_SET).chain(ONCE) {
            assert!(properties.contains_key(*field), "{field}");
        }
    }
}
