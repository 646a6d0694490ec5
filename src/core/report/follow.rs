//! A run while somebody watches it: one line for each thing that happened, and one that tells where it is now.

use jiff::Timestamp;

use super::draining::{Key, Progress};
use super::kured;
use super::paint::tame;
use super::story::waits_for_done;
use super::table::length;
use crate::api::Phase;
use crate::api::record::{FindingRecord, Maintenance, TimelineEntry};
use crate::plan::{parse_time, phase_of};

/// Remembers what was told already.
#[derive(Debug, Clone)]
pub struct Follow {
    begun: Timestamp,
    last: Option<TimelineEntry>,
    waits_for: Option<(String, String)>,
    told_to_act: bool,
    kured: Option<&'static str>,
    drain: Key,
}

impl Follow {
    /// Tells everything, counted from `begun`.
    #[must_use]
    pub const fn from_start(begun: Timestamp) -> Self {
        Self { begun, last: None, waits_for: None, told_to_act: false, kured: None, drain: (0, None, None) }
    }

    /// Tells what happens after the present state of a record, counted from `begun`.
    #[must_use]
    pub fn from_here(record: &Maintenance, begun: Timestamp) -> Self {
        let last = record.status.as_ref().and_then(|status| status.timeline.last()).cloned();
        Self { begun, last, waits_for: None, told_to_act: false, kured: None, drain: (0, None, None) }
    }

    /// What happened since the last call: `+00:01:23 Draining: cordoned; pods are evicted`.
    pub fn news(&mut self, record: &Maintenance, now: Timestamp) -> Vec<String> {
        let told = self.told(record, now).into_iter();
        told.map(|(at, text)| at.map_or_else(|| text.clone(), |at| format!("{} {text}", self.elapsed(at)))).collect()
    }

    /// The same without the times in the sentences: when, where it has a time, and what.
    pub fn told(&mut self, record: &Maintenance, now: Timestamp) -> Vec<(Option<Timestamp>, String)> {
        let Some(status) = &record.status else { return Vec::new() };
        let mut lines: Vec<(Option<Timestamp>, String)> = self
            .after_last(&status.timeline)
            .iter()
            .map(|entry| {
                let at = parse_time(Some(&entry.at)).unwrap_or(now);
                (Some(at), format!("{}: {}", tame(&entry.phase), tame(&entry.message)))
            })
            .collect();
        if let Some(last) = status.timeline.last() {
            self.last = Some(last.clone());
        }
        let worst = status.findings.first().filter(|finding| stops(finding));
        if phase_of(record) == Phase::Pending
            && let Some(finding) = worst
        {
            // Ages in sentences change with every look; another gate or reason is news.
            let key = (finding.gate.clone(), finding.reason.clone());
            if self.waits_for.as_ref() != Some(&key) {
                lines.push((Some(now), format!("Pending: {}", waits(finding))));
                self.waits_for = Some(key);
            }
        }
        let of_kured = kured::waits_for(record);
        let key = of_kured.as_ref().map(|wait| wait.key);
        if let Some(wait) = of_kured.filter(|_| key != self.kured) {
            lines.push((Some(now), format!("{}: {}", phase_of(record), wait.shown(now))));
        }
        self.kured = key;
        if let Some(progress) = Progress::of(record)
            && progress.key() != self.drain
        {
            let held = progress.held();
            let held = if held.is_empty() { held } else { format!("; {held}") };
            lines.push((Some(now), format!("Draining: {}{held}", progress.count())));
            self.drain = progress.key();
        }
        if waits_for_done(record) && !self.told_to_act {
            // Whoever watches is the first to know, whatever becomes of the messages.
            let (node, name) = (&record.spec.node_name, record.metadata.name.as_deref().unwrap_or_default());
            lines.push((None, tame(&format!("GO: act on {node} now, then: maint done {name}"))));
            self.told_to_act = true;
        }
        lines
    }

    /// Where it is now, for the last line of a terminal: elapsed time, phase, deadline or what it waits for.
    #[must_use]
    pub fn live(&self, record: &Maintenance, now: Timestamp) -> String {
        let elapsed = self.elapsed(now);
        let Some(status) = &record.status else { return format!("{elapsed} no leader has taken it yet") };
        let phase = phase_of(record);
        let mut line = format!("{elapsed} {phase}");
        if phase == Phase::Pending {
            match status.findings.first().filter(|finding| stops(finding)) {
                Some(finding) => line = format!("{line}: {}", waits(finding)),
                None => line.push_str(": the gates are asked"),
            }
        }
        let progress = Progress::of(record);
        if let Some(progress) = &progress {
            line = format!("{line}, {}", progress.count());
        }
        let of_kured = kured::waits_for(record);
        if let Some(wait) = &of_kured {
            line = format!("{line}: {}", wait.shown(now));
        } else if matches!(phase, Phase::Cordoning | Phase::Draining | Phase::Acting)
            && let Some(finding) = status.findings.first().filter(|finding| stops(finding))
        {
            line = format!("{line}: {}", waits(finding));
        }
        if waits_for_done(record) {
            line.push_str(", waits for you to act and say `maint done`");
        }
        if status.halted_since.is_some() {
            return format!("{line}, halted: until `maint unhalt`");
        }
        if let Some(deadline) = parse_time(status.deadline.as_ref()) {
            let left = deadline.duration_since(now).as_secs();
            let until = if left > 0 { format!("{} left", length(left)) } else { "passed".to_owned() };
            // While pods are awaited the columns are for them.
            line = match &progress {
                Some(_) => format!("{line}, {until}"),
                None => format!("{line}, deadline {} ({until})", deadline.strftime("%H:%M:%SZ")),
            };
        }
        match progress.map(|progress| progress.held()) {
            Some(held) if !held.is_empty() => format!("{line}: {held}"),
            _ => line,
        }
    }

    /// `+00:01:23`
    fn elapsed(&self, at: Timestamp) -> String {
        format!("+{}", length(at.duration_since(self.begun).as_secs()))
    }

    /// The list is cut in its middle when it grows too long, so its length tells nothing.
    fn after_last<'t>(&self, timeline: &'t [TimelineEntry]) -> &'t [TimelineEntry] {
        let Some(last) = &self.last else { return timeline };
        let from = match timeline.iter().rposition(|entry| entry == last) {
            Some(index) => index + 1,
            None => timeline.iter().rposition(|entry| entry.at <= last.at).map_or(0, |index| index + 1),
        };
        timeline.get(from..).unwrap_or_default()
    }
}

fn stops(finding: &FindingRecord) -> bool {
    matches!(finding.status.as_str(), "block" | "unknown")
}

fn waits(finding: &FindingRecord) -> String {
    tame(&format!("waits for {} ({}): {}", finding.gate, finding.reason, finding.message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::{at, record};

    fn entry(at: &str, phase: &str, message: &str) -> TimelineEntry {
        TimelineEntry { at: at.into(), phase: phase.into(), message: message.into() }
    }

    fn finding(reason: &str, message: &str) -> FindingRecord {
        FindingRecord {
            gate: "longhorn-volumes".into(),
            status: "block".into(),
            reason: reason.into(),
            message: message.into(),
            since: None,
            evidence: Vec::new(),
        }
    }

    #[test]
    fn each_entry_is_told_once_with_its_own_time() {
        let mut follow = Follow::from_start(at("01:00:00"));
        let mut run = record("Pending", |_| {});
        run.status = None;
        assert!(follow.news(&run, at("01:00:01")).is_empty(), "no leader yet");
        run = record("Draining", |status| {
            status.timeline = vec![
                entry("2026-11-30T01:00:00Z", "Pending", "wished"),
                entry("2026-11-30T01:01:23Z", "Draining", "cordoned; pods are evicted"),
            ];
        });
        let wanted = ["+00:00:00 Pending: wished", "+00:01:23 Draining: cordoned; pods are evicted"];
        assert_eq!(follow.news(&run, at("01:02:00")), wanted);
        assert!(follow.news(&run, at("01:02:01")).is_empty(), "told already");
    }

    #[test]
    fn a_timeline_that_was_cut_is_told_from_where_it_goes_on() {
        let mut run = record("Settling", |status| {
            status.timeline =
                vec![entry("2026-11-30T01:00:00Z", "Pending", "a"), entry("2026-11-30T01:05:00Z", "x", "b")];
        });
        let mut follow = Follow::from_here(&run, at("01:05:00"));
        assert!(follow.news(&run, at("01:05:01")).is_empty(), "what was there is not told");
        let status = run.status.as_mut().expect("a status");
        status.timeline.pop();
        status.timeline.push(entry("2026-11-30T01:06:00Z", "Settling", "c"));
        assert_eq!(follow.news(&run, at("01:06:01")), ["+00:01:00 Settling: c"]);
    }

    #[test]
    fn what_it_waits_for_is_news_only_when_it_changes() {
        let mut follow = Follow::from_start(at("01:00:00"));
        let mut run =
            record("Pending", |status| status.findings = vec![finding("LonghornVolumeRebuilding", "for 1 s")]);
        let told = follow.news(&run, at("01:00:10"));
        assert_eq!(told, ["+00:00:10 Pending: waits for longhorn-volumes (LonghornVolumeRebuilding): for 1 s"]);
        run.status.as_mut().expect("a status").findings = vec![finding("LonghornVolumeRebuilding", "for 2 s")];
        assert!(follow.news(&run, at("01:00:11")).is_empty(), "only its age changed");
        run.status.as_mut().expect("a status").findings = vec![finding("LonghornVolumeFaulted", "lost")];
        assert_eq!(follow.news(&run, at("01:00:12")).len(), 1, "another reason");
    }

    #[test]
    fn a_drain_is_told_when_its_state_changes_and_not_pod_by_pod() {
        let mut follow = Follow::from_start(at("01:00:00"));
        let mut news = |left: i64, waiting: &[&str], time: &str| {
            let waiting = waiting.iter().map(|line| (*line).to_owned()).collect();
            let run = record("Draining", |s| {
                s.drain = Some(crate::api::record::DrainRecord { planned: 8, left, waiting, ..Default::default() });
            });
            follow.news(&run, at(time))
        };
        let ending = "shop/web-1 is ending, due 2026-11-30T01:00:50Z";
        let blocked = "shop/db-0 is blocked by budget shop/db, since 2026-11-30T01:00:20Z: which needs 2";
        assert!(news(8, &[ending], "01:00:10").is_empty(), "the timeline says that it begins");
        assert!(news(7, &[ending], "01:00:11").is_empty(), "one pod");
        assert_eq!(news(6, &[ending], "01:00:12"), ["+00:00:12 Draining: 2 of 8 pods gone"]);
        let wanted = format!("+00:00:20 Draining: 2 of 8 pods gone; {blocked}");
        assert_eq!(news(6, &[ending, blocked], "01:00:20"), [wanted]);
        assert!(news(5, &[blocked], "01:00:21").is_empty(), "the same holds it up");
        assert_eq!(news(0, &[], "01:00:40"), ["+00:00:40 Draining: 8 of 8 pods gone"]);
        let run = record("Draining", |s| {
            s.deadline = Some("2026-11-30T01:30:00Z".into());
            let waiting = vec![blocked.into()];
            s.drain = Some(crate::api::record::DrainRecord { planned: 12, left: 3, waiting, ..Default::default() });
        });
        let wanted = format!("+00:01:00 Draining, 9 of 12 pods gone, 00:29:00 left: {blocked}");
        assert_eq!(follow.live(&run, at("01:01:00")), wanted);
    }

    #[test]
    fn whoever_watches_is_told_to_act_once() {
        let mut follow = Follow::from_start(at("01:00:00"));
        let mut run = record("Acting", |_| {});
        run.spec.action = "external".into();
        assert!(follow.news(&run, at("01:00:01")).is_empty(), "no go yet");
        run.status.as_mut().expect("a status").phase = "Returning".into();
        assert_eq!(follow.news(&run, at("01:00:02")), ["GO: act on worker2 now, then: maint done worker2-x7k2m"]);
        assert!(follow.news(&run, at("01:00:03")).is_empty(), "told already");
        run.spec.command_waits = true;
        assert!(Follow::from_start(at("01:00:00")).news(&run, at("01:00:04")).is_empty(), "a program acts");
    }

    #[test]
    fn the_live_line_at_each_phase() {
        let follow = Follow::from_start(at("01:00:00"));
        let mut none = record("Pending", |_| {});
        none.status = None;
        let mut warned = finding("X", "y");
        warned.status = "warn".into();
        let rows = [
            ("no leader", none, "+00:01:00 no leader has taken it yet"),
            (
                "nothing stops it",
                record("Pending", |s| s.findings = vec![warned]),
                "+00:01:00 Pending: the gates are asked",
            ),
            (
                "blocked",
                record("Pending", |s| s.findings = vec![finding("LonghornVolumeFaulted", "v\u{1b}[2J")]),
                "+00:01:00 Pending: waits for longhorn-volumes (LonghornVolumeFaulted): v\\u{1b}[2J",
            ),
            (
                "draining",
                record("Draining", |s| {
                    s.deadline = Some("2026-11-30T01:30:00Z".into());
                    s.drain = Some(crate::api::record::DrainRecord { planned: 12, left: 3, ..Default::default() });
                }),
                "+00:01:00 Draining, 9 of 12 pods gone, 00:29:00 left",
            ),
            (
                "late",
                record("Returning", |s| s.deadline = Some("2026-11-30T01:00:30Z".into())),
                "+00:01:00 Returning, deadline 01:00:30Z (passed)",
            ),
            (
                "halted",
                record("Acting", |s| s.halted_since = Some("2026-11-30T01:00:30Z".into())),
                "+00:01:00 Acting, halted: until `maint unhalt`",
            ),
        ];
        for (row, run, wanted) in rows {
            assert_eq!(follow.live(&run, at("01:01:00")), wanted, "{row}");
        }
    }
}
