//! Peers from the npm registry, each installed in a temporary folder.

use crate::Result;
use crate::process::{Process, Server};
use std::path::Path;
use std::process::Command;

/// A package that can be started as a server.
pub(crate) struct Package {
    /// Its name and version.
    name: &'static str,
    /// Description for the heading of a table.
    pub(crate) configuration: &'static str,
    /// A program for node that gets the folder and prints `ready` and the address.
    program: &'static str,
}

/// The emulator `@vercel/cosmosdb-server`: the same protocol, everything in memory, no index, one thread.
pub(crate) const VERCEL: Package = Package {
    name: "@vercel/cosmosdb-server@1.0.1",
    configuration: "@vercel/cosmosdb-server 1.0.1 over plain HTTP: keeps everything in memory, writes nothing to the disk, checks no signature",
    program: r#"
const server = require(process.argv[1] + "/node_modules/@vercel/cosmosdb-server").createHttpServer({ keepAlive: true });
server.listen(0, "127.0.0.1", () => console.log("ready 127.0.0.1:" + server.address().port));
"#,
};

/// The Table service of Azurite: everything in memory and written to a file from time to time, one thread.
pub(crate) const AZURITE: Package = Package {
    name: "azurite@3.35.0",
    configuration: "Azurite 3.35.0, azurite-table --silent over plain HTTP: keeps everything in memory, writes it to a file every few seconds, checks signatures",
    program: r#"
const folder = process.argv[1];
const net = require("net");
// The port is nowhere printed if the system chooses it.
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (...given) {
  this.once("listening", () => console.log("ready 127.0.0.1:" + this.address().port));
  return listen.apply(this, given);
};
process.argv = ["node", "azurite-table", "--tableHost", "127.0.0.1", "--tablePort", "0", "--location", folder, "--silent", "--disableTelemetry"];
require(folder + "/node_modules/azurite/dist/src/table/main.js");
"#,
};

/// An installed package.
pub(crate) struct Installed {
    package: Package,
    folder: tempfile::TempDir,
}

impl Package {
    /// Installs the package; `Err` with the reason if npm or the registry is missing.
    pub(crate) fn install(self) -> std::result::Result<Installed, String> {
        let folder = tempfile::tempdir().map_err(|fault| fault.to_string())?;
        let mut command = Command::new("npm");
        command.args(["install", "--no-audit", "--no-fund", "--silent", "--prefix"]);
        let output = command.arg(folder.path()).arg(self.name).output();
        match output.map_err(|fault| format!("npm: {fault}"))? {
            output if output.status.success() => Ok(Installed { package: self, folder }),
            output => Err(format!("npm install: {}", String::from_utf8_lossy(&output.stderr).trim())),
        }
    }
}

impl Installed {
    /// Starts an empty server.
    pub(crate) fn start(&self) -> Result<Server> {
        let folder = self.folder.path().to_str().ok_or("path")?;
        let (process, line) = Process::start(Path::new("node"), &["-e", self.package.program, folder])?;
        let address = line.split_whitespace().nth(1).ok_or("ready line")?.parse()?;
        Ok(Server { process, address, table: None })
    }
}
