//! The stage of old SDK generations and third-party clients: one folder per client, all against one server.
//!
//! The files in a folder say how its client is installed and run. Those of Python and Node.js always run, those of
//! Maven and Go where their tools are installed.

mod server;

use super::{go, node, python};
use crate::run::{self, command, works};
use crate::stages::{self, Outcome};
use crate::tally::{self, Runner};
use server::Server;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const FOLDER: &str = "conformance/generations";
/// What the folders share; not a client.
const SUPPORT: &str = "support";
/// Time limit of one client, which normally takes a few seconds; old clients repeat some calls for ever.
const CLIENT_TIME_MAX: Duration = Duration::from_secs(180);

/// The tool that installs and runs a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tool {
    Python,
    Node,
    Maven,
    Go,
}

impl Tool {
    const ALL: [(Tool, &'static str); 4] = [
        (Tool::Python, "requirements.txt"),
        (Tool::Node, "package-lock.json"),
        (Tool::Maven, "pom.xml"),
        (Tool::Go, "go.mod"),
    ];

    /// The tool of a folder, by the file that pins the client's version.
    fn of(folder: &Path) -> Option<Tool> {
        Tool::ALL.into_iter().find(|(_, file)| folder.join(file).is_file()).map(|(tool, _)| tool)
    }

    /// Whether the client can run here. What is missing of the first two is installed.
    fn is_available(self) -> bool {
        match self {
            Tool::Python | Tool::Node => true,
            Tool::Maven => works("javac", &["--version"]) && works("mvn", &["--version"]),
            Tool::Go => go::is_installed(),
        }
    }
}

/// Runs every client; a failed one does not stop the others.
pub(crate) fn generations(root: &Path) -> Result<Outcome, String> {
    let folders = folders(root)?;
    let server = Server::start(&super::server(root)?)?;
    let mut outcome = Outcome::default();
    for (folder, tool) in folders {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !tool.is_available() {
            println!("\n-- {name}: left out, the tool {tool:?} is not installed");
            continue;
        }
        println!("\n-- {name}");
        match client(root, &folder, tool, &server) {
            Ok(one) => outcome += one,
            Err(message) => {
                println!("{name}: {message}");
                outcome.tally.failed += 1;
            }
        }
    }
    Ok(outcome)
}

/// The folders of clients with their tools, in the order of their names.
fn folders(root: &Path) -> Result<Vec<(PathBuf, Tool)>, String> {
    let base = root.join(FOLDER);
    let unreadable = |error| format!("cannot list {}: {error}", base.display());
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(&base).map_err(unreadable)? {
        let folder = entry.map_err(unreadable)?.path();
        if !folder.is_dir() || folder.ends_with(SUPPORT) {
            continue;
        }
        let tool = Tool::of(&folder).ok_or_else(|| format!("{} pins no client", folder.display()))?;
        folders.push((folder, tool));
    }
    folders.sort_by(|(left, _), (right, _)| left.cmp(right));
    Ok(folders)
}

/// Installs and runs one client.
fn client(root: &Path, folder: &Path, tool: Tool, server: &Server) -> Result<Outcome, String> {
    let mut command = match tool {
        Tool::Python => python_client(root, folder)?,
        Tool::Node => node::program(root, folder, "main.js")?,
        Tool::Maven => maven_client(root, folder, server)?,
        Tool::Go => go_client(root, folder)?,
    };
    command.envs(server.environment());
    let (output, is_good) = run::tee_within(command, CLIENT_TIME_MAX)?;
    let tally = tally::count(Runner::Driver, &output).ok_or("no totals were printed")?;
    if !is_good && tally.failed == 0 {
        return Err(format!("{tally}, but it ended badly"));
    }
    let inside = folder.strip_prefix(root).unwrap_or(folder).display().to_string();
    stages::named(tally, &output, &inside)
}

fn python_client(root: &Path, folder: &Path) -> Result<Command, String> {
    let mut python = command(python::virtual_environment(folder)?, folder, &["main.py"]);
    python
        .env("PYTHONPATH", root.join(FOLDER).join(SUPPORT).join("python"))
        .env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(python)
}

/// Built by Maven and run without it: Maven's downloads need another store of trusted certificates.
fn maven_client(root: &Path, folder: &Path, server: &Server) -> Result<Command, String> {
    let list = folder.join("target/classpath");
    let shared = root.join(FOLDER).join(SUPPORT).join("java");
    // Maven takes seconds to find out that there is nothing to do.
    if !is_newer(&list, &[folder, &shared]) {
        run::plain(command("mvn", folder, &["--batch-mode", "--quiet", "compile"]))?;
    }
    let unreadable = |error| format!("cannot read {}: {error}", list.display());
    let libraries = std::fs::read_to_string(&list).map_err(unreadable)?;
    // Maven leaves the file alone if the libraries are the same.
    std::fs::write(&list, &libraries).map_err(unreadable)?;
    let mut java = command("java", folder, &[]);
    java.args(server.trusting_java_options()?);
    java.args(["-cp", &format!("target/classes:{}", libraries.trim()), "perihelion.Main"]);
    Ok(java)
}

/// Whether `made` is newer than every source in the folders.
fn is_newer(made: &Path, folders: &[&Path]) -> bool {
    let changed = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    let Some(made) = changed(made) else { return false };
    let mut folders: Vec<PathBuf> = folders.iter().map(|folder| folder.to_path_buf()).collect();
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { return false };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_file() && changed(&path).is_none_or(|changed| changed >= made) {
                return false;
            }
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            }
        }
    }
    true
}

/// Built first and then run by itself: `go run` would leave its child when the time is up.
fn go_client(root: &Path, folder: &Path) -> Result<Command, String> {
    let program = folder.join("target/client");
    let mut build = go::command_in(root, folder, &["build", "-o"])?;
    build.arg(&program).arg(".");
    run::plain(build)?;
    Ok(command(program, folder, &[]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pinning_file_names_the_tool() {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().join(FOLDER);
        for (name, file) in
            [("b", "package-lock.json"), ("a", "requirements.txt"), ("d", "go.mod"), ("c", "pom.xml")]
        {
            std::fs::create_dir_all(base.join(name)).unwrap();
            std::fs::write(base.join(name).join(file), "").unwrap();
        }
        std::fs::create_dir_all(base.join(SUPPORT)).unwrap();
        std::fs::write(base.join("walk.json"), "{}").unwrap();
        let tools: Vec<Tool> = folders(root.path()).unwrap().into_iter().map(|(_, tool)| tool).collect();
        assert_eq!(tools, [Tool::Python, Tool::Node, Tool::Maven, Tool::Go]);
        std::fs::create_dir_all(base.join("empty")).unwrap();
        assert!(folders(root.path()).unwrap_err().contains("empty"));
    }

    #[test]
    fn what_is_made_is_older_than_a_changed_source() {
        let folder = tempfile::tempdir().unwrap();
        let at = |seconds| std::time::UNIX_EPOCH + Duration::from_secs(seconds);
        let write = |name: &str, seconds| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::File::create(&path).unwrap().set_modified(at(seconds)).unwrap();
            path
        };
        let made = write("target/classpath", 20);
        write("src/Main.java", 10);
        write("target/classes/Main.class", 30);
        assert!(is_newer(&made, &[folder.path()]));
        write("src/Main.java", 20);
        assert!(!is_newer(&made, &[folder.path()]));
        assert!(!is_newer(&folder.path().join("target/none"), &[folder.path()]));
    }

    #[test]
    fn every_client_of_this_repository_can_be_run() {
        assert!(!folders(&crate::root()).unwrap().is_empty());
    }
}
