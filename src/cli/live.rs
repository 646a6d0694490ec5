//! Facts of a live cluster.

use maint_core::config::Settings;
use maint_core::facts::Facts;
use maint_core::jiff::Timestamp;

use super::Common;

/// Reads all facts, and the time that their ages are counted to.
///
/// # Errors
/// Always, so far: only a dump can be judged.
#[expect(clippy::unused_async, reason = "the reads of a live cluster are asynchronous")]
pub async fn facts(_common: &Common, _settings: &Settings) -> anyhow::Result<(Facts, Timestamp)> {
    anyhow::bail!("a live cluster cannot be judged yet; judge a dump with --from PATH")
}
