//! Which alerts stop a run.

use serde::{Deserialize, Serialize};

use crate::api::Moment;

/// Which alerts stop a run, where gate `alerts` is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Alerts {
    /// An Alertmanager (`http://host:port`), which knows silences; empty for none.
    pub alertmanager: String,
    /// A Prometheus (`http://host:port`), where there is no Alertmanager to ask; empty for none.
    pub prometheus: String,
    /// Names of alerts that do not count.
    pub ignore: Vec<String>,
    /// Values of label `severity` that count; empty for all. An alert without the label counts always.
    pub severities: Vec<String>,
    /// When gate `alerts` is asked.
    pub moments: Vec<Moment>,
}

impl Default for Alerts {
    fn default() -> Self {
        Self {
            alertmanager: String::new(),
            prometheus: String::new(),
            ignore: Vec::new(),
            severities: Vec::new(),
            moments: vec![Moment::Start],
        }
    }
}

impl Alerts {
    /// Who is asked, and where; none where nobody is configured.
    #[must_use]
    pub fn asked(&self) -> Option<(&'static str, String)> {
        let of = |base: &str, path: &str| format!("{}{path}", base.trim_end_matches('/'));
        if !self.alertmanager.is_empty() {
            let path = "/api/v2/alerts?active=true&silenced=false&inhibited=false";
            return Some(("Alertmanager", of(&self.alertmanager, path)));
        }
        // The query is ALERTS{alertstate="firing"}.
        let path = "/api/v1/query?query=ALERTS%7Balertstate%3D%22firing%22%7D";
        (!self.prometheus.is_empty()).then(|| ("Prometheus", of(&self.prometheus, path)))
    }
}
