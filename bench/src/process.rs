//! Processes: servers started on core 0, observed through /proc, killed when dropped; this program on core 1.

use crate::Result;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The core that servers run on, and that of this program.
pub(crate) const SERVER_CORE: &str = "0";
pub(crate) const CLIENT_CORE: &str = "1";

/// The priority of the measured processes; `nice` continues without it if it is not permitted.
const NICENESS: &str = "-20";

/// The unit of the kernel's tick counts.
const MILLISECONDS_PER_TICK: u64 = 10;

/// How long a server may take until it is ready.
const READY_MAX: Duration = Duration::from_secs(300);

/// How long to wait for an idle server, the poll interval, and how busy an idle one may be.
const REST_MAX: Duration = Duration::from_secs(120);
/// More than twice the time after which a partition counts as idle and merges its segments.
const REST_LOOK: Duration = Duration::from_millis(2500);
const REST_CPU_MAX: Duration = Duration::from_millis(20);
/// How busy the core of an idle machine may be between two polls.
const QUIET_BUSY_MAX: Duration = Duration::from_millis(50);

/// Context switches of a process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Switches {
    /// A thread waited: for a lock, a message, the disk.
    pub(crate) voluntary: u64,
    /// A thread was moved off the processor for another.
    pub(crate) involuntary: u64,
}

impl Switches {
    /// Those of all threads of a process so far.
    pub(crate) fn of(id: u32) -> Result<Switches> {
        let mut switches = Switches::default();
        for task in std::fs::read_dir(format!("/proc/{id}/task"))? {
            // A thread that has ended since is not counted.
            let Ok(text) = std::fs::read_to_string(task?.path().join("status")) else { continue };
            let count = |name: &str| -> Result<u64> {
                let line = text.lines().find_map(|line| line.strip_prefix(name));
                Ok(line.ok_or("no count of switches")?.trim().parse()?)
            };
            switches.voluntary += count("voluntary_ctxt_switches:")?;
            switches.involuntary += count("nonvoluntary_ctxt_switches:")?;
        }
        Ok(switches)
    }

    pub(crate) fn since(self, before: Switches) -> Switches {
        Switches {
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
        }
    }
}

/// A server started by this program.
pub(crate) struct Process {
    child: Child,
    /// Time from the start to its ready line.
    pub(crate) ready_after: Duration,
}

impl Process {
    /// Starts `program` on the server core and reads its output up to the line that begins with `ready`.
    pub(crate) fn start(program: &Path, arguments: &[&str]) -> Result<(Process, String)> {
        Process::start_under(&[], program, arguments)
    }

    /// The same, run by the program and arguments `under`.
    fn start_under(under: &[&str], program: &Path, arguments: &[&str]) -> Result<(Process, String)> {
        let begun = Instant::now();
        let mut child = Command::new("taskset")
            .args(["-c", SERVER_CORE])
            .args(under)
            .arg(program)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = child.stdout.take().ok_or("no standard output")?;
        let mut process = Process { child, ready_after: Duration::ZERO };
        let (sender, ready) = mpsc::sync_channel(1);
        // Reads on until the process ends: further output must not block it.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(std::io::Result::ok) {
                if line.starts_with("ready") {
                    let _ = sender.try_send(line);
                }
            }
        });
        match ready.recv_timeout(READY_MAX) {
            Ok(line) => {
                process.ready_after = begun.elapsed();
                Ok((process, line))
            }
            Err(RecvTimeoutError::Disconnected) => {
                Err(format!("{} ended before it was ready", program.display()).into())
            }
            Err(RecvTimeoutError::Timeout) => {
                Err(format!("{} was not ready after {READY_MAX:?}", program.display()).into())
            }
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Context switches of its threads so far.
    pub(crate) fn switches(&self) -> Result<Switches> {
        Switches::of(self.child.id())
    }

    /// Proportional memory in KiB.
    pub(crate) fn memory_kib(&self) -> Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.child.id()))?;
        let line = text.lines().find(|line| line.starts_with("Pss:")).ok_or("no Pss line")?;
        Ok(line.split_whitespace().nth(1).ok_or("no figure")?.parse()?)
    }

    /// The largest resident memory so far in KiB.
    pub(crate) fn peak_memory_kib(&self) -> Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM line")?;
        Ok(line.split_whitespace().next().ok_or("no figure")?.parse()?)
    }

    /// CPU time used so far.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        stat_times(self.child.id(), 11)
    }

    /// Waits until the process is idle: flushes and merges after a load are not part of the next case.
    pub(crate) async fn at_rest(&self) -> Result<()> {
        let deadline = Instant::now() + REST_MAX;
        loop {
            let before = self.cpu()?;
            tokio::time::sleep(REST_LOOK).await;
            if self.cpu()? - before <= REST_CPU_MAX {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err("the server does not come to rest".into());
            }
        }
    }

    /// Stops the process cleanly.
    pub(crate) fn stop(mut self) -> Result<()> {
        let asked = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status()?;
        if asked.success() && self.child.wait()?.success() {
            return Ok(());
        }
        Err("the server did not end in order".into())
    }

    /// Kills the process, as in a crash.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// User and system time in two adjacent fields of /proc/ID/stat, counted after the name.
fn stat_times(id: u32, field: usize) -> Result<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let mut ticks = 0;
    for text in fields.get(field..field + 2).ok_or("stat")? {
        ticks += text.parse::<u64>()?;
    }
    Ok(Duration::from_millis(ticks * MILLISECONDS_PER_TICK))
}

/// CPU time of a process's children that have ended.
pub(crate) fn ended_children_cpu(id: u32) -> Result<Duration> {
    stat_times(id, 13)
}

/// CPU time of a process's first thread, exact to the nanosecond.
pub(crate) fn main_thread_cpu(id: u32) -> Result<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{id}/schedstat"))?;
    Ok(Duration::from_nanos(text.split_whitespace().next().ok_or("schedstat")?.parse()?))
}

/// Time that the server's core was busy since the machine started.
pub(crate) fn server_core_busy() -> Result<Duration> {
    let text = std::fs::read_to_string("/proc/stat")?;
    let name = format!("cpu{SERVER_CORE} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&name)).ok_or("no such core")?;
    let fields: Vec<u64> = line.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>()?;
    // user, nice, system, idle, iowait, irq, softirq, steal; guest time is part of user time.
    let busy: u64 = fields.iter().take(8).sum::<u64>() - fields.iter().skip(3).take(2).sum::<u64>();
    Ok(Duration::from_millis(busy * MILLISECONDS_PER_TICK))
}

/// Waits until nothing else uses the server's core, at most for `longest`.
pub(crate) async fn quiet(longest: Duration) -> Result<()> {
    let deadline = Instant::now() + longest;
    while Instant::now() < deadline {
        let busy = server_core_busy()?;
        tokio::time::sleep(REST_LOOK).await;
        if server_core_busy()?.saturating_sub(busy) <= QUIET_BUSY_MAX {
            return Ok(());
        }
    }
    Ok(())
}

/// Moves this program to its own core, if the machine has one for it, and gives it and the servers it starts a higher
/// priority, if permitted: other processes on the same core would be measured too.
pub(crate) fn move_to_client_core() {
    use std::os::unix::process::CommandExt as _;
    const MOVED: &str = "PERIHELION_BENCH_MOVED";
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let Ok(program) = std::env::current_exe() else { return };
    if cores < 2 || std::env::var_os(MOVED).is_some() {
        return;
    }
    // Returns only if it fails; then the program continues on any core.
    let _ = Command::new("nice")
        .args(["-n", NICENESS, "taskset", "-c", CLIENT_CORE])
        .arg(program)
        .args(std::env::args_os().skip(1))
        .env(MOVED, "1")
        .exec();
}

/// The server under test.
pub(crate) struct Server {
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
    /// The address of its Table API.
    pub(crate) table: Option<SocketAddr>,
}

impl Server {
    pub(crate) fn start(program: &Path, data: &Path, extra: &[&str]) -> Result<Server> {
        Server::start_under(&[], program, data, extra)
    }

    /// The same, run by the program and arguments `under`.
    pub(crate) fn start_under(under: &[&str], program: &Path, data: &Path, extra: &[&str]) -> Result<Server> {
        let data = data.to_str().ok_or("path")?;
        let mut arguments = vec!["dev", "--data", data, "--nosql", "127.0.0.1:0", "--log", "error"];
        arguments.extend_from_slice(extra);
        let (process, line) = Process::start_under(under, program, &arguments)?;
        let address = |api: &str| {
            line.split_whitespace().find_map(|word| word.strip_prefix(api)?.strip_prefix("=https://"))
        };
        let table = address("table").map(str::parse).transpose()?;
        Ok(Server { address: address("nosql").ok_or("ready line")?.parse()?, table, process })
    }
}
