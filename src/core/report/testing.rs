//! Records for the tests of reports.

use jiff::Timestamp;

use crate::api::record::{Maintenance, MaintenanceSpec, MaintenanceStatus};

/// A time of the night that all tests speak of.
pub(super) fn at(time: &str) -> Timestamp {
    format!("2026-11-30T{time}Z").parse().expect("a time")
}

/// The record `worker2-x7k2m`, in this phase since 01:20:00, bent by `with`.
pub(super) fn record(phase: &str, with: impl FnOnce(&mut MaintenanceStatus)) -> Maintenance {
    let spec = MaintenanceSpec {
        node_name: "worker2".into(),
        scope: "reboot".into(),
        action: "pod".into(),
        trigger: "manual".into(),
        requested_by: "anna@desk".into(),
        reason: "kernel update".into(),
        ..MaintenanceSpec::default()
    };
    let mut record = Maintenance::new("worker2-x7k2m", spec);
    record.metadata.uid = Some("u-1".into());
    record.metadata.creation_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at("01:00:00")));
    let mut status = MaintenanceStatus {
        phase: phase.into(),
        strategy: "drain".into(),
        reboots: true,
        step_started_at: Some("2026-11-30T01:20:00Z".into()),
        ..MaintenanceStatus::default()
    };
    with(&mut status);
    record.status = Some(status);
    record
}
