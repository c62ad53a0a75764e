//! Child processes: started on core 0, watched through /proc, killed when dropped.

use crate::Result;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The core that servers run on; the client has core 1.
const SERVER_CORE: &str = "0";

/// How long a server is given to come to rest, how often it is looked at, and how busy a resting one may be.
const REST_MAX: Duration = Duration::from_secs(120);
const REST_LOOK: Duration = Duration::from_millis(1000);
const REST_CPU_MAX: Duration = Duration::from_millis(20);

/// A server this program started.
pub(crate) struct Process {
    child: Child,
    /// From the start to its ready line.
    pub(crate) ready_after: Duration,
}

impl Process {
    /// Starts `program` on the server core and reads its output up to the line that begins with `ready`.
    pub(crate) fn start(program: &Path, arguments: &[&str]) -> Result<(Process, String)> {
        Process::start_under(&[], program, arguments)
    }

    /// The same, by the program and arguments `under`.
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
        let mut lines = BufReader::new(output).lines();
        for line in lines.by_ref() {
            let line = line?;
            if line.starts_with("ready") {
                let process = Process { child, ready_after: begun.elapsed() };
                // Whatever else it prints must not block it.
                std::thread::spawn(move || lines.for_each(drop));
                return Ok((process, line));
            }
        }
        child.wait()?;
        Err(format!("{} ended before it was ready", program.display()).into())
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How often its threads have waited so far.
    pub(crate) fn switches(&self) -> Result<u64> {
        let mut switches = 0;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let text = std::fs::read_to_string(task?.path().join("status"))?;
            let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            switches += line.ok_or("no count of switches")?.trim().parse::<u64>()?;
        }
        Ok(switches)
    }

    /// Proportional memory in KiB.
    pub(crate) fn memory_kib(&self) -> Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.child.id()))?;
        let line = text.lines().find(|line| line.starts_with("Pss:")).ok_or("no Pss line")?;
        Ok(line.split_whitespace().nth(1).ok_or("no figure")?.parse()?)
    }

    /// Processor time used so far.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks: u64 =
            fields.get(11).ok_or("stat")?.parse::<u64>()? + fields.get(12).ok_or("stat")?.parse::<u64>()?;
        Ok(Duration::from_millis(ticks * 10))
    }

    /// Waits until the process rests: what a load leaves behind, flushes and merges, is not part of the next case.
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

    /// Ends the process in order.
    pub(crate) fn stop(mut self) -> Result<()> {
        let asked = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status()?;
        if asked.success() && self.child.wait()?.success() {
            return Ok(());
        }
        Err("the server did not end in order".into())
    }

    /// Ends the process as a crash would.
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

/// The server under test.
pub(crate) struct Server {
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
}

impl Server {
    pub(crate) fn start(program: &Path, data: &Path, extra: &[&str]) -> Result<Server> {
        Server::start_under(&[], program, data, extra)
    }

    /// The same, by the program and arguments `under`.
    pub(crate) fn start_under(under: &[&str], program: &Path, data: &Path, extra: &[&str]) -> Result<Server> {
        let data = data.to_str().ok_or("path")?;
        let mut arguments = vec!["dev", "--data", data, "--nosql", "127.0.0.1:0", "--log", "error"];
        arguments.extend_from_slice(extra);
        let (process, line) = Process::start_under(under, program, &arguments)?;
        let address = line.split("nosql=https://").nth(1).ok_or("ready line")?;
        Ok(Server { process, address: address.split_whitespace().next().ok_or("ready line")?.parse()? })
    }
}
