//! The start screen: everything a user needs to connect, and a ready line for programs that wait.

use crate::keys::{KeySource, STORAGE_EMULATOR_ACCOUNT};
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
    /// The sockets of the Table API, unless it is off.
    pub(crate) table: Option<&'a Bound>,
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
        write!(out, "ready nosql=https://{nosql}")?;
        if let Some(table) = self.table {
            write!(out, " table=https://{}", table.main)?;
        }
        writeln!(out)?;
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
        if let Some(table) = self.table {
            self.show_table(table, out)?;
        }
        writeln!(out, "  key          the well-known emulator key, for this machine only")?;
        if self.keys.opens_keyed_data() {
            writeln!(
                out,
                "               it opens data that have keys of their own, made by `perihelion serve`"
            )?;
        }
        writeln!(out, "  certificate  http://{nosql}/_explorer/emulator.pem")?;
        writeln!(out, "  health       http://{nosql}/health/ready    metrics http://{nosql}/metrics")?;
        writeln!(out, "  data         {data}")?;
        writeln!(out)?;
        writeln!(
            out,
            "  next: point an Azure Cosmos DB SDK in gateway mode at the connection string above. Ctrl-C stops."
        )
    }

    /// How to connect to the Table API in development.
    fn show_table(&self, table: &Bound, out: &mut impl Write) -> std::io::Result<()> {
        let address = table.main;
        writeln!(out, "  Table API    https://{address}/  (plain http on the same port)")?;
        for other in table.others() {
            writeln!(
                out,
                "               http://{other}/{STORAGE_EMULATOR_ACCOUNT}  (UseDevelopmentStorage=true)"
            )?;
        }
        if let Some(taken) = table.taken {
            writeln!(out, "               {taken}, the storage emulator's port, is used by another program")?;
        }
        let account = &self.settings.table_account;
        writeln!(
            out,
            "  connection   DefaultEndpointsProtocol=http;AccountName={account};AccountKey={EMULATOR_KEY};\
             TableEndpoint=http://{address}/;"
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
        if let Some(table) = self.table {
            let account = &self.settings.table_account;
            writeln!(out, "  Table API    https://{}/  (account {account})", table.main)?;
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
