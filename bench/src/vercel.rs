//! The emulator of npm, `@vercel/cosmosdb-server`: the same protocol, everything in memory, no index, one thread.

use crate::process::Server;
use crate::{Result, process::Process};
use std::path::Path;
use std::process::Command;

/// The package that is measured.
const PACKAGE: &str = "@vercel/cosmosdb-server@1.0.1";
/// Starts the package in node's current folder, on its own port.
const PROGRAM: &str = r#"
const server = require(process.argv[1] + "/node_modules/@vercel/cosmosdb-server").createHttpServer({ keepAlive: true });
server.listen(0, "127.0.0.1", () => console.log("ready 127.0.0.1:" + server.address().port));
"#;

/// Description for the heading of a table.
pub(crate) const CONFIGURATION: &str = "@vercel/cosmosdb-server 1.0.1 over plain HTTP: keeps everything in memory, writes nothing to the disk, checks no signature";

/// The package, installed in a temporary folder.
pub(crate) struct Vercel {
    folder: tempfile::TempDir,
}

impl Vercel {
    /// Installs the package; `Err` with the reason if npm or the registry is missing.
    pub(crate) fn install() -> std::result::Result<Vercel, String> {
        let folder = tempfile::tempdir().map_err(|fault| fault.to_string())?;
        let mut command = Command::new("npm");
        command.args(["install", "--no-audit", "--no-fund", "--silent", "--prefix"]);
        let output = command.arg(folder.path()).arg(PACKAGE).output();
        match output.map_err(|fault| format!("npm: {fault}"))? {
            output if output.status.success() => Ok(Vercel { folder }),
            output => Err(format!("npm install: {}", String::from_utf8_lossy(&output.stderr).trim())),
        }
    }

    /// Starts an empty server.
    pub(crate) fn start(&self) -> Result<Server> {
        let folder = self.folder.path().to_str().ok_or("path")?;
        let (process, line) = Process::start(Path::new("node"), &["-e", PROGRAM, folder])?;
        let address = line.split_whitespace().nth(1).ok_or("ready line")?.parse()?;
        Ok(Server { process, address })
    }
}
