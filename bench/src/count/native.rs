//! Context switches and futex calls per request of a server at full speed.

use super::{Case, fill};
use crate::Result;
use crate::process::Server;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Measurements of a case; the median is used.
const REPEATS: usize = 5;
/// Requests of one measurement per request counted under callgrind.
const REQUESTS_FACTOR: usize = 4;

/// Timeout for starting or stopping perf, and its reply: `ack` and a line end.
const PERF_TIMEOUT: Duration = Duration::from_secs(5);
const ACKNOWLEDGEMENT_BYTES: usize = 4;

/// Cost of one case per request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Native {
    pub(super) voluntary: f64,
    pub(super) involuntary: f64,
    pub(super) futex_calls: Option<f64>,
}

pub(super) async fn count(program: &Path, cases: &[Case]) -> Result<Vec<Native>> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    fill(program, &data).await?;
    let server = Server::start(program, &data, &[])?;
    let mut counted = Vec::new();
    for case in cases {
        case.send(&server, case.connections, 0..case.warm).await?;
        server.process.at_rest().await?;
        let mut all = Vec::new();
        let requests = case.requests * REQUESTS_FACTOR;
        for repeat in 0..REPEATS {
            all.push(count_once(&server, case, case.warm + repeat * requests, requests).await?);
        }
        let median = |figure: fn(&Native) -> f64| {
            let mut figures: Vec<f64> = all.iter().map(figure).collect();
            figures.sort_by(f64::total_cmp);
            figures[figures.len() / 2]
        };
        let traced = all.iter().all(|native| native.futex_calls.is_some());
        counted.push(Native {
            voluntary: median(|native| native.voluntary),
            involuntary: median(|native| native.involuntary),
            futex_calls: traced.then(|| median(|native| native.futex_calls.unwrap_or_default())),
        });
    }
    Ok(counted)
}

async fn count_once(server: &Server, case: &Case, first: usize, requests: usize) -> Result<Native> {
    let folder = tempfile::tempdir()?;
    let trace = Trace::start(server.process.id(), folder.path());
    let before = server.process.switches()?;
    case.send(server, case.connections, first..first + requests).await?;
    let switches = server.process.switches()?.since(before);
    let calls = trace.and_then(Trace::stop);
    let each = |count: u64| count as f64 / requests as f64;
    Ok(Native {
        voluntary: each(switches.voluntary),
        involuntary: each(switches.involuntary),
        futex_calls: calls.map(each),
    })
}

/// `perf`, which counts the futex calls of a process; it acknowledges its start.
struct Trace {
    perf: Child,
    control: File,
    acknowledged: File,
    figures: PathBuf,
}

impl Trace {
    /// `None` if perf or the kernel's trace points are missing.
    fn start(id: u32, folder: &Path) -> Option<Trace> {
        let (control, acknowledged, figures) =
            (folder.join("control"), folder.join("acknowledged"), folder.join("figures"));
        let made = Command::new("mkfifo").args([&control, &acknowledged]).status().ok()?;
        if !made.success() {
            return None;
        }
        // Opened for reading and writing, so that neither side waits for the other to open it.
        let open = |path: &Path| OpenOptions::new().read(true).write(true).open(path).ok();
        let (control_file, acknowledged_file) = (open(&control)?, open(&acknowledged)?);
        let perf = Command::new("perf")
            .args(["stat", "-x", ",", "-e", "syscalls:sys_enter_futex", "-D", "-1", "-o"])
            .arg(&figures)
            .arg(format!("--control=fifo:{},{}", control.display(), acknowledged.display()))
            .args(["-p", &id.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut trace = Trace { perf, control: control_file, acknowledged: acknowledged_file, figures };
        trace.command("enable\n")?;
        Some(trace)
    }

    fn command(&mut self, text: &str) -> Option<()> {
        if self.perf.try_wait().ok()?.is_some() {
            return None;
        }
        self.control.write_all(text.as_bytes()).ok()?;
        // Read by a thread, since a perf that fails now would never reply.
        let mut acknowledged = self.acknowledged.try_clone().ok()?;
        let (answered, answers) = mpsc::channel();
        std::thread::spawn(move || answered.send(acknowledged.read_exact(&mut [0; ACKNOWLEDGEMENT_BYTES])));
        answers.recv_timeout(PERF_TIMEOUT).ok()?.ok()
    }

    /// The calls since the start.
    fn stop(mut self) -> Option<u64> {
        self.command("disable\n")?;
        let interrupt = Command::new("kill").args(["-INT", &self.perf.id().to_string()]).status().ok()?;
        self.perf.wait().ok()?;
        let text = std::fs::read_to_string(&self.figures).ok()?;
        let line =
            text.lines().find(|line| line.contains("sys_enter_futex")).filter(|_| interrupt.success())?;
        line.split(',').next()?.parse().ok()
    }
}
