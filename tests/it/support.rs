//! Runs the built binary in a bare environment and shows what it did.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a run did.
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    line: String,
}

/// Runs maint in the root of the tree with a UTF-8 locale and nothing else in its environment.
pub fn maint(arguments: &[impl AsRef<OsStr>]) -> Run {
    maint_with(arguments, &[("LANG", "C.UTF-8")])
}

/// Runs maint with exactly this environment.
pub fn maint_with(arguments: &[impl AsRef<OsStr>], environment: &[(&str, &str)]) -> Run {
    let output = Command::new(env!("CARGO_BIN_EXE_maint"))
        .args(arguments)
        .env_clear()
        .envs(environment.iter().copied())
        .current_dir(root())
        .output()
        .expect("the binary runs");
    let line = arguments.iter().map(|argument| argument.as_ref().to_string_lossy()).collect::<Vec<_>>().join(" ");
    Run {
        code: output.status.code().expect("not killed"),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        line,
    }
}

/// The root of the tree.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A folder with these files, and its path as an argument.
pub fn folder(files: &[(&str, &str)]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    let path = folder.path().display().to_string();
    (folder, path)
}

/// A folder with a copy of the shipped dump, to be bent.
pub fn copied_dump() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    for entry in std::fs::read_dir(root().join(DUMP)).expect("the dump") {
        let entry = entry.expect("an entry");
        std::fs::copy(entry.path(), folder.path().join(entry.file_name())).expect("copied");
    }
    let path = folder.path().to_owned();
    (folder, path)
}

/// The shipped dump.
pub const DUMP: &str = "tests/fixtures/three-node-k3s";

impl Run {
    /// Without the path of a folder that differs each time.
    pub fn without(mut self, path: &str) -> Self {
        for text in [&mut self.stdout, &mut self.stderr, &mut self.line] {
            *text = text.replace(path, "DUMP");
        }
        self
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "$ maint {}\nexit {}\n--- stdout\n{}--- stderr\n{}", self.line, self.code, self.stdout, self.stderr)
    }
}

/// Compares a run with its snapshot `tests/it/snapshots/NAME.snap`.
macro_rules! assert_run {
    ($name:literal, $run:expr) => {
        insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
            insta::assert_snapshot!($name, $run.to_string());
        });
    };
}
pub(crate) use assert_run;
