//! The Java package: Maven downloads the SDK into its own cache and needs no network afterwards.

use super::{SERVER_VARIABLE, apt, server};
use crate::run::{command, works};
use std::path::Path;
use std::process::Command;

/// The SDK's suite in Java.
pub(crate) fn java_suite(root: &Path) -> Result<Command, String> {
    if !works("javac", &["--version"]) || !works("mvn", &["--version"]) {
        apt(&["default-jdk-headless", "maven"])?;
    }
    let arguments = ["--batch-mode", "--no-transfer-progress", "test"];
    let mut maven = command("mvn", &root.join("conformance/java"), &arguments);
    maven.env(SERVER_VARIABLE, server(root)?);
    Ok(maven)
}
