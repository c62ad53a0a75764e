//! The server of the stage: a child process on a free port with an empty folder, and what clients need to reach it.

use crate::run;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

const READY_TIME_MAX: Duration = Duration::from_secs(30);
const READY_LINE: &str = "ready nosql=https://";
/// Password of the key store for Java, which holds a public certificate only.
const STORE_PASSWORD: &str = "changeit";

/// A running server; ends with this value.
pub(super) struct Server {
    process: Child,
    /// `127.0.0.1:PORT`.
    address: String,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts `program` and waits until it is ready.
    pub(super) fn start(program: &Path) -> Result<Server, String> {
        let folder = tempfile::tempdir().map_err(|error| format!("cannot make a folder: {error}"))?;
        let mut command = Command::new(program);
        command.arg("dev").arg("--data").arg(folder.path().join("data")).args(["--nosql", "127.0.0.1:0"]);
        command.args(["--log", "error"]).stdout(Stdio::piped());
        let mut process =
            command.spawn().map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let output = process.stdout.take();
        // From here on the process ends with the value, also when it is not ready in time.
        let mut server = Server { process, address: String::new(), folder };
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            // Reads on after the address, so that the pipe never fills.
            for line in
                output.into_iter().flat_map(|output| BufReader::new(output).lines()).map_while(Result::ok)
            {
                if let Some(address) = line.strip_prefix(READY_LINE) {
                    let address = address.split_whitespace().next().unwrap_or_default();
                    let _ = sender.send(address.trim_end_matches('/').to_owned());
                }
            }
        });
        server.address = receiver
            .recv_timeout(READY_TIME_MAX)
            .map_err(|error| format!("{} did not become ready: {error}", program.display()))?;
        std::fs::write(server.authority(), certificate(&server.address)?)
            .map_err(|error| format!("cannot write the certificate: {error}"))?;
        Ok(server)
    }

    /// Variables that tell the clients where the server is and whom to trust.
    pub(super) fn environment(&self) -> [(&'static str, String); 4] {
        let authority = self.authority().display().to_string();
        [
            ("PERIHELION_ENDPOINT", format!("http://{}/", self.address)),
            ("PERIHELION_TLS_ENDPOINT", format!("https://{}/", self.address)),
            ("PERIHELION_AUTHORITY", authority.clone()),
            ("NODE_EXTRA_CA_CERTS", authority),
        ]
    }

    /// Options of a Java machine that trusts the server's authority.
    pub(super) fn trusting_java_options(&self) -> Result<[String; 2], String> {
        let store = self.folder.path().join("authority.p12");
        if !store.exists() {
            let mut keytool = Command::new("keytool");
            keytool.args(["-importcert", "-noprompt", "-alias", "perihelion", "-storetype", "PKCS12"]);
            keytool.args(["-storepass", STORE_PASSWORD, "-file"]).arg(self.authority());
            keytool.arg("-keystore").arg(&store).stderr(Stdio::null());
            run::plain(keytool)?;
        }
        Ok([
            format!("-Djavax.net.ssl.trustStore={}", store.display()),
            format!("-Djavax.net.ssl.trustStorePassword={STORE_PASSWORD}"),
        ])
    }

    fn authority(&self) -> PathBuf {
        self.folder.path().join("authority.pem")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Fetches the certificate of the server's own authority.
fn certificate(address: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("cannot fetch the certificate of the server: {error}");
    let mut stream = TcpStream::connect(address).map_err(failed)?;
    stream.set_read_timeout(Some(READY_TIME_MAX)).map_err(failed)?;
    let request =
        format!("GET /_explorer/emulator.pem HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(failed)?;
    let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    if body.contains("BEGIN CERTIFICATE") {
        Ok(body.to_owned())
    } else {
        Err(format!("the server gave no certificate: {answer}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_ends_is_not_ready() {
        assert!(
            Server::start(Path::new("true")).is_err_and(|message| message.contains("did not become ready"))
        );
        assert!(
            Server::start(Path::new("no-such-program"))
                .is_err_and(|message| message.contains("cannot start"))
        );
    }
}
