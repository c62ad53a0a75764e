//! A long mixed load at a fixed offered rate: rate, latency, memory, disk and CPU of a server over time.
//!
//! As many documents are deleted as are created, so the amount of data is constant. Requests are due at fixed times
//! whatever the server does; the latency of one that had to wait for a free connection is measured from when it was
//! due.

use crate::cases::{COMPOSITE, WRITERS};
use crate::client::Client;
use crate::disk::folder_bytes;
use crate::load::{self, Figures, Work, figures, scattered, write_request};
use crate::process::Server;
use crate::questions::Question;
use crate::signature::Signer;
use crate::{Options, Result};
use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;

/// Documents at the start, and at any later time.
const DOCUMENTS: usize = 100_000;
/// Distance of requests from the oldest and the newest document, which may be in flight.
const MARGIN: usize = 2_000;
/// A signature is valid for fifteen minutes.
const SIGNATURE_AGE_MAX: Duration = Duration::from_secs(300);
/// Interval of the table's lines.
const LINE: Duration = Duration::from_secs(60);
const CONTAINER: &str = "soak";

/// Duration, rate and output of the load.
#[derive(Clone, Debug)]
pub(crate) struct Soak {
    pub(crate) minutes: u64,
    pub(crate) rate: f64,
    pub(crate) file: PathBuf,
}

/// State shared by the connections.
struct State {
    begun: Instant,
    until: Instant,
    interval: Duration,
    /// Requests assigned to connections so far.
    given: Cell<u32>,
    /// The numbers of live documents.
    oldest: Cell<usize>,
    newest: Cell<usize>,
    signer: RefCell<(Instant, Signer)>,
    latencies: RefCell<Vec<u32>>,
    errors: Cell<u64>,
    first_error: RefCell<Option<String>>,
}

/// Runs the load and writes a line per minute.
pub(crate) async fn run(options: &Options, soak: &Soak) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let server = Server::start(&options.server, &data, &[])?;
    load::create_container(server.address, CONTAINER, 400, COMPOSITE).await?;
    load::fill(server.address, CONTAINER, DOCUMENTS).await?;
    server.process.at_rest().await?;
    let mut clients = Vec::new();
    for _ in 0..WRITERS {
        clients.push(Client::connect(server.address, false).await?);
    }
    let begun = Instant::now();
    let state = Rc::new(State {
        begun,
        until: begun + Duration::from_secs(60 * soak.minutes),
        interval: Duration::from_secs_f64(1.0 / soak.rate),
        given: Cell::new(0),
        oldest: Cell::new(0),
        newest: Cell::new(DOCUMENTS),
        signer: RefCell::new((begun, Signer::new()?)),
        latencies: RefCell::new(Vec::new()),
        errors: Cell::new(0),
        first_error: RefCell::new(None),
    });
    let local = LocalSet::new();
    for client in clients {
        local.spawn_local(send_all(Rc::clone(&state), client));
    }
    local.run_until(watch(&state, &server, &data, soak)).await?;
    match state.first_error.take() {
        Some(error) => Err(format!("{} errors, the first: {error}", state.errors.get()).into()),
        None => Ok(()),
    }
}

async fn send_all(state: Rc<State>, mut client: Client) {
    let mut request = Vec::with_capacity(4096);
    loop {
        let number = state.given.replace(state.given.get() + 1);
        let due = state.begun + state.interval * number;
        if due >= state.until {
            return;
        }
        let is_late = Instant::now() > due;
        tokio::time::sleep_until(due.into()).await;
        let since = if is_late { due } else { Instant::now() };
        request.clear();
        if let Err(error) = state.write(&mut request, number) {
            state.fail(error.to_string());
            return;
        }
        match client.send(&request).await {
            Ok(answer) if answer.status < 300 => {
                let taken = u32::try_from(since.elapsed().as_micros()).unwrap_or(u32::MAX);
                state.latencies.borrow_mut().push(taken);
            }
            Ok(answer) => state.fail(format!("{} {}", answer.status, client.body(&answer))),
            Err(error) => {
                state.fail(error.to_string());
                return;
            }
        }
    }
}

impl State {
    /// Writes the request with this number: of ten, six read, one creates, one replaces, one deletes, one queries.
    fn write(&self, request: &mut Vec<u8>, number: u32) -> Result<()> {
        let mut signer = self.signer.borrow_mut();
        if signer.0.elapsed() > SIGNATURE_AGE_MAX {
            *signer = (Instant::now(), Signer::new()?);
        }
        let container = CONTAINER.to_owned();
        let (oldest, newest) = (self.oldest.get(), self.newest.get());
        let any = oldest + MARGIN + scattered(number as usize, newest - oldest - 2 * MARGIN);
        let (work, number) = match number % 10 {
            0 => {
                self.newest.set(newest + 1);
                (Work::Create { container, first: 0 }, newest)
            }
            1 => {
                self.oldest.set(oldest + 1);
                (Work::Delete { container }, oldest)
            }
            2 => (Work::Replace { container }, any),
            3 if number % 20 == 3 => (Work::QueryOne { container, question: Question::Lot }, any),
            3 => (Work::QueryOne { container, question: Question::Mail }, any),
            _ => (Work::ReadOne { container }, any),
        };
        write_request(request, &signer.1, &work, number);
        Ok(())
    }

    fn fail(&self, error: String) {
        self.errors.set(self.errors.get() + 1);
        self.first_error.borrow_mut().get_or_insert(error);
    }
}

/// Writes a line every minute.
#[allow(clippy::print_stdout)] // what the command is for
async fn watch(state: &State, server: &Server, data: &Path, soak: &Soak) -> Result<()> {
    let mut table = format!(
        "# {} minutes at {:.0} requests/s on {WRITERS} connections, {DOCUMENTS} documents of 1 KB: six of ten read, \
         one creates, one replaces, one deletes, one queries\n\
         minute    rate/s  p50 ms  p99 ms  max ms  errors  memory MiB  disk MB  processor %\n",
        soak.minutes, soak.rate
    );
    print!("{table}");
    let (mut cpu, mut errors, mut seen) = (server.process.cpu()?, 0, state.begun);
    for minute in 1..=soak.minutes {
        tokio::time::sleep_until((state.begun + LINE * u32::try_from(minute)?).into()).await;
        let (latencies, now) = (state.latencies.take(), Instant::now());
        let max_ms = f64::from(latencies.iter().copied().max().unwrap_or_default()) / 1e3;
        let Figures { rate, p50_us, p99_us, .. } = figures(latencies, now - seen);
        let used = server.process.cpu()?;
        let line = format!(
            "{minute:>6} {rate:>9.0} {:>7.2} {:>7.2} {max_ms:>7.1} {:>7} {:>11.0} {:>8.0} {:>12.1}",
            p50_us / 1e3,
            p99_us / 1e3,
            state.errors.get() - errors,
            server.process.memory_kib()? as f64 / 1024.0,
            folder_bytes(data)? as f64 / 1e6,
            (used - cpu).as_secs_f64() / (now - seen).as_secs_f64() * 1e2,
        );
        (cpu, errors, seen) = (used, state.errors.get(), now);
        println!("{line}");
        let _ = writeln!(table, "{line}");
        std::fs::write(&soak.file, &table)?;
    }
    Ok(())
}
