//! The packages in `conformance/`: installs their dependencies and creates the commands that run them.
//!
//! Dependencies of a package are installed in its own folder (`.venv`, `node_modules`, `target`) or its tool's cache.
//! Missing tools are installed from Debian packages.

mod generations;
mod go;
mod java;
mod node;
mod python;
mod rust_sdk;

pub(crate) use generations::generations;
pub(crate) use go::go_suite;
pub(crate) use java::java_suite;
pub(crate) use node::{browser_suite, javascript_suite};
pub(crate) use python::{
    disk_command, disk_full, driver_suite, histories, histories_command, hostile, hostile_command, kill,
    kill_command, python_suite,
};
pub(crate) use rust_sdk::{rust_sdk_client, rust_sdk_suite};

use crate::run::{self, cargo, command, works};
use std::path::{Path, PathBuf};

/// Environment variable with the server's path for the packages; if set by the caller, it replaces the release build.
const SERVER_VARIABLE: &str = "PERIHELION_BIN";

/// Environment variable that sends the suites of Table clients to another server than ours, which would say nothing of it.
const TABLE_PEER_VARIABLE: &str = "PERIHELION_TABLE_PEER";

/// The server to test: the one from the environment, or a release build.
pub(crate) fn server(root: &Path) -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os(SERVER_VARIABLE) {
        return Ok(PathBuf::from(path));
    }
    run::plain(cargo(root, &["build", "--release", "--package", "perihelion"]))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(root.join(target).join("release/perihelion"))
}

/// Installs the build dependencies of the server in addition to a Rust toolchain and the C linker.
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
    // The lists may be missing on a new machine, or current on one without a network.
    let _ = run::plain(command(sudo, base, &["apt-get", "update", "-q"]));
    let failed = |cause: String| format!("{cause}; install by hand: {}", packages.join(" "));
    run::plain(command(sudo, base, &install.concat())).map_err(failed)
}
