//! Records, each decoded once a change.

use std::sync::Arc;

use maint_core::api::record::Maintenance;
use maint_core::facts::{self, Source as _};
use maint_engine::drive::{Records, Wishes};
use maint_engine::execute::{Calls as _, RECORDS, WRITE_LIMIT, WriteError};
use maint_engine::request::Requests;

use super::calls::write_error;
use super::reader::List;
use super::{Decoded, TypedCalls, Ways};
use crate::store::object;

/// Not over, as the real reader of records asks for them.
const NOT_OVER: &str = "status.phase!=Succeeded,status.phase!=Failed,status.phase!=Cancelled";

/// Reads records, and writes wishes down.
#[derive(Clone)]
pub struct TypedRecords {
    ways: Ways,
    decoded: Arc<Decoded>,
}

impl TypedRecords {
    /// A reader by these ways, with what was decoded already.
    #[must_use]
    pub const fn new(ways: Ways, decoded: Arc<Decoded>) -> Self {
        Self { ways, decoded }
    }
}

impl Records for TypedRecords {
    async fn get(&self, name: &str) -> Result<Option<Maintenance>, WriteError> {
        match TypedCalls::new(self.ways.clone()).read(&format!("{RECORDS}/{name}")).await {
            Ok(found) => self
                .decoded
                .record(&found)
                .map(Some)
                .map_err(|error| WriteError::Server(format!("the record {name} cannot be understood: {error}"))),
            Err(WriteError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn list(&self, finished_too: bool) -> Result<Vec<Maintenance>, WriteError> {
        let list = List {
            spec: &facts::Maintenance::SPEC,
            namespace: "",
            label_selector: "",
            field_selector: if finished_too { "" } else { NOT_OVER },
        };
        let objects = match self.ways.clock.timeout(WRITE_LIMIT, self.ways.pass(&list)).await {
            Ok(Ok(answer)) => answer.map_err(|refusal| write_error(&refusal))?,
            Ok(Err(broken)) => return Err(WriteError::Transport(broken).of_read()),
            Err(late) => return Err(WriteError::TimedOut { limit: late.limit }.of_read()),
        };
        let mut records = Vec::with_capacity(objects.len());
        for found in &objects {
            match self.decoded.record(found) {
                Ok(record) => records.push(record),
                Err(error) => {
                    tracing::error!(record = object::name(found), %error, "left out a record that cannot be understood");
                }
            }
        }
        Ok(records)
    }
}

impl Wishes for TypedRecords {
    async fn wish(&self, record: &Maintenance) -> Result<bool, WriteError> {
        let calls = TypedCalls::new(self.ways.clone());
        Requests::through(calls, self.ways.clock.clone(), String::new()).wish(record).await
    }
}
