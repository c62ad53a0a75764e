//! The packages in `conformance/`: installs what they need and makes the commands that run them.
//!
//! What a package needs goes into its own folder (`.venv`, `node_modules`, `target`) or its tool's cache. Tools that the
//! machine lacks come from its Debian packages.

mod go;
mod java;
mod node;
mod python;
mod rust_sdk;

pub(crate) use go::go_suite;
pub(crate) use java::java_suite;
pub(crate) use node::{browser_suite, javascript_suite};
pub(crate) use python::{
    disk_command, disk_full, driver_suite, histories, histories_command, hostile, hostile_command, kill,
    kill_command, python_suite,
};
pub(crate) use rust_sdk::rust_sdk_suite;

use crate::run::{self, cargo, command, works};
use std::path::{Path, PathBuf};

/// Names the server's program to the packages; set from outside, it replaces the release build.
const SERVER_VARIABLE: &str = "PERIHELION_BIN";

/// The server to test: the one that the environment names, or a release build.
pub(crate) fn server(root: &Path) -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os(SERVER_VARIABLE) {
        return Ok(PathBuf::from(path));
    }
    run::plain(cargo(root, &["build", "--release", "--package", "perihelion"]))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(root.join(target).join("release/perihelion"))
}

/// Installs what the server's build needs besides a Rust toolchain and the C compiler that it links with.
pub(crate) fn build_tools() -> Result<(), String> {
    if works("make", &["--version"]) { Ok(()) } else { apt(&["make"]) }
}

/// Installs Debian packages, as root or through sudo.
pub(crate) fn apt(packages: &[&str]) -> Result<(), String> {
    let sudo = if works("sudo", &["-n", "true"]) { "sudo" } else { "env" };
    let base = Path::new("/");
    let install = [
        &["DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "--no-install-recommends"],
        packages,
    ];
    // The lists may be missing on a fresh machine, or current on one without a network.
    let _ = run::plain(command(sudo, base, &["apt-get", "update", "-q"]));
    let failed = |cause: String| format!("{cause}; install by hand: {}", packages.join(" "));
    run::plain(command(sudo, base, &install.concat())).map_err(failed)
}
