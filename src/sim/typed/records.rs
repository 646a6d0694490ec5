//! Records, each decoded once a change.

use std::sync::Arc;

use maint_core::api::record::Maintenance;
use maint_core::facts::{self, Source as _};
use maint_engine::drive::Records;
use maint_engine::execute::{RECORDS, WRITE_LIMIT, WriteError};

use super::calls::write_error;
use super::reader::List;
use super::{Decoded, TypedCalls, Ways};
use crate::store::object;
use crate::store::request::Request;

/// Not over, as the real reader of records asks for them.
const NOT_OVER: &str = "status.phase!=Succeeded,status.phase!=Failed,status.phase!=Cancelled";

/// Reads records.
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
        let request = Request::new("GET", &format!("{RECORDS}/{name}"), "");
        match TypedCalls::new(self.ways.clone()).request(&request).await {
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
            field_selector: if finished_too { "" } else { NOT_OVER },
        };
        let objects = match self.ways.clock.timeout(WRITE_LIMIT, self.ways.pass(&list)).await {
            Ok(Ok(answer)) => answer.map_err(|refusal| write_error(&refusal))?,
            Ok(Err(broken)) => return Err(WriteError::Transport(broken)),
            Err(late) => return Err(WriteError::TimedOut { limit: late.limit }),
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
