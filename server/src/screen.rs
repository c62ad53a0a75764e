//! The start screen: everything a user needs to connect, and a ready line for programs that wait.

use crate::keys::KeySource;
use crate::listener::Bound;
use crate::mode::Mode;
use crate::settings::Settings;
use std::io::Write;

/// The key of every emulator. It is public, so it is only accepted on loopback.
pub(crate) const EMULATOR_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// Content of the start screen.
pub(crate) struct Screen<'a> {
    pub(crate) mode: Mode,
    pub(crate) settings: &'a Settings,
    pub(crate) bound: &'a Bound,
    pub(crate) keys: &'a KeySource,
    /// Whether the account keys were created at this start.
    pub(crate) made_keys: bool,
}

impl Screen<'_> {
    /// Prints the addresses and how to connect; ends with the ready line.
    pub(crate) fn show(&self, out: &mut impl Write) -> std::io::Result<()> {
        let nosql = self.bound.main;
        writeln!(out, "Perihelion {} ({})", env!("CARGO_PKG_VERSION"), self.mode.words())?;
        writeln!(out)?;
        match self.mode {
            Mode::Dev => self.show_dev(out)?,
            Mode::Serve => self.show_serve(out)?,
        }
        writeln!(out)?;
        writeln!(out, "ready nosql=https://{nosql}")?;
        out.flush()
    }

    fn show_dev(&self, out: &mut impl Write) -> std::io::Result<()> {
        let nosql = self.bound.main;
        let data = if self.settings.memory {
            "in memory, gone when the server stops".to_owned()
        } else {
            self.settings.data.display().to_string()
        };
        writeln!(out, "  NoSQL API    https://{nosql}/  (plain http on the same port)")?;
        for other in self.bound.others() {
            writeln!(out, "               https://{other}/  (the emulator's second port)")?;
        }
        if let Some(taken) = self.bound.taken {
            writeln!(out, "               {taken}, the emulator's second port, is used by another program")?;
        }
        writeln!(out, "  connection   AccountEndpoint=https://{nosql}/;AccountKey={EMULATOR_KEY};")?;
        writeln!(out, "  key          the well-known emulator key, for this machine only")?;
        writeln!(out, "  certificate  https://{nosql}/_explorer/emulator.pem")?;
        writeln!(out, "  health       http://{nosql}/health/ready    metrics http://{nosql}/metrics")?;
        writeln!(out, "  data         {data}")?;
        writeln!(out)?;
        writeln!(
            out,
            "  next: point an Azure Cosmos DB SDK in gateway mode at the connection string above. Ctrl-C stops."
        )
    }

    /// Keys are never printed here: this screen ends up in logs.
    fn show_serve(&self, out: &mut impl Write) -> std::io::Result<()> {
        let nosql = self.bound.main;
        let data = self.settings.data.display();
        match &self.settings.public_endpoint {
            Some(url) => writeln!(out, "  NoSQL API    {url} (bound to {nosql})")?,
            None if nosql.ip().is_unspecified() => {
                writeln!(out, "  NoSQL API    port {} of all addresses of this machine", nosql.port())?;
                writeln!(
                    out,
                    "               name the one that clients use: --public-endpoint https://NAME:{}",
                    nosql.port()
                )?;
            }
            None => writeln!(out, "  NoSQL API    https://{nosql}/")?,
        }
        if let Some(file) = &self.keys.file {
            let made = if self.made_keys { ", made now" } else { "" };
            writeln!(out, "  keys         {}{made}", file.path().display())?;
            writeln!(out, "               show one with: perihelion keys show primary --data \"{data}\"")?;
        }
        let certificate = match &self.settings.certificate {
            Some(files) => files.certificate.display().to_string(),
            None => format!("from the local authority {data}/tls/authority.pem, which clients must trust"),
        };
        writeln!(out, "  certificate  {certificate}")?;
        writeln!(out, "  health       https://{nosql}/health/ready    metrics on this machine: /metrics")?;
        writeln!(out, "  data         {data}")
    }
}
