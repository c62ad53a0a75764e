//! Documents that are overwritten all the time, with the default memory and with little of it: whether the server stays
//! within its limit, and what that costs.

use crate::cases::{WRITERS, fill, measure_once};
use crate::load::{Figures, Target, Work};
use crate::process::Server;
use crate::{Options, Result};

const DOCUMENTS: usize = 100_000;
const CONTAINER: &str = "overwritten";

/// The limits that are compared, the default first.
const LIMITS: [Option<&str>; 2] = [None, Some("536870912")];

/// One measurement.
struct Overwritten {
    figures: Figures,
    /// The largest resident memory, from the start of the server on.
    peak_mib: u64,
}

/// Measures both limits alternately and prints a row for each pair.
#[allow(clippy::print_stdout)] // what the command is for
pub(crate) async fn run(options: &Options) -> Result<()> {
    println!("| round | memory-bytes | writes/s | processor µs per write | p99 ms | peak memory MiB |");
    println!("|---|---|---|---|---|---|");
    for round in 1..=options.repeats {
        let mut rates = Vec::new();
        for limit in LIMITS {
            let Overwritten { figures, peak_mib } = overwrite(options, limit).await?;
            let name = limit.unwrap_or("default");
            let Figures { rate, cpu_us, p99_us, .. } = figures;
            println!("| {round} | {name} | {rate:.0} | {cpu_us:.1} | {:.1} | {peak_mib} |", p99_us / 1e3);
            rates.push((rate, cpu_us));
        }
        if let [(rate, cpu), (limited_rate, limited_cpu)] = rates[..] {
            println!("| {round} | ratio | {:.2} | {:.2} | | |", limited_rate / rate, limited_cpu / cpu);
        }
    }
    Ok(())
}

async fn overwrite(options: &Options, limit: Option<&str>) -> Result<Overwritten> {
    let folder = tempfile::tempdir()?;
    let extra: Vec<&str> = limit.map(|limit| ["--memory-bytes", limit]).into_iter().flatten().collect();
    let server = Server::start(&options.server, &folder.path().join("data"), &extra)?;
    fill(server.address, CONTAINER, DOCUMENTS).await?;
    server.process.at_rest().await?;
    let target = Target { address: server.address, secure: false, connections: WRITERS };
    let work = Work::Overwrite { container: CONTAINER.to_owned(), count: DOCUMENTS };
    let figures = measure_once(options, &server.process, target, &work).await?;
    Ok(Overwritten { figures, peak_mib: server.process.peak_memory_kib()? / 1024 })
}
