//! Which crate may see which: the table, compared with the manifests.
//!
//! A new row or a new arrow is a decision about the architecture: it is talked over first and written here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use toml::Table;

/// A room, its name as a dependency, and the rooms it may see.
struct Room {
    folder: &'static str,
    name: &'static str,
    sees: &'static [&'static str],
}

const fn room(folder: &'static str, name: &'static str, sees: &'static [&'static str]) -> Room {
    Room { folder, name, sees }
}

/// The house. Tests of a room may also see everything that the rooms below it see.
const ROOMS: [Room; 15] = [
    room("crates/value", "value", &[]),
    room("crates/model", "model", &["value"]),
    room("crates/plan", "plan", &["value", "model"]),
    room("crates/sql", "sql", &["value", "model", "plan"]),
    room("crates/eval", "eval", &["value", "model", "plan"]),
    room("crates/kv", "kv", &["model"]),
    room("crates/partition", "partition", &["value", "model", "plan", "eval", "kv"]),
    room("crates/exec", "exec", &["value", "model", "plan", "eval", "kv", "partition"]),
    room("crates/engine", "engine", &["value", "model", "plan", "eval", "kv", "partition", "exec"]),
    room("apis/nosql", "nosql", &["value", "model", "plan", "sql", "engine"]),
    // An API written as a test: what it needs is in the core.
    room("tests-apis/line", "line", &["value", "model", "plan", "sql", "engine"]),
    room("server", "perihelion", &["model", "engine", "nosql", "kv"]),
    room("sim", "sim", &["value", "model", "plan", "sql", "eval", "kv", "partition", "exec", "engine"]),
    room("fuzz/targets", "fuzz_targets", &["value", "model", "partition", "nosql", "sql"]),
    // Tools look at the server from outside.
    room("bench", "bench", &[]),
];

/// Rooms that the tests of a room see beside those below it.
const SEEN_BY_TESTS: [(&str, &str); 4] = [
    // The cases of the evaluator are read by the parser that users have.
    ("crates/eval", "sql"),
    // So are the queries in the tests of execution and of the engine.
    ("crates/exec", "sql"),
    ("crates/engine", "sql"),
    // Itself, with a backend that only tests have.
    ("crates/kv", "kv"),
];

/// Tools that see no room and that no room sees.
const TOOLS: [&str; 2] = ["xtask", "fuzz"];

/// No members of the workspace: they cannot inherit from it. Fuzz targets see what they feed; the tests through the
/// Rust SDK see the SDK and nothing of ours.
const APART: [&str; 2] = ["fuzz", "conformance/rust"];

/// Heavy dependencies that stay behind one crate.
pub(super) const FENCED: [(&str, &str); 3] =
    [("fjall", "crates/kv"), ("jsonwebtoken", "crates/engine"), ("sonic-rs", "crates/value")];

/// Compares every manifest with the table.
pub(super) fn findings(root: &Path, files: &[PathBuf]) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    for file in files {
        let folder = file.parent().and_then(|folder| folder.strip_prefix(root).ok());
        let folder = folder.and_then(Path::to_str).unwrap_or_default();
        let is_source = file.extension().is_some_and(|kind| kind == "rs");
        if is_source {
            findings.extend(fences_in_source(root, file)?);
        }
        if file.file_name().is_none_or(|name| name != "Cargo.toml") || folder.is_empty() {
            continue;
        }
        let text = std::fs::read_to_string(file)
            .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        let manifest: Table = text.parse().map_err(|error| format!("{folder}/Cargo.toml: {error}"))?;
        findings.extend(manifest_findings(folder, &manifest));
    }
    Ok(findings)
}

fn manifest_findings(folder: &str, manifest: &Table) -> Vec<String> {
    if APART.contains(&folder) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let inherits =
        manifest.get("lints").and_then(|lints| lints.get("workspace")).and_then(toml::Value::as_bool);
    if inherits != Some(true) {
        findings.push(format!("{folder}/Cargo.toml: the crate does not inherit the workspace's lints"));
    }
    let sees = match ROOMS.iter().find(|room| room.folder == folder) {
        Some(room) => room.sees,
        None if TOOLS.contains(&folder) => &[],
        None => {
            findings.push(format!("{folder} is not in the table of rooms in xtask/src/tidy/arrows.rs"));
            return findings;
        }
    };
    let below = below(sees);
    for (kind, dependency, value) in dependencies(manifest) {
        if value.get("path").is_some() || value.get("git").is_some() {
            findings.push(format!("{folder}: the dependency {dependency} must come from the workspace"));
        }
        for (fenced, owner) in FENCED {
            if dependency == fenced && folder != owner {
                findings.push(format!("{folder}: only {owner} may name {fenced}"));
            }
        }
        let is_room = ROOMS.iter().any(|room| room.name == dependency);
        let is_seen_by_tests = below.contains(dependency) || SEEN_BY_TESTS.contains(&(folder, dependency));
        let is_seen = sees.contains(&dependency) || (kind == "dev-dependencies" && is_seen_by_tests);
        if is_room && !is_seen {
            findings.push(format!("{folder} may not depend on {dependency} ({kind})"));
        }
    }
    findings
}

/// All rooms that can be reached from these.
fn below(sees: &[&'static str]) -> BTreeSet<&'static str> {
    let mut reached = BTreeSet::new();
    let mut waiting = sees.to_vec();
    while let Some(name) = waiting.pop() {
        if reached.insert(name) {
            waiting.extend(ROOMS.iter().filter(|room| room.name == name).flat_map(|room| room.sees));
        }
    }
    reached
}

/// Every dependency of a manifest, those for some targets only included.
fn dependencies(manifest: &Table) -> Vec<(&'static str, &str, &toml::Value)> {
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let tables = std::iter::once(manifest)
        .chain(targets.into_iter().flat_map(Table::values).filter_map(toml::Value::as_table));
    let mut found = Vec::new();
    for table in tables {
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let listed = table.get(kind).and_then(toml::Value::as_table).into_iter().flatten();
            found.extend(listed.map(|(name, value)| (kind, name.as_str(), value)));
        }
    }
    found
}

/// A fenced crate can also leak out through what its owner exports.
fn fences_in_source(root: &Path, file: &Path) -> Result<Vec<String>, String> {
    let name = file.strip_prefix(root).unwrap_or(file);
    let text =
        std::fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", name.display()))?;
    let mut findings = Vec::new();
    for (fenced, owner) in FENCED {
        let path = format!("{}{}", fenced.replace('-', "_"), "::");
        if !name.starts_with(owner) && text.contains(&path) {
            findings.push(format!("{}: only {owner} may name {fenced}", name.display()));
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_point_down() {
        for room in &ROOMS {
            assert!(!below(room.sees).contains(room.name), "{} sees itself", room.folder);
        }
    }

    #[test]
    fn tests_see_further_down() {
        let text = "[dev-dependencies]\npartition.workspace = true\n[lints]\nworkspace = true";
        assert_eq!(manifest_findings("apis/nosql", &text.parse().unwrap()), Vec::<String>::new());
        let text = text.replace("dev-dependencies", "target.'cfg(unix)'.dependencies");
        assert_eq!(manifest_findings("apis/nosql", &text.parse().unwrap()).len(), 1);
    }
}
