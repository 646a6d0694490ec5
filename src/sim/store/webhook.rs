//! Validating webhooks of `pods/eviction`, as doubles that can be set: which pods they guard, what they say, how often.

use serde_json::Value;

use super::error::Refusal;
use super::select::Labels;

/// A webhook that refuses evictions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Its name, as its configuration has it.
    pub name: String,
    /// The namespace of the pods that it guards.
    pub namespace: String,
    /// The label and its value of the pods that it guards.
    pub label: (String, String),
    /// What it says.
    pub message: String,
    /// The code that it answers with; less than 400 becomes 400, as the API server has it.
    pub code: u16,
    /// How often it still refuses; none: always.
    pub left: Option<u32>,
}

/// What a webhook is asked.
pub(super) struct Guarded<'a> {
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) dry_run: bool,
}

/// All webhooks.
#[derive(Debug, Default)]
pub struct Webhooks(Vec<Webhook>);

impl Webhooks {
    /// Adds a webhook; one of the same name makes way.
    pub fn set(&mut self, webhook: Webhook) {
        self.remove(&webhook.name);
        self.0.push(webhook);
    }

    /// Takes a webhook away.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|known| known.name != name);
    }

    /// Asks those that guard a pod; one that is gone is guarded by nobody.
    pub(super) fn ask(&mut self, asked: &Guarded<'_>, pod: Option<&Value>) -> Result<(), Refusal> {
        let Some(pod) = pod else { return Ok(()) };
        for webhook in &mut self.0 {
            let (label, value) = &webhook.label;
            let guards = Labels::of_map(Some(&serde_json::json!({label: value}))).is_some_and(|it| it.matches(pod));
            if webhook.namespace != asked.namespace || !guards || webhook.left == Some(0) {
                continue;
            }
            if !asked.dry_run {
                webhook.left = webhook.left.map(|left| left.saturating_sub(1));
            }
            tracing::debug!(pod = asked.name, webhook = webhook.name, "refused");
            let message = format!("admission webhook \"{}\" denied the request: {}", webhook.name, webhook.message);
            return Err(Refusal::new(webhook.code.max(400), "", message));
        }
        Ok(())
    }
}
