//! `cargo xtask tidy`: repository rules that a compiler does not check.

mod dependencies;
mod events;
mod sources;
mod text_links;
mod words;

use std::path::{Path, PathBuf};

/// Folders without files of the project.
const FOREIGN: [&str; 6] = ["target", ".git", "node_modules", ".venv", ".pytest_cache", "perihelion-data"];

/// Prints all findings; any finding is a failure.
pub(crate) fn report(root: &Path) -> Result<(), String> {
    let findings = findings(root)?;
    for finding in &findings {
        println!("tidy: {finding}");
    }
    match findings.len() {
        0 => Ok(()),
        count => Err(format!("tidy: {count} findings")),
    }
}

/// All violations of the rules.
fn findings(root: &Path) -> Result<Vec<String>, String> {
    let files = files(root)?;
    let mut findings = dependencies::findings(root, &files)?;
    findings.extend(events::findings(root, &files)?);
    findings.extend(words::findings(root, &files)?);
    for file in files {
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        let kind = file.extension().and_then(std::ffi::OsStr::to_str);
        if !matches!(kind, Some("rs" | "md")) {
            continue;
        }
        let text = std::fs::read_to_string(&file).map_err(|error| format!("cannot read {name}: {error}"))?;
        let found = match kind {
            Some("rs") => sources::findings(&text),
            _ => text_links::findings(&text, file.parent().unwrap_or(root)),
        };
        findings.extend(found.into_iter().map(|finding| format!("{name}: {finding}")));
    }
    findings.sort();
    Ok(findings)
}

/// All files of the project.
fn files(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let unreadable = |error| format!("cannot list {}: {error}", folder.display());
        for entry in std::fs::read_dir(&folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let kind = entry.file_type().map_err(unreadable)?;
            let name = entry.file_name();
            if kind.is_dir() && !FOREIGN.iter().any(|foreign| name == *foreign) {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A valid repository of two crates.
    fn repository() -> tempfile::TempDir {
        let repository = tempfile::tempdir().unwrap();
        write(&repository, "Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\n");
        write(
            &repository,
            "README.md",
            "See [the plan](docs/plan.md) and [the web](https://example.org/).\n",
        );
        write(&repository, "docs/plan.md", "[up](../README.md#top)\n");
        write(
            &repository,
            "crates/value/Cargo.toml",
            "[package]\nname = \"perihelion-value\"\n[lints]\nworkspace = true\n",
        );
        write(&repository, "crates/value/src/lib.rs", "//! Values.\n");
        write(&repository, "crates/model/Cargo.toml", MODEL);
        write(&repository, "crates/model/src/lib.rs", "//! Models.\n");
        write(&repository, "target/debug/build/out.rs", "generated\n");
        repository
    }

    const MODEL: &str = "[package]\nname = \"perihelion-model\"\n[dependencies]\nvalue.workspace = true\n[lints]\nworkspace = true\n";

    fn write(repository: &tempfile::TempDir, name: &str, text: &str) {
        let path = repository.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[track_caller]
    fn check(name: &str, text: &str, expected: &str) {
        let repository = repository();
        assert_eq!(findings(repository.path()).unwrap(), Vec::<String>::new());
        write(&repository, name, text);
        let found = findings(repository.path()).unwrap();
        assert!(found.len() == 1 && found[0].contains(expected), "expected {expected:?}, found {found:?}");
    }

    #[test]
    fn planted_errors_are_found() {
        check("crates/value/src/a.rs", "fn a() {}\n", "does not start with a `//!` head");
        check("crates/value/src/a.rs", &format!("//! A.\n{}", "//\n".repeat(600)), "601 lines");
        check("crates/value/src/a.rs", concat!("//! A.\nfn a() { todo", "!() }\n"), "line 2");
        check(
            "crates/value/src/a.rs",
            concat!("//! A.\nuse fjall", "::Keyspace;\n"),
            "only crates/kv may name fjall",
        );
        check("crates/model/src/a.rs", "//! Reads the x-ms-date.\n", "line 1: `x-ms-`");
        check("docs/b.md", "A [dead](gone.md) link.\n", "gone.md");
        check("crates/value/Cargo.toml", "[package]\nname = \"perihelion-value\"\n", "lints");
        let upwards = "[package]\nname = \"perihelion-value\"\n[dependencies]\nmodel.workspace = true\n\
                       [lints]\nworkspace = true\n";
        check("crates/value/Cargo.toml", upwards, "crates/value may not depend on model");
        let development = upwards.replace("[dependencies]", "[dev-dependencies]");
        check("crates/value/Cargo.toml", &development, "crates/value may not depend on model");
        let path = MODEL.replace("value.workspace = true", "value = { path = \"../value\" }");
        check("crates/model/Cargo.toml", &path, "must come from the workspace");
        check(
            "crates/model/Cargo.toml",
            &MODEL.replace("value.w", "fjall.w"),
            "only crates/kv may name fjall",
        );
        check(
            "crates/attic/Cargo.toml",
            "[package]\nname = \"attic\"\n[lints]\nworkspace = true\n",
            "crates/attic is not in the table",
        );
    }

    #[test]
    fn this_repository_can_be_read() {
        let root = crate::root();
        assert!(files(&root).unwrap().contains(&root.join("xtask/src/tidy/mod.rs")));
    }
}
