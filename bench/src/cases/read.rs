//! Point reads: cases 1, 2, 3 and 24.

use super::{READERS, fill, measure, measure_alternately, rate, start_reference};
use crate::client::Client;
use crate::load::{Target, Work};
use crate::postgres::{OperatorClass, Postgres};
use crate::process::Server;
use crate::report::{Goal, Row};
use crate::{Options, Result};

const MEDIUM: usize = 100_000;
const SMALL: usize = 10_000;
const IDLE_CONNECTIONS: usize = 1000;

pub(super) async fn run(options: &Options, postgres: Option<&Postgres>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let folder = tempfile::tempdir()?;
    let server = Server::start(&options.server, folder.path(), &[])?;
    fill(server.address, "medium", MEDIUM).await?;
    server.process.at_rest().await?;
    let reference = start_reference()?;
    let read =
        |container: &'static str, count| move |_| Work::Read { container: container.to_owned(), count };
    let at = |address, secure, connections| Target { address, secure, connections };

    let plain = at(reference.plain, false, READERS);
    let before = measure(options, &reference.process, plain, read("medium", MEDIUM)).await?;
    let reading = read("medium", MEDIUM)(0);
    let (ours, limit) = measure_alternately(
        options,
        (&server.process, at(server.address, false, READERS), &reading),
        (&reference.process, plain, &reading),
    )
    .await?;
    let again = measure(options, &reference.process, plain, read("medium", MEDIUM)).await?;
    rows.push(Row {
        case: "–",
        what: "reference after over before (a run beyond 0.9–1.1 does not count)".to_owned(),
        figures: format!("{} → {}", rate(&before), rate(&again)),
        ratio: again.rate / before.rate,
        goal: None,
    });
    let what = "server's processor time of a point read, HTTP, over the reference's".to_owned();
    let figures = format!("{:.1} of {:.1} µs", ours.cpu_us, limit.cpu_us);
    rows.push(Row { case: "1", what, figures, ratio: ours.cpu_us / limit.cpu_us, goal: None });
    let figures = format!("{} of {}", rate(&ours), rate(&limit));
    let what = "point read, HTTP, 100 k, over the reference".to_owned();
    rows.push(Row {
        case: "1",
        what,
        figures,
        ratio: ours.rate / limit.rate,
        goal: Some(Goal::AtLeast(0.6)),
    });
    let what = "p99 of the same, over the reference's".to_owned();
    let figures = format!("{:.0} of {:.0} µs", ours.p99_us, limit.p99_us);
    rows.push(Row {
        case: "1",
        what,
        figures,
        ratio: ours.p99_us / limit.p99_us,
        goal: Some(Goal::AtMost(2.0)),
    });
    if let Some(postgres) = postgres {
        postgres.filled(OperatorClass::PathOps, MEDIUM).await?;
        let peer = postgres.reads(options, READERS, MEDIUM).await?;
        let figures = format!("{} of {}", rate(&ours), rate(&peer));
        let what = "point read, HTTP, over PostgreSQL".to_owned();
        rows.push(Row {
            case: "1",
            what,
            figures,
            ratio: ours.rate / peer.rate,
            goal: Some(Goal::AtLeast(2.0)),
        });
    }

    let (secure, limit) = measure_alternately(
        options,
        (&server.process, at(server.address, true, READERS), &reading),
        (&reference.process, at(reference.secure, true, READERS), &reading),
    )
    .await?;
    let figures = format!("{} of {}", rate(&secure), rate(&limit));
    let what = "point read, HTTPS, over the reference".to_owned();
    rows.push(Row {
        case: "2",
        what,
        figures,
        ratio: secure.rate / limit.rate,
        goal: Some(Goal::AtLeast(0.6)),
    });

    let before = server.process.memory_kib()?;
    let mut idle = Vec::new();
    for _ in 0..IDLE_CONNECTIONS {
        idle.push(Client::connect(server.address, false).await?);
    }
    let busy =
        measure(options, &server.process, at(server.address, false, READERS), read("medium", MEDIUM)).await?;
    let each = server.process.memory_kib()?.saturating_sub(before) as f64 / IDLE_CONNECTIONS as f64;
    let figures = format!("{:.0}/s of {:.0}/s", busy.rate, ours.rate);
    let what = "32 busy connections with 1,000 idle ones, over 32 alone".to_owned();
    rows.push(Row {
        case: "24",
        what,
        figures,
        ratio: busy.rate / ours.rate,
        goal: Some(Goal::AtLeast(0.9)),
    });
    let what = "memory of an idle connection, KiB".to_owned();
    rows.push(Row { case: "24", what, figures: String::new(), ratio: each, goal: Some(Goal::AtMost(16.0)) });
    drop(idle);

    fill(server.address, "small", SMALL).await?;
    fill(server.address, "large", options.large).await?;
    server.process.at_rest().await?;
    let small =
        measure(options, &server.process, at(server.address, false, READERS), read("small", SMALL)).await?;
    let large =
        measure(options, &server.process, at(server.address, false, READERS), read("large", options.large))
            .await?;
    let figures = format!("{} of {}", rate(&large), rate(&small));
    let what = format!("point read, {} over 10 k documents", options.large);
    rows.push(Row {
        case: "3",
        what,
        figures,
        ratio: large.rate / small.rate,
        goal: Some(Goal::AtLeast(0.85)),
    });
    Ok(rows)
}
