//! Log events: every log call of the product names its event, and `docs/logs.md` lists exactly those events.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const DOCUMENT: &str = "docs/logs.md";
const CALLS: [&str; 5] =
    ["tracing::error!(", "tracing::warn!(", "tracing::info!(", "tracing::debug!(", "tracing::trace!("];

/// Violations in the log calls of `files` and in their document; none without a document.
pub(super) fn findings(root: &Path, files: &[PathBuf]) -> Result<Vec<String>, String> {
    let Ok(document) = std::fs::read_to_string(root.join(DOCUMENT)) else { return Ok(Vec::new()) };
    let documented: BTreeSet<String> = document.lines().filter_map(row_name).map(str::to_owned).collect();
    let mut findings = Vec::new();
    let mut logged = BTreeSet::new();
    for file in files.iter().filter(|file| is_product(root, file)) {
        let name = file.strip_prefix(root).unwrap_or(file).display().to_string();
        let text = std::fs::read_to_string(file).map_err(|error| format!("cannot read {name}: {error}"))?;
        for event in events(&text) {
            match event {
                Some(event) => drop(logged.insert(event.to_owned())),
                None => findings.push(format!("{name}: a log call does not begin with event = \"…\"")),
            }
        }
    }
    findings
        .extend(logged.difference(&documented).map(|event| format!("{DOCUMENT}: lacks the event {event}")));
    let gone = documented.difference(&logged);
    findings.extend(gone.map(|event| format!("{DOCUMENT}: nothing logs the event {event}")));
    Ok(findings)
}

/// Whether a file is part of the server.
fn is_product(root: &Path, file: &Path) -> bool {
    let inside = file.strip_prefix(root).unwrap_or(file);
    let mut parts = inside.components().map(|part| part.as_os_str().to_str().unwrap_or_default());
    let is_rust = inside.extension().is_some_and(|kind| kind == "rs");
    let top = parts.next().unwrap_or_default();
    is_rust && ["crates", "apis", "server"].contains(&top) && parts.any(|part| part == "src")
}

/// The event of every log call; `None` if it has none.
fn events(text: &str) -> impl Iterator<Item = Option<&str>> {
    let calls = CALLS.iter().flat_map(move |call| text.match_indices(call).map(|(at, call)| at + call.len()));
    calls.map(|at| text[at..].trim_start().strip_prefix("event = \"")?.split('"').next())
}

/// The event that a row of the document describes.
fn row_name(line: &str) -> Option<&str> {
    line.strip_prefix("| `")?.split('`').next()
}

#[test]
fn a_call_names_its_event_first() {
    let text = "tracing::warn!(event = \"a_b\", x, \"text\"); tracing::info!(\n    event = \"c\",\n) tracing::error!(\"x\")";
    let found: BTreeSet<_> = events(text).collect();
    assert_eq!(found, BTreeSet::from([None, Some("a_b"), Some("c")]));
}
