//! The allowed dependencies between crates, compared with the manifests.
//!
//! A new row or a new dependency is a decision about the architecture: it is discussed first and recorded here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use toml::Table;

/// A crate, its name as a dependency, and the crates it may depend on.
struct CrateRule {
    folder: &'static str,
    name: &'static str,
    sees: &'static [&'static str],
}

const fn allow(folder: &'static str, name: &'static str, sees: &'static [&'static str]) -> CrateRule {
    CrateRule { folder, name, sees }
}

/// The crates of the workspace. Tests of a crate may also use everything that its dependencies use.
const CRATES: [CrateRule; 19] = [
    allow("crates/value", "value", &[]),
    allow("crates/model", "model", &["value"]),
    allow("crates/plan", "plan", &["value", "model"]),
    allow("crates/sql", "sql", &["value", "model", "plan"]),
    allow("crates/eval", "eval", &["value", "model", "plan"]),
    allow("crates/kv", "kv", &["model"]),
    allow("crates/script", "script", &["value", "model"]),
    allow("crates/partition", "partition", &["value", "model", "plan", "eval", "kv"]),
    allow("crates/exec", "exec", &["value", "model", "plan", "eval", "kv", "partition"]),
    allow(
        "crates/engine",
        "engine",
        &["value", "model", "plan", "eval", "kv", "partition", "exec", "script"],
    ),
    allow("apis/control", "control", &["model", "engine"]),
    allow("apis/http", "api_http", &["model", "engine"]),
    allow("apis/nosql", "nosql", &["value", "model", "plan", "sql", "engine", "api_http"]),
    allow("apis/table", "table", &["value", "model", "plan", "engine", "api_http"]),
    // An API written as a test: what it needs is in the core.
    allow("tests-apis/line", "line", &["value", "model", "plan", "sql", "engine"]),
    allow(
        "server",
        "perihelion",
        &["model", "engine", "control", "api_http", "nosql", "table", "kv", "script"],
    ),
    allow("sim", "sim", &["value", "model", "plan", "sql", "eval", "kv", "partition", "exec", "engine"]),
    allow("fuzz/targets", "fuzz_targets", &["value", "model", "partition", "nosql", "table", "sql"]),
    // Tools use the server from outside.
    allow("bench", "bench", &[]),
];

/// Crates that the tests of a crate use in addition to its dependencies.
const SEEN_BY_TESTS: [(&str, &str); 4] = [
    // The evaluator's cases are parsed by the SQL parser.
    ("crates/eval", "sql"),
    // So are the queries in the tests of execution and of the engine.
    ("crates/exec", "sql"),
    ("crates/engine", "sql"),
    // Itself, with a backend for tests only.
    ("crates/kv", "kv"),
];

/// Tools without dependencies on crates, on which no crate depends.
const TOOLS: [&str; 2] = ["xtask", "fuzz"];

/// Not members of the workspace: they cannot inherit from it. Fuzz targets depend on the code they test; the tests
/// through the Rust SDK depend on the SDK only.
const APART: [&str; 2] = ["fuzz", "conformance/rust"];

/// Heavy dependencies that only one crate may use.
pub(super) const FENCED: [(&str, &str); 4] = [
    ("fjall", "crates/kv"),
    ("jsonwebtoken", "crates/engine"),
    ("rquickjs", "crates/script"),
    ("sonic-rs", "crates/value"),
];

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
    let sees = match CRATES.iter().find(|rule| rule.folder == folder) {
        Some(rule) => rule.sees,
        None if TOOLS.contains(&folder) => &[],
        None => {
            findings.push(format!("{folder} is not in the table in xtask/src/tidy/dependencies.rs"));
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
        let is_crate = CRATES.iter().any(|rule| rule.name == dependency);
        let is_seen_by_tests = below.contains(dependency) || SEEN_BY_TESTS.contains(&(folder, dependency));
        let is_seen = sees.contains(&dependency) || (kind == "dev-dependencies" && is_seen_by_tests);
        if is_crate && !is_seen {
            findings.push(format!("{folder} may not depend on {dependency} ({kind})"));
        }
    }
    findings
}

/// All crates that can be reached from these.
fn below(sees: &[&'static str]) -> BTreeSet<&'static str> {
    let mut reached = BTreeSet::new();
    let mut waiting = sees.to_vec();
    while let Some(name) = waiting.pop() {
        if reached.insert(name) {
            waiting.extend(CRATES.iter().filter(|rule| rule.name == name).flat_map(|rule| rule.sees));
        }
    }
    reached
}

/// Every dependency of a manifest, including those for some targets only.
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

/// A fenced crate can also leak through the exports of its owner.
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
    fn dependencies_have_no_cycles() {
        for rule in &CRATES {
            assert!(!below(rule.sees).contains(rule.name), "{} sees itself", rule.folder);
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
