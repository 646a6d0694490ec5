//! Child processes with their real process id, ended by id only, also when this program dies.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{OnceLock, mpsc};
use std::thread;

use anyhow::{Context, Result, anyhow};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::run::RunFolder;
use super::wait;

/// What to start.
pub struct Spec {
    /// Name of the log file and in messages.
    pub name: String,
    /// The file of its network namespace.
    pub namespace: String,
    /// An own hostname, in an own namespace: on one hostname all API servers would share one identity lease.
    pub hostname: Option<String>,
    pub program: PathBuf,
    pub arguments: Vec<String>,
}

/// A running child; killed on drop.
pub struct Process {
    name: String,
    child: Child,
}

impl Process {
    /// Starts it. Every step of the chain execs in place, so the id is the program's own; `setsid` keeps Ctrl-C away from
    /// it, and the parent-death signal ends it even if this program is killed.
    pub fn spawn(spec: &Spec, run: &RunFolder) -> Result<Self> {
        let path = run.log(&spec.name);
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .with_context(|| format!("cannot open {}", path.display()))?;
        let mut command = Command::new("setsid");
        command.args(["setpriv", "--pdeathsig", "KILL", "nsenter", &format!("--net={}", spec.namespace)]);
        if let Some(hostname) = &spec.hostname {
            command.args(["unshare", "-u", "sh", "-c", r#"hostname "$1"; shift; exec "$@""#, "sh", hostname]);
        }
        command.arg(&spec.program).args(&spec.arguments);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = spawn_in_lasting_thread(command).with_context(|| format!("cannot start {}", spec.name))?;
        run.record_pid(child.id(), &spec.name)?;
        Ok(Self { name: spec.name.clone(), child })
    }

    /// Its id, which is the program's own.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it did.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    pub fn signal(&self, signal: Signal) {
        // A child that was not waited for keeps its id, so this cannot hit a stranger.
        if let Ok(id) = i32::try_from(self.child.id()) {
            kill(Pid::from_raw(id), signal).ok();
        }
    }

    /// SIGTERM, up to 5 s, SIGKILL.
    pub fn stop(&mut self) {
        if self.exited().is_none() {
            self.signal(Signal::SIGTERM);
        }
        self.finish();
    }

    /// Waits for the end after a signal was sent, and kills when it does not come.
    pub fn finish(&mut self) {
        let ended = wait::until_blocking(wait::STOP, format!("the end of {}", self.name), || {
            self.child.try_wait().ok().flatten()
        });
        if ended.is_err() {
            eprintln!("cluster: {} ignored SIGTERM, killing it", self.name);
            self.kill();
        }
    }

    pub fn kill(&mut self) {
        if self.exited().is_none() {
            self.signal(Signal::SIGKILL);
            self.child.wait().ok();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// In words: `exit code 1` or `signal 9`.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}

type Order = (Command, mpsc::Sender<std::io::Result<Child>>);

/// The parent-death signal fires when the *thread* that forked ends, so one thread that never ends does all the forking.
fn spawn_in_lasting_thread(command: Command) -> Result<Child> {
    static ORDERS: OnceLock<mpsc::Sender<Order>> = OnceLock::new();
    let orders = ORDERS.get_or_init(|| {
        let (sender, receiver) = mpsc::channel::<Order>();
        thread::spawn(move || {
            for (mut command, answer) in receiver {
                answer.send(command.spawn()).ok();
            }
        });
        sender
    });
    let (answer, child) = mpsc::channel();
    orders.send((command, answer)).map_err(|_| anyhow!("the spawning thread is gone"))?;
    Ok(child.recv()??)
}

/// The start time of a process in clock ticks: with its id it names one process for good. `None` when it has ended, also
/// when nobody has taken note of that yet.
pub fn start_time(id: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name in brackets may hold spaces, so count from its end: field 3 of all is the state, 22 the start time.
    let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    if *fields.first()? == "Z" { None } else { fields.get(19)?.parse().ok() }
}

/// Ends a process of an earlier run, if it is still the same one.
pub fn kill_recorded(id: u32, started: u64) {
    if start_time(id) == Some(started)
        && let Ok(id) = i32::try_from(id)
    {
        writeln!(std::io::stderr(), "cluster: killing left-over process {id} of an earlier run").ok();
        kill(Pid::from_raw(id), Signal::SIGKILL).ok();
    }
}
