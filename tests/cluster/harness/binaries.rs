//! Builds etcd and the Kubernetes parts from their Go modules, once per version, into the build folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::process::start_time;

/// The release that plays the cluster; the modules below `tests/cluster/kubernetes` pin the same.
pub const KUBERNETES: &str = "v1.34.4";
const ETCD: &str = "v3.7.3";
/// Between a module's name and the id of the process that builds it, in the name of a folder that is not finished.
const PARTIAL: &str = "-partial-";

/// Where the programs are.
#[derive(Clone)]
pub struct Binaries {
    kubernetes: PathBuf,
    etcd: PathBuf,
}

impl Binaries {
    /// Finds them in the cache or builds them (about 7 minutes on two cores the first time).
    pub fn prepare(target: &Path) -> Result<Self> {
        let cache = target.join("cluster-bin");
        let kubernetes = Module {
            name: "kubernetes",
            version: KUBERNETES,
            packages: &[
                "k8s.io/kubernetes/cmd/kube-apiserver",
                "k8s.io/kubernetes/cmd/kube-controller-manager",
                "k8s.io/kubernetes/cmd/kube-scheduler",
                "k8s.io/kubernetes/cmd/kubectl",
            ],
            single: None,
            ldflags: kubernetes_ldflags(),
        };
        // The package path of etcd ends in `v3`, so its program must be named.
        let etcd = Module {
            name: "etcd",
            version: ETCD,
            packages: &["go.etcd.io/etcd/server/v3"],
            single: Some("etcd"),
            ldflags: "-s -w".to_string(),
        };
        Ok(Self { etcd: etcd.cached(&cache)?, kubernetes: kubernetes.cached(&cache)? })
    }

    pub fn etcd(&self) -> PathBuf {
        self.etcd.join("etcd")
    }

    /// `kube-apiserver`, `kube-controller-manager`, `kube-scheduler` or `kubectl`.
    pub fn kubernetes(&self, program: &str) -> PathBuf {
        self.kubernetes.join(program)
    }
}

/// Without these /version would say `v0.0.0-master+$Format:%H$`.
fn kubernetes_ldflags() -> String {
    let base = "k8s.io/component-base/version";
    format!(
        "-s -w -X {base}.gitVersion={KUBERNETES} -X {base}.gitMajor=1 -X {base}.gitMinor=34 \
         -X k8s.io/client-go/pkg/version.gitVersion={KUBERNETES}"
    )
}

struct Module {
    name: &'static str,
    version: &'static str,
    packages: &'static [&'static str],
    single: Option<&'static str>,
    ldflags: String,
}

impl Module {
    /// The folder of the finished programs. It appears by a rename, so a cut build never leaves half a program in it.
    fn cached(&self, cache: &Path) -> Result<PathBuf> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster").join(self.name);
        let finished = cache.join(format!("{}-{}-{:016x}", self.name, self.version, self.key(&source)?));
        if finished.is_dir() {
            return Ok(finished);
        }
        remove_cut_builds(cache);
        let partial = cache.join(format!("{}{PARTIAL}{}", self.name, std::process::id()));
        fs::create_dir_all(&partial).with_context(|| format!("cannot create {}", partial.display()))?;
        let built = self.build(&source, &partial);
        if built.is_err() {
            fs::remove_dir_all(&partial).ok();
        }
        built?;
        match fs::rename(&partial, &finished) {
            Ok(()) => {}
            // Another run was faster: its programs are the same.
            Err(_) if finished.is_dir() => fs::remove_dir_all(&partial)?,
            Err(error) => return Err(error).with_context(|| format!("cannot rename to {}", finished.display())),
        }
        Ok(finished)
    }

    /// Changes with the modules' content and with how they are built.
    fn key(&self, source: &Path) -> Result<u64> {
        let mut hash = fnv(self.ldflags.as_bytes(), 0xcbf2_9ce4_8422_2325);
        for file in ["go.mod", "go.sum"] {
            let path = source.join(file);
            hash = fnv(&fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?, hash);
        }
        Ok(hash)
    }

    fn build(&self, source: &Path, out: &Path) -> Result<()> {
        check_go()?;
        let start = Instant::now();
        eprintln!("cluster: building {} {} with Go, some minutes the first time ...", self.name, self.version);
        let output = match self.single {
            Some(program) => out.join(program).into_os_string(),
            // The slash makes `go build` put several programs into the folder.
            None => format!("{}/", out.display()).into(),
        };
        let status = Command::new("go")
            .current_dir(source)
            .env("CGO_ENABLED", "0")
            .env("GOTOOLCHAIN", "local")
            .env("GOFLAGS", "-mod=readonly -buildvcs=false")
            .args(["build", "-trimpath", "-ldflags", &self.ldflags, "-o"])
            .arg(output)
            .args(self.packages)
            .status()
            .context("cannot run `go build`")?;
        if !status.success() {
            bail!("`go build` of {} {} failed ({status}); its messages are above", self.name, self.version);
        }
        eprintln!("cluster: built {} {} in {:.0} s", self.name, self.version, start.elapsed().as_secs_f64());
        Ok(())
    }
}

/// Removes what builds have left that were cut.
fn remove_cut_builds(cache: &Path) {
    for folder in fs::read_dir(cache).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let builder = folder.to_str().and_then(|path| path.rsplit_once(PARTIAL)).and_then(|(_, id)| id.parse().ok());
        if builder.is_some_and(|id| start_time(id).is_none()) {
            fs::remove_dir_all(&folder).ok();
        }
    }
}

fn check_go() -> Result<()> {
    let output = Command::new("go").args(["env", "GOVERSION"]).env("GOTOOLCHAIN", "local").output();
    let version = match output {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_string(),
        _ => bail!("the cluster tests build Kubernetes and etcd and need Go 1.26 or newer: `go` was not found in PATH"),
    };
    let minor = version
        .strip_prefix("go1.")
        .and_then(|rest| rest.split('.').next())
        .and_then(|minor| minor.parse::<u32>().ok());
    match minor {
        Some(minor) if minor < 26 => bail!("the cluster tests need Go 1.26 or newer, `go` here is {version}"),
        _ => Ok(()),
    }
}

/// FNV-1a: a file name that changes with the content, nothing more.
fn fnv(bytes: &[u8], start: u64) -> u64 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
