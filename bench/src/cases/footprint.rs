//! Footprint of the server: memory, start time, size of the binary. Cases 19, 21 and 22.

use super::fill;
use crate::documents::DOCUMENT_BYTES;
use crate::process::Server;
use crate::report::{Goal, Row};
use crate::{Options, Result};

const MEDIUM: usize = 100_000;

pub(super) async fn run(options: &Options) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let folder = tempfile::tempdir()?;
    let mut starts = Vec::new();
    for attempt in 0..options.repeats.max(3) {
        let server = Server::start(&options.server, &folder.path().join(format!("empty{attempt}")), &[])?;
        starts.push(server.process.ready_after.as_secs_f64() * 1e3);
    }
    starts.sort_by(f64::total_cmp);
    let what = "start of an empty store to the ready line, ms".to_owned();
    let figures = format!("{starts:.0?}");
    rows.push(Row {
        case: "21",
        what,
        figures,
        ratio: starts[starts.len() / 2],
        goal: Some(Goal::AtMost(50.0)),
    });

    let data = folder.path().join("data");
    let server = Server::start(&options.server, &data, &[])?;
    let idle = server.process.memory_kib()? as f64 / 1024.0;
    let what = "memory, idle, MiB".to_owned();
    rows.push(Row { case: "19", what, figures: String::new(), ratio: idle, goal: Some(Goal::AtMost(20.0)) });
    fill(server.address, "medium", MEDIUM).await?;
    let memory = server.process.memory_kib()? as f64 * 1024.0 / (MEDIUM * DOCUMENT_BYTES) as f64;
    let what = "memory with 100 k documents, over raw bytes".to_owned();
    let figures = format!("processor {:.1} s", server.process.cpu()?.as_secs_f64());
    rows.push(Row { case: "19", what, figures, ratio: memory, goal: Some(Goal::AtMost(1.5)) });

    fill(server.address, "large", options.large).await?;
    let memory = server.process.memory_kib()? as f64 / 1024.0;
    let what = format!("memory with {} documents, MiB", options.large);
    rows.push(Row { case: "19", what, figures: String::new(), ratio: memory, goal: None });
    server.process.kill()?;
    let server = Server::start(&options.server, &data, &[])?;
    let what = format!("start after kill -9 with {} documents, ms", options.large);
    let ratio = server.process.ready_after.as_secs_f64() * 1e3;
    rows.push(Row { case: "21", what, figures: String::new(), ratio, goal: Some(Goal::AtMost(1000.0)) });

    let size = std::fs::metadata(&options.server)?.len() as f64 / 1e6;
    let what = "binary, MB".to_owned();
    rows.push(Row { case: "22", what, figures: String::new(), ratio: size, goal: Some(Goal::AtMost(20.0)) });
    Ok(rows)
}
