//! The scratch folder of one run, and the removal of what runs that died have left.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};

use super::net::Network;
use super::process::{kill_recorded, start_time};

/// A unix socket's path may have 107 bytes; the longest name that is put behind the folder has 16.
const LONGEST: usize = 88;

/// Everything a run writes is in here. Removed on drop unless it is kept.
pub struct RunFolder {
    path: PathBuf,
    prefix: String,
    keep: AtomicBool,
}

impl RunFolder {
    /// Makes a folder named after this process; the same name is the prefix of the run's namespaces.
    pub fn create(target: &Path) -> Result<Self> {
        let base = base(target);
        fs::create_dir_all(&base).with_context(|| format!("cannot create {}", base.display()))?;
        clean(&base);
        let id = std::process::id();
        let prefix = format!("mc{id}-");
        let path = base.join(&prefix);
        fs::create_dir_all(path.join("logs"))?;
        fs::write(path.join("owner"), format!("{id} {}\n", start_time(id).unwrap_or(0)))?;
        Ok(Self { path, prefix, keep: AtomicBool::new(std::env::var_os("MAINT_CLUSTER_KEEP").is_some()) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    pub fn log(&self, name: &str) -> PathBuf {
        self.path.join("logs").join(format!("{name}.log"))
    }

    /// Keeps the folder, so that a person can read the logs of a failure.
    pub fn keep(&self) {
        self.keep.store(true, Ordering::Relaxed);
    }

    /// Removes the folder, or says where it was kept.
    pub fn remove(&self) {
        if !self.path.join("owner").exists() {
            return;
        }
        if self.keep.load(Ordering::Relaxed) {
            eprintln!("cluster: logs are kept in {}", self.path.display());
            // A kept folder has no owner that could be cleaned up after.
            fs::rename(self.path.join("owner"), self.path.join("owner-was")).ok();
        } else {
            fs::remove_dir_all(&self.path).ok();
        }
    }

    pub fn record_pid(&self, id: u32, name: &str) -> Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(self.path.join("pids"))?;
        writeln!(file, "{id} {} {name}", start_time(id).unwrap_or(0))?;
        Ok(())
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Where the folders of all runs lie: in the build folder, or in the temporary one if that is too deep for sockets.
pub fn base(target: &Path) -> PathBuf {
    let base = target.join("cluster-run");
    if base.as_os_str().len() + 12 > LONGEST { std::env::temp_dir().join("maint-cluster-run") } else { base }
}

/// The control sockets of runs that are alive.
pub fn live_sockets(target: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(base(target)) else { return Vec::new() };
    let folders = entries.flatten().map(|entry| entry.path());
    folders
        .filter(|folder| owner_lives(folder) == Some(true))
        .map(|folder| folder.join("control.sock"))
        .filter(|s| s.exists())
        .collect()
}

/// Whether the process that made the folder still runs; `None` when the folder does not say.
fn owner_lives(folder: &Path) -> Option<bool> {
    let (id, started) = numbers(&fs::read_to_string(folder.join("owner")).ok()?)?;
    Some(start_time(id) == Some(started))
}

fn numbers(line: &str) -> Option<(u32, u64)> {
    let mut words = line.split_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// Ends what runs whose owner is gone have left: processes by recorded id and start time, namespaces by prefix.
fn clean(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else { return };
    for folder in entries.flatten().map(|entry| entry.path()) {
        match owner_lives(&folder) {
            Some(true) => {}
            Some(false) => {
                for (id, started) in
                    fs::read_to_string(folder.join("pids")).unwrap_or_default().lines().filter_map(numbers)
                {
                    kill_recorded(id, started);
                }
                if let Some(prefix) =
                    folder.file_name().and_then(|name| name.to_str()).filter(|name| name.starts_with("mc"))
                {
                    Network::delete_all(prefix);
                }
                fs::remove_dir_all(&folder).ok();
            }
            // Kept for its logs, or just being made: removed after a day.
            None if is_old(&folder) => drop(fs::remove_dir_all(&folder)),
            None => {}
        }
    }
}

fn is_old(folder: &Path) -> bool {
    let modified = fs::metadata(folder).and_then(|meta| meta.modified());
    modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > Duration::from_secs(86_400)))
}
