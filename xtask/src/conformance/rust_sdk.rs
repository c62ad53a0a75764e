//! The Rust package: a separate workspace, so that the SDK's dependencies are not the server's.

use super::{SERVER_VARIABLE, server};
use crate::run::{self, cargo};
use std::path::Path;
use std::process::Command;

/// The SDK's suite in Rust.
pub(crate) fn rust_sdk_suite(root: &Path) -> Result<Command, String> {
    let folder = root.join("conformance/rust");
    run::plain(cargo(&folder, &["fmt", "--check"]))?;
    let mut test = cargo(&folder, &["test", "--locked", "--quiet"]);
    // Its settings expect the servers' certificates in its default target folder.
    test.env_remove("CARGO_TARGET_DIR").env(SERVER_VARIABLE, server(root)?);
    Ok(test)
}
