//! Instructions per request, counted by callgrind between the first and the last request of a case.
//!
//! A server under callgrind is fifty times slower, but its clock is not: time-driven work, such as checking the free
//! disk space five times a second during writes, is overrepresented fifty times. So the cost per second of a sparse
//! write load is measured too, and subtracted from every case that writes.

use super::{CREATED_FIRST, Case, fill};
use crate::Result;
use crate::client::Client;
use crate::load::{self, Work};
use crate::process::Server;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Timeout of a callgrind command, and the poll interval.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(60);
const CONTROL_LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Creates of the two measurements that separate the cost of a create from that of a second, and the pause in the
/// second one.
const SPARSE_CREATES: usize = 250;
const SPARSE_PAUSE: Duration = Duration::from_millis(30);
/// Document numbers of these measurements, separate from those of the cases.
const SPARSE_FIRST: usize = 2 * CREATED_FIRST;

/// A server under callgrind.
struct Counter {
    server: Server,
    dumps: PathBuf,
    dumped: u32,
}

/// Cost of a time span.
#[derive(Clone, Copy)]
struct Span {
    instructions: u64,
    seconds: f64,
}

/// Instructions per request of each case; the profile of each goes to a folder if there is one.
pub(super) async fn count(program: &Path, cases: &[Case], profiles: Option<&Path>) -> Result<Vec<u64>> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    fill(program, &data).await?;
    let dumps = folder.path().join("callgrind");
    let out_file = format!("--callgrind-out-file={}", dumps.display());
    let under = ["valgrind", "--tool=callgrind", "--instr-atstart=no", &out_file];
    let server = Server::start_under(&under, program, &data, &[])?;
    let mut counter = Counter { server, dumps, dumped: 0 };
    let background = counter.background().await?;
    let mut counted = Vec::new();
    for case in cases {
        case.send(&counter.server, case.connections_slowed, 0..case.warm).await?;
        counter.server.process.at_rest().await?;
        counter.begin().await?;
        let begun = Instant::now();
        case.send(&counter.server, case.connections_slowed, case.warm..case.warm + case.requests).await?;
        let span = counter.end(begun).await?;
        if let Some(profiles) = profiles {
            std::fs::create_dir_all(profiles)?;
            std::fs::copy(counter.last_dump(), profiles.join(case.name))?;
        }
        let per_second = if case.writes() { background } else { 0.0 };
        counted.push(per_request(span, per_second, case.requests));
    }
    Ok(counted)
}

#[allow(clippy::cast_possible_truncation)] // below 2⁵³
fn per_request(span: Span, background: f64, requests: usize) -> u64 {
    ((span.instructions as f64 - background * span.seconds) / requests as f64) as u64
}

impl Counter {
    /// Instructions per second of wall time during writes: two spans with the same number of creates differ by the cost
    /// of the longer time.
    async fn background(&mut self) -> Result<f64> {
        let warm = SPARSE_FIRST..SPARSE_FIRST + SPARSE_CREATES;
        self.creates(warm, Duration::ZERO).await?;
        let dense = SPARSE_FIRST + SPARSE_CREATES..SPARSE_FIRST + 2 * SPARSE_CREATES;
        let dense = self.creates(dense, Duration::ZERO).await?;
        let sparse = SPARSE_FIRST + 2 * SPARSE_CREATES..SPARSE_FIRST + 3 * SPARSE_CREATES;
        let sparse = self.creates(sparse, SPARSE_PAUSE).await?;
        let more = sparse.instructions as f64 - dense.instructions as f64;
        Ok(more.max(0.0) / (sparse.seconds - dense.seconds))
    }

    async fn creates(&mut self, numbers: std::ops::Range<usize>, pause: Duration) -> Result<Span> {
        let work = Work::Create { container: "created".to_owned(), first: 0 };
        self.begin().await?;
        let begun = Instant::now();
        for number in numbers {
            load::run_exactly(self.server.address, &work, 1, number..number + 1).await?;
            tokio::time::sleep(pause).await;
        }
        self.end(begun).await
    }

    async fn begin(&self) -> Result<()> {
        control(&self.server, &["--zero"]).await?;
        control(&self.server, &["--instr=on"]).await
    }

    async fn end(&mut self, begun: Instant) -> Result<Span> {
        let seconds = begun.elapsed().as_secs_f64();
        control(&self.server, &["--instr=off"]).await?;
        control(&self.server, &["--dump"]).await?;
        self.dumped += 1;
        Ok(Span { instructions: total(&self.last_dump())?, seconds })
    }

    fn last_dump(&self) -> PathBuf {
        PathBuf::from(format!("{}.{}", self.dumps.display(), self.dumped))
    }
}

/// Sends a command to callgrind. It reacts only when a thread of the server runs, so an idle server gets a request.
async fn control(server: &Server, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("callgrind_control");
    command.args(arguments).arg(server.process.id().to_string()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let deadline = Instant::now() + CONTROL_TIMEOUT;
    while Instant::now() < deadline {
        tokio::time::sleep(CONTROL_LOOK_INTERVAL).await;
        match child.try_wait()? {
            Some(ended) if ended.success() => return Ok(()),
            Some(_) => return Err(format!("callgrind_control {arguments:?} failed").into()),
            None => drop(Client::connect(server.address, false).await?),
        }
    }
    child.kill()?;
    child.wait()?;
    Err(format!("callgrind_control {arguments:?} does not end").into())
}

/// The instruction count of a dump.
fn total(dump: &Path) -> Result<u64> {
    let text = std::fs::read_to_string(dump)?;
    let line = text.lines().find_map(|line| line.strip_prefix("totals: ")).ok_or("no totals in the dump")?;
    Ok(line.trim().parse()?)
}
