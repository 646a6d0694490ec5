//! The alerts that fire, asked of an Alertmanager or a Prometheus outside the API.

use std::time::Duration;

use maint_core::config::Settings;
use maint_core::facts::{Alert, FailureKind, Listed, Observation};

use crate::client::Fetch;
use crate::runtime::Clock;

/// How long the answer may take, in seconds.
const LIMIT: Duration = Duration::from_secs(10);

/// Asks who is configured; without anybody nothing is asked.
pub(super) async fn read(fetch: &impl Fetch, clock: &Clock, settings: &Settings) -> Listed<Alert> {
    let Some((who, url)) = settings.alerts.asked() else { return Observation::NotAsked };
    let at = clock.now();
    let failed = |kind, why: String| {
        let detail = format!("{who} could not be asked: {why}");
        Observation::Failed { kind, detail, at }
    };
    match clock.timeout(LIMIT, fetch.get(&url)).await {
        Ok(Ok((status, body))) => Alert::answer(who, status, &body, at),
        Ok(Err(why)) => failed(FailureKind::Transport, why),
        Err(late) => failed(FailureKind::Timeout, late.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use maint_core::config::Alerts;

    use super::*;
    use crate::testing::env;

    /// Answers always the same, or never, and notes what was asked.
    struct Script(Option<Result<(u16, Vec<u8>), String>>, Mutex<Vec<String>>);

    impl Fetch for Script {
        async fn get(&self, url: &str) -> Result<(u16, Vec<u8>), String> {
            self.1.lock().expect("not poisoned").push(url.to_owned());
            match &self.0 {
                Some(answer) => answer.clone(),
                None => std::future::pending().await,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_configured_is_asked_once_and_in_time() {
        let list = || Some(Ok((200, br#"[{"labels":{"alertname":"A"}}]"#.to_vec())));
        let alertmanager = Alerts { alertmanager: "http://a:9093/".to_owned(), ..Alerts::default() };
        let prometheus = Alerts { prometheus: "http://p:9090".to_owned(), ..Alerts::default() };
        let in_a = "http://a:9093/api/v2/alerts?active=true&silenced=false&inhibited=false";
        let in_p = "http://p:9090/api/v1/query?query=ALERTS%7Balertstate%3D%22firing%22%7D";
        let rows = [
            ("nobody", Alerts::default(), list(), vec![], "not asked"),
            ("Alertmanager", alertmanager.clone(), list(), vec![in_a], "known 1"),
            ("Prometheus", prometheus, Some(Ok((503, b"{}".to_vec()))), vec![in_p], "server"),
            ("refuses", alertmanager.clone(), Some(Err("refused".to_owned())), vec![in_a], "transport"),
            ("hangs", alertmanager, None, vec![in_a], "timeout"),
        ];
        for (row, alerts, answer, urls, wanted) in rows {
            let (env, _owner) = env();
            let script = Script(answer, Mutex::default());
            let settings = Settings { alerts, ..Settings::default() };
            let got = match read(&script, &env.clock, &settings).await {
                Observation::NotAsked => "not asked".to_owned(),
                Observation::Known { value, .. } => format!("known {}", value.len()),
                Observation::Failed { kind, .. } => kind.to_string(),
                Observation::Absent { .. } => "absent".to_owned(),
            };
            assert_eq!(
                (got.as_str(), script.1.into_inner().expect("not poisoned")),
                (wanted, urls.iter().map(ToString::to_string).collect()),
                "{row}"
            );
        }
    }
}
