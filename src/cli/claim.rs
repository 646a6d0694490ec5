//! Whether a program may claim the command of a record now.

use maint_core::api::Phase;
use maint_core::api::record::Maintenance;
use maint_core::jiff::Timestamp;
use maint_core::plan::{parse_time, phase_of};

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// Not yet, as far as known.
    Wait,
    /// All but the node's present boot ID says go.
    NeedsBootId,
    /// Now, by compare-and-swap on the record that was judged.
    Now,
    /// It is claimed, and by us.
    Ours,
    /// Never: it is over, or somebody else has it.
    Never {
        /// Why.
        why: String,
        /// Somebody else has the command.
        taken: bool,
    },
}

/// Judges. A claim needs a `go` that is valid by our clock, for the boot that the node has now. `by` is a name that
/// nobody else claims with, so that a claim whose answer was lost is known again.
pub fn judge(record: &Maintenance, by: &str, boot_id: Option<&str>, now: Timestamp) -> Claim {
    let never = |why: String| Claim::Never { why, taken: false };
    let spec = &record.spec;
    let phase = phase_of(record);
    if let Some(word) = &spec.claimed {
        if word.by == by {
            let in_time = matches!(phase, Phase::Acting | Phase::Returning);
            return if in_time { Claim::Ours } else { never(format!("the run is {phase} by now")) };
        }
        return Claim::Never { why: format!("{} claimed it", word.by), taken: true };
    }
    if let Some(word) = &spec.cancel {
        return never(format!("{} cancelled it", word.by));
    }
    if let Some(newer) = &spec.superseded_by {
        return never(format!("{newer} takes its place"));
    }
    if record.metadata.deletion_timestamp.is_some() {
        return never("the record is being deleted".to_owned());
    }
    match phase {
        Phase::Pending | Phase::Cordoning | Phase::Draining => return Claim::Wait,
        Phase::Acting => {}
        _ => return never(format!("the run is {phase}")),
    }
    let Some(intent) = record.status.as_ref().and_then(|status| status.intent.as_ref()) else { return Claim::Wait };
    // A time that cannot be read is no go.
    if parse_time(Some(&intent.valid_until)).is_none_or(|until| until <= now) || intent.boot_id.is_empty() {
        return Claim::Wait;
    }
    match boot_id {
        None => Claim::NeedsBootId,
        Some(boot_id) if boot_id == intent.boot_id => Claim::Now,
        // It booted since: the leader sees that too, and decides.
        Some(_) => Claim::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use maint_core::api::record::{Intent, MaintenanceSpec, MaintenanceStatus, Word};

    fn now() -> Timestamp {
        "2026-11-30T01:00:00Z".parse().expect("a time")
    }

    fn acting(bend: impl FnOnce(&mut Maintenance)) -> Maintenance {
        let mut record = Maintenance::new("n", MaintenanceSpec::default());
        record.status = Some(MaintenanceStatus {
            phase: "Acting".into(),
            intent: Some(Intent {
                boot_id: "b1".into(),
                at: "2026-11-30T00:59:50Z".into(),
                valid_until: "2026-11-30T01:00:20Z".into(),
            }),
            ..MaintenanceStatus::default()
        });
        bend(&mut record);
        record
    }

    fn status(record: &mut Maintenance) -> &mut MaintenanceStatus {
        record.status.as_mut().expect("a status")
    }

    fn until(record: &mut Maintenance, text: &str) {
        status(record).intent.as_mut().expect("an intent").valid_until = text.into();
    }

    #[test]
    fn a_claim_needs_a_valid_go_for_the_present_boot() {
        let word = || Some(Word { by: "ben".into(), ..Word::default() });
        let never = |why: &str, taken| Claim::Never { why: why.into(), taken };
        let rows: Vec<(&str, Maintenance, Option<&str>, Claim)> = vec![
            ("go", acting(|_| {}), Some("b1"), Claim::Now),
            ("the boot ID was not read", acting(|_| {}), None, Claim::NeedsBootId),
            ("another boot", acting(|_| {}), Some("b2"), Claim::Wait),
            ("no intent", acting(|r| status(r).intent = None), Some("b1"), Claim::Wait),
            ("valid for a second", acting(|r| until(r, "2026-11-30T01:00:01Z")), Some("b1"), Claim::Now),
            ("just over", acting(|r| until(r, "2026-11-30T01:00:00Z")), Some("b1"), Claim::Wait),
            ("an odd time", acting(|r| until(r, "soon")), Some("b1"), Claim::Wait),
            ("no status", acting(|r| r.status = None), Some("b1"), Claim::Wait),
            ("pending", acting(|r| status(r).phase = "Pending".into()), Some("b1"), Claim::Wait),
            ("draining", acting(|r| status(r).phase = "Draining".into()), Some("b1"), Claim::Wait),
            (
                "backing out",
                acting(|r| status(r).phase = "BackingOut".into()),
                Some("b1"),
                never("the run is BackingOut", false),
            ),
            (
                "rebooted elsewhere",
                acting(|r| status(r).phase = "Verifying".into()),
                Some("b1"),
                never("the run is Verifying", false),
            ),
            (
                "a phase of a later version",
                acting(|r| status(r).phase = "Resting".into()),
                Some("b1"),
                never("the run is Held", false),
            ),
            ("claimed", acting(|r| r.spec.claimed = word()), Some("b1"), never("ben claimed it", true)),
            (
                "our own claim whose answer was lost",
                acting(|r| r.spec.claimed = Some(Word { by: "anna".into(), ..Word::default() })),
                None,
                Claim::Ours,
            ),
            (
                "the same, too late",
                acting(|r| {
                    r.spec.claimed = Some(Word { by: "anna".into(), ..Word::default() });
                    status(r).phase = "Held".into();
                }),
                None,
                never("the run is Held by now", false),
            ),
            ("cancelled", acting(|r| r.spec.cancel = word()), Some("b1"), never("ben cancelled it", false)),
            (
                "superseded",
                acting(|r| r.spec.superseded_by = Some("m".into())),
                Some("b1"),
                never("m takes its place", false),
            ),
        ];
        for (row, record, boot_id, wanted) in rows {
            assert_eq!(judge(&record, "anna", boot_id, now()), wanted, "{row}");
        }
    }
}
