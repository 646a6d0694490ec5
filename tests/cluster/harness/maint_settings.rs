//! The settings of `maint serve` on the test cluster: short times, receivers in the hub.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Result;

use super::webhooks::Webhooks;

/// Seconds for which a Lease must be seen unchanged. The leader must know its Lease to last longer than the 8 s that
/// a write may take: 11 s are left just before a renewal.
const ELECTION: &str = "[election]\nlease_seconds = 15\nrenew_deadline_seconds = 12\nretry_seconds = 1\n";

/// Short times, so that a run is over in half a minute.
const RUN: [(&str, u64); 9] = [
    ("start_timeout_seconds", 90),
    ("drain_timeout_seconds", 90),
    ("handover_timeout_seconds", 60),
    ("return_timeout_seconds", 120),
    ("verify_timeout_seconds", 90),
    ("settle_timeout_seconds", 120),
    ("sweeps", 2),
    ("sweep_interval_seconds", 2),
    ("settle_for_seconds", 3),
];

/// All tables of the settings. Each of `run` replaces a time of the table `[run]`.
pub fn tables(folder: &Path, webhooks: &Webhooks, run: &[(&str, u64)]) -> Result<String> {
    let mut times: BTreeMap<&str, u64> = RUN.into_iter().collect();
    times.extend(run.iter().copied());
    let mut text = String::from("[run]\n");
    for (key, value) in times {
        writeln!(text, "{key} = {value}")?;
    }
    text.push_str(ELECTION);
    text.push_str("[action.pod]\nenabled = true\nimage = \"test\"\n");
    let receivers = [
        ("slack", "chat", webhooks.slack_url()),
        ("webhook", "pager", webhooks.json_url()),
        ("webhook", "dead", Webhooks::dead_url()),
    ];
    for (kind, name, url) in receivers {
        let file = folder.join(format!("{name}-url"));
        fs::write(&file, url)?;
        let file = file.display();
        writeln!(text, "[[notify.{kind}]]\nname = \"{name}\"\nurl_file = \"{file}\"\nallow_insecure = true")?;
    }
    Ok(text)
}
