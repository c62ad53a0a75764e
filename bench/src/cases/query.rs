//! Queries: cases 11 to 17 and 20, over 10 k, 100 k and the large number of documents.

use super::{COMPOSITE, READERS, fill_indexed, measure, measure_alternately, rate, start_reference};
use crate::documents::DOCUMENT_BYTES;
use crate::load::{Figures, Target, Work};
use crate::postgres::{OperatorClass, Postgres};
use crate::process::Server;
use crate::questions::Question;
use crate::report::{Goal, Row};
use crate::{Options, Result};

const SMALL: usize = 10_000;
const MEDIUM: usize = 100_000;

/// The measurements of one question.
struct Case {
    case: &'static str,
    what: &'static str,
    question: Question,
    connections: usize,
    /// Share of the reference's rate.
    of_limit: Option<f64>,
    /// PostgreSQL's time divided by ours.
    of_postgres: Option<f64>,
    /// Our time with the large number of documents divided by that with the small one.
    growth: Option<f64>,
}

const CASES: [Case; 8] = [
    Case {
        case: "11",
        what: "equality inside a logical partition, 5 rows",
        question: Question::Lot,
        connections: READERS,
        of_limit: Some(0.25),
        of_postgres: Some(3.0),
        growth: Some(1.3),
    },
    Case {
        case: "12",
        what: "unique value across partitions",
        question: Question::Mail,
        connections: READERS,
        of_limit: Some(0.25),
        of_postgres: Some(5.0),
        growth: Some(1.5),
    },
    Case {
        case: "13",
        what: "filter, ORDER BY, top 20",
        question: Question::Top,
        connections: 4,
        of_limit: None,
        of_postgres: Some(5.0),
        growth: Some(100.0),
    },
    Case {
        case: "14",
        what: "the same with a composite index, PostgreSQL with the matching index",
        question: Question::TopComposite,
        connections: 4,
        of_limit: None,
        of_postgres: Some(1.0),
        growth: Some(1.5),
    },
    Case {
        case: "15",
        what: "COUNT of everything",
        question: Question::Count,
        connections: READERS,
        of_limit: None,
        of_postgres: None,
        growth: Some(1.5),
    },
    Case {
        case: "16",
        what: "GROUP BY category with COUNT",
        question: Question::Groups,
        connections: 1,
        of_limit: None,
        of_postgres: Some(5.0),
        growth: None,
    },
    Case {
        case: "16",
        what: "GROUP BY category with AVG, which must read the documents",
        question: Question::Means,
        connections: 1,
        of_limit: None,
        of_postgres: Some(2.0),
        growth: None,
    },
    Case {
        case: "17",
        what: "scan with a filter that no index can answer",
        question: Question::Scan,
        connections: 1,
        of_limit: None,
        of_postgres: None,
        growth: None,
    },
];

pub(super) async fn run(options: &Options, postgres: Option<&Postgres>) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(&options.server, folder.path(), &[])?;
    fill_indexed(server.address, "small", SMALL, COMPOSITE).await?;
    fill_indexed(server.address, "medium", MEDIUM, COMPOSITE).await?;
    fill_indexed(server.address, "large", options.large, COMPOSITE).await?;
    server.process.at_rest().await?;
    let mut rows = vec![disk(&server, folder.path(), options.large)?];
    if let Some(postgres) = postgres {
        postgres.filled(OperatorClass::PathOps, MEDIUM).await?;
    }
    let reference = start_reference()?;
    let target = |address, connections| Target { address, secure: false, connections };
    let read = |_| Work::Read { container: "medium".to_owned(), count: MEDIUM };
    let point = measure(options, &server.process, target(server.address, READERS), read).await?;
    for case in &CASES {
        let ask = async |container: &str, count: usize| {
            let question = case.question;
            let work = |_| Work::Query { container: container.to_owned(), question, count };
            measure(options, &server.process, target(server.address, case.connections), work).await
        };
        let ours = ask("medium", MEDIUM).await?;
        if case.question == Question::Count {
            rows.push(row(case, "a point read's rate over this", &point, &ours, Some(Goal::AtMost(3.0))));
        }
        if let Some(goal) = case.of_limit {
            let question =
                Work::Query { container: "medium".to_owned(), question: case.question, count: MEDIUM };
            let (ours, limit) = measure_alternately(
                options,
                (&server.process, target(server.address, case.connections), &question),
                (&reference.process, target(reference.plain, READERS), &read(0)),
            )
            .await?;
            rows.push(row(case, "over the reference", &ours, &limit, Some(Goal::AtLeast(goal))));
        }
        if let Some(postgres) = postgres {
            let peer = postgres.ask(options, case.connections, case.question, MEDIUM).await?;
            let goal = case.of_postgres.map(Goal::AtLeast);
            rows.push(row(case, "over PostgreSQL", &ours, &peer, goal));
        }
        if let Some(goal) = case.growth {
            let (small, large) = (ask("small", SMALL).await?, ask("large", options.large).await?);
            let what = format!("10 k over {} documents", options.large);
            rows.push(row(case, &what, &small, &large, Some(Goal::AtMost(goal))));
        }
    }
    Ok(rows)
}

fn row(case: &Case, compared_with: &str, one: &Figures, other: &Figures, goal: Option<Goal>) -> Row {
    Row {
        case: case.case,
        what: format!("{}: {compared_with}", case.what),
        figures: format!("{} of {}", rate(one), rate(other)),
        ratio: one.rate / other.rate,
        goal,
    }
}

/// Bytes on disk divided by those of the documents' text.
fn disk(server: &Server, folder: &std::path::Path, large: usize) -> Result<Row> {
    let raw = ((SMALL + MEDIUM + large) * DOCUMENT_BYTES) as f64;
    let bytes = crate::disk::folder_bytes(folder)? as f64;
    let memory = server.process.memory_kib()? as f64 / 1024.0;
    Ok(Row {
        case: "20",
        what: "bytes on disk, everything indexed, over raw bytes".to_owned(),
        figures: format!("{:.0} of {:.0} MB, memory {memory:.0} MiB", bytes / 1e6, raw / 1e6),
        ratio: bytes / raw,
        goal: Some(Goal::AtMost(1.2)),
    })
}
