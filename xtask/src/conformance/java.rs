//! The Java package: Maven downloads the SDK into its own cache and needs no network afterwards.

use super::{SERVER_VARIABLE, TABLE_PEER_VARIABLE, apt, server};
use crate::run::{command, works};
use std::path::Path;
use std::process::Command;

/// The suite of an SDK in Java; the package of its tests says of which, as a path.
pub(crate) fn java_suite(root: &Path, package: &str) -> Result<Command, String> {
    if !works("javac", &["--version"]) || !works("mvn", &["--version"]) {
        apt(&["default-jdk-headless", "maven"])?;
    }
    let tests = format!("-Dtest={package}/*Test");
    let arguments = ["--batch-mode", "--no-transfer-progress", "test", &tests];
    let mut maven = command("mvn", &root.join("conformance/java"), &arguments);
    maven.env(SERVER_VARIABLE, server(root)?).env_remove(TABLE_PEER_VARIABLE);
    Ok(maven)
}
