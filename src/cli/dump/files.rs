//! Which files a dump has, and their bytes, within limits.

use std::fs;
use std::path::{Path, PathBuf};

use super::DumpError;

/// How much is read at most; beyond it something else than a dump was named.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of one file. A `kubectl get nodes -o json` of 5,000 nodes has some 100 MB.
    pub file_bytes: u64,
    /// Files in all folders.
    pub files: usize,
    /// Folders in folders; also what ends a loop of links.
    pub depth: usize,
    /// Objects of the kinds that maint reads.
    pub objects: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { file_bytes: 512 * 1024 * 1024, files: 10_000, depth: 16, objects: 2_000_000 }
    }
}

/// The file itself, or all files of a folder: with those of its folders, sorted by path, without dot files.
pub fn list(path: &Path, limits: Limits) -> Result<Vec<PathBuf>, DumpError> {
    let about = fs::metadata(path).map_err(|error| {
        DumpError::new(path, None, error.to_string(), "name a file or a folder of `kubectl get KIND -A -o yaml` output")
    })?;
    if !about.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    walk(path, 0, limits, &mut found)?;
    if found.is_empty() {
        return Err(DumpError::new(
            path,
            None,
            "the folder has no files",
            "save `kubectl get nodes -A -o yaml` and its like into it, one file a kind",
        ));
    }
    found.sort();
    Ok(found)
}

fn walk(folder: &Path, depth: usize, limits: Limits, found: &mut Vec<PathBuf>) -> Result<(), DumpError> {
    let unreadable =
        |error: std::io::Error| DumpError::new(folder, None, error.to_string(), "make the folder readable");
    if depth > limits.depth {
        let problem = format!("folders are more than {} deep", limits.depth);
        return Err(DumpError::new(folder, None, problem, "name the folder of the dump itself; links may form a loop"));
    }
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let path = entry.path();
        // Follows links, since a mounted ConfigMap is a folder of links.
        let about = fs::metadata(&path)
            .map_err(|error| DumpError::new(&path, None, error.to_string(), "remove it or make it readable"))?;
        if about.is_dir() {
            walk(&path, depth + 1, limits, found)?;
        } else {
            found.push(path);
        }
        if found.len() > limits.files {
            let problem = format!("more than {} files", limits.files);
            return Err(DumpError::new(folder, None, problem, "name the folder that holds nothing but the dump"));
        }
    }
    Ok(())
}

/// The bytes of a file.
pub fn read(path: &Path, limits: Limits) -> Result<Vec<u8>, DumpError> {
    let unreadable = |error: std::io::Error| DumpError::new(path, None, error.to_string(), "make the file readable");
    let about = fs::metadata(path).map_err(unreadable)?;
    if !about.is_file() {
        return Err(DumpError::new(path, None, "is no regular file", "save the output of kubectl to a file first"));
    }
    if about.len() > limits.file_bytes {
        let problem = format!("has {} bytes, the limit is {}", about.len(), limits.file_bytes);
        return Err(DumpError::new(path, None, problem, "split it: one `kubectl get` a file and kind"));
    }
    fs::read(path).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorted_recursive_and_without_dot_files() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["b.yaml", "a/z.json", ".hidden", ".git/config", "a/.DS_Store"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, "x").expect("written");
        }
        let found = list(folder.path(), Limits::default()).expect("files");
        let names: Vec<_> = found.iter().map(|path| path.strip_prefix(folder.path()).expect("inside")).collect();
        assert_eq!(names, [Path::new("a/z.json"), Path::new("b.yaml")]);
    }

    #[test]
    fn every_limit_is_told_with_its_number() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["a", "b", "c"] {
            fs::write(folder.path().join(name), "12345").expect("written");
        }
        let limits = Limits { files: 2, file_bytes: 4, ..Limits::default() };
        assert!(list(folder.path(), limits).expect_err("too many").to_string().contains("more than 2 files"));
        let error = read(&folder.path().join("a"), limits).expect_err("too big").to_string();
        assert!(error.contains("has 5 bytes, the limit is 4"), "{error}");
        std::os::unix::fs::symlink(folder.path(), folder.path().join("loop")).expect("linked");
        let error = list(folder.path(), Limits { depth: 3, ..Limits::default() }).expect_err("a loop").to_string();
        assert!(error.contains("more than 3 deep"), "{error}");
    }
}
