//! Writes: cases 6, 7, 8, 9 and 26.

use super::{READERS, WRITERS, measure, rate, start_reference};
use crate::load::{Target, Work, create_container};
use crate::postgres::{OperatorClass, Postgres};
use crate::process::Server;
use crate::report::{Goal, Row};
use crate::{Options, Result, disk};
use std::cell::Cell;

/// Documents per batch.
const BATCH: usize = 100;
/// Throughput that gives a container eight partitions.
const EIGHT_PARTITIONS: u64 = 80_000;
/// Distance between the document numbers of two measurements of a run.
const FIRST_STEP: usize = 10_000_000;

pub(super) async fn run(options: &Options, postgres: Option<&Postgres>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let folder = tempfile::tempdir()?;
    let syncs = disk::sync_times(folder.path())?;
    let data = folder.path().join("durable");
    let server = Server::start(&options.server, &data, &[])?;
    let measured = Cell::new(0);
    let fresh = || measured.replace(measured.get() + 1) * FIRST_STEP;
    let create =
        |container: &'static str| move |first| Work::Create { container: container.to_owned(), first };
    let at = |connections| Target { address: server.address, secure: false, connections };
    create_container(server.address, "one", 400, "").await?;
    create_container(server.address, "eight", EIGHT_PARTITIONS, "").await?;

    let one = measure(options, &server.process, at(WRITERS), |_| create("one")(fresh())).await?;
    let eight = measure(options, &server.process, at(WRITERS), |_| create("eight")(fresh())).await?;
    let one_again = measure(options, &server.process, at(WRITERS), |_| create("one")(fresh())).await?;
    let single = measure(options, &server.process, at(1), |_| create("one")(fresh())).await?;
    let batch = |_| Work::Batch { container: "one".to_owned(), first: fresh(), size: BATCH };
    let batched = measure(options, &server.process, at(8), batch).await?;
    let batched_rate = batched.rate * BATCH as f64;

    let per_second = 1e6 / syncs.preallocated.p50_us;
    let what = "durable create, 64 connections, over 4 KB fdatasync/s (preallocated)".to_owned();
    let figures = format!("{} of {per_second:.0}/s", rate(&one));
    rows.push(Row { case: "6", what, figures, ratio: one.rate / per_second, goal: Some(Goal::AtLeast(2.0)) });
    if let Some(postgres) = postgres {
        for class in OperatorClass::ALL {
            let peer = postgres.creates(options, class, WRITERS, 1).await?;
            let what = format!("durable create, 64 connections, over PostgreSQL with {}", class.name());
            let figures = format!("{} of {}", rate(&one), rate(&peer));
            let goal = Some(Goal::AtLeast(2.0));
            rows.push(Row { case: "6", what, figures, ratio: one.rate / peer.rate, goal });
            let peer = postgres.creates(options, class, 8, BATCH).await?;
            let what = format!("batch of 100, durable, documents/s over PostgreSQL with {}", class.name());
            let figures = format!("{batched_rate:.0}/s of {:.0}/s", peer.rate);
            let goal = Some(Goal::AtLeast(2.0));
            rows.push(Row { case: "9", what, figures, ratio: batched_rate / peer.rate, goal });
        }
    }
    let what = "batch of 100, documents/s over case 6".to_owned();
    let figures = format!("{batched_rate:.0}/s of {:.0}/s", one.rate);
    rows.push(Row {
        case: "9",
        what,
        figures,
        ratio: batched_rate / one.rate,
        goal: Some(Goal::AtLeast(1.5)),
    });
    let what = "durable create over 8 partitions, over one".to_owned();
    let of_one = (one.rate + one_again.rate) / 2.0;
    let figures = format!("{} of {} and {}", rate(&eight), rate(&one), rate(&one_again));
    rows.push(Row { case: "26", what, figures, ratio: eight.rate / of_one, goal: Some(Goal::AtLeast(0.9)) });
    drop(server);

    let reference = start_reference()?;
    let read = |_| Work::Read { container: "medium".to_owned(), count: 100_000 };
    let plain = |connections| Target { address: reference.plain, secure: false, connections };
    let limit_single = measure(options, &reference.process, plain(1), read).await?;
    let allowed = limit_single.p50_us + 1.3 * syncs.growing.p50_us;
    let what = "durable create, 1 connection: p50 over reference's + 1.3 fdatasync".to_owned();
    let figures =
        format!("{:.0} of {:.0} + 1.3 × {:.0} µs", single.p50_us, limit_single.p50_us, syncs.growing.p50_us);
    rows.push(Row {
        case: "7",
        what,
        figures,
        ratio: single.p50_us / allowed,
        goal: Some(Goal::AtMost(1.0)),
    });

    let limit = measure(options, &reference.process, plain(READERS), read).await?;
    let buffered_data = folder.path().join("buffered");
    let server = Server::start(&options.server, &buffered_data, &["--durability", "buffered"])?;
    create_container(server.address, "one", 400, "").await?;
    let target = Target { address: server.address, secure: false, connections: READERS };
    let buffered = measure(options, &server.process, target, |_| create("one")(fresh())).await?;
    let what = "create without waiting for the disk, over the reference".to_owned();
    let figures = format!("{} of {}", rate(&buffered), rate(&limit));
    rows.push(Row {
        case: "8",
        what,
        figures,
        ratio: buffered.rate / limit.rate,
        goal: Some(Goal::AtLeast(0.4)),
    });
    Ok(rows)
}
