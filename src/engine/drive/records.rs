//! Reading records: one, or all that still need something done.

use std::future::Future;

use http::Method;
use maint_core::api::record::Maintenance;
use serde_json::Value;

use crate::execute::{Form, RECORDS, WriteError, name_in, page_of, send};
use crate::request::Requests;
use crate::runtime::Clock;

/// Records kept in a page of a list.
const PAGE: u32 = 200;
/// Pages read at most: a cluster with more records than this is asked again at the next look.
const MAX_PAGES: usize = 100;

/// Reads records.
pub trait Records: Send + Sync {
    /// One record, in its most recent state; none if it is gone.
    ///
    /// # Errors
    /// If it could not be read: nothing may be assumed.
    fn get(&self, name: &str) -> impl Future<Output = Result<Option<Maintenance>, WriteError>> + Send;

    /// All records, or only those that are not over. Records that cannot be understood are named and left out.
    ///
    /// # Errors
    /// If they could not be read.
    fn list(&self, finished_too: bool) -> impl Future<Output = Result<Vec<Maintenance>, WriteError>> + Send;
}

/// Reads records through a kube client.
#[derive(Clone)]
pub struct KubeRecords {
    client: kube::Client,
    clock: Clock,
}

impl KubeRecords {
    /// A reader.
    #[must_use]
    pub const fn new(client: kube::Client, clock: Clock) -> Self {
        Self { client, clock }
    }

    /// The port of requests on the same client.
    pub(super) fn requests(&self) -> Requests {
        Requests::new(self.client.clone(), self.clock.clone(), String::new())
    }

    /// All records, or only those that are not over, and why others cannot be understood.
    ///
    /// # Errors
    /// If they could not be read.
    pub async fn all(&self, finished_too: bool) -> Result<(Vec<Maintenance>, Vec<String>), WriteError> {
        let selector = if finished_too {
            ""
        } else {
            "&fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed%2Cstatus.phase%21%3DCancelled"
        };
        let (mut records, mut odd) = (Vec::new(), Vec::new());
        let mut next = String::new();
        for _ in 0..MAX_PAGES {
            let page = self.read(&format!("{RECORDS}?limit={PAGE}{selector}{next}")).await?;
            let (items, token) = page_of(&page, "MaintenanceList")?;
            for item in items {
                match serde_json::from_value::<Maintenance>(item.clone()) {
                    Ok(record) => records.push(record),
                    Err(error) => odd.push(format!("Maintenance {}: {error}", name_in(item))),
                }
            }
            if token.is_empty() {
                break;
            }
            next = format!("&continue={token}");
        }
        Ok((records, odd))
    }

    async fn read(&self, path: &str) -> Result<Value, WriteError> {
        send(&self.client, &self.clock, Method::GET, path, Form::Json, None).await.map_err(WriteError::of_read)
    }
}

impl Records for KubeRecords {
    async fn get(&self, name: &str) -> Result<Option<Maintenance>, WriteError> {
        match self.read(&format!("{RECORDS}/{name}")).await {
            Ok(value) => serde_json::from_value(value)
                .map(Some)
                .map_err(|error| WriteError::Server(format!("the record {name} cannot be understood: {error}"))),
            Err(WriteError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn list(&self, finished_too: bool) -> Result<Vec<Maintenance>, WriteError> {
        let (records, odd) = self.all(finished_too).await?;
        for why in odd {
            tracing::error!(why, "left out a record that cannot be understood");
        }
        Ok(records)
    }
}
