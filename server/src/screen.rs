//! The first screen: everything a person needs to connect, and one line for programs that wait.

use crate::settings::Settings;
use std::io::Write;
use std::net::SocketAddr;

/// The key that every emulator has. Public by design, so it is only ever used on loopback.
pub(crate) const EMULATOR_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// Shows where the server is and how to reach it; ends with the ready line.
pub(crate) fn show(settings: &Settings, nosql: SocketAddr, out: &mut impl Write) -> std::io::Result<()> {
    let data = if settings.memory {
        "in memory, gone when the server stops".to_owned()
    } else {
        settings.data.display().to_string()
    };
    writeln!(out, "Perihelion {} (development mode)", env!("CARGO_PKG_VERSION"))?;
    writeln!(out)?;
    writeln!(out, "  NoSQL API    https://{nosql}/  (plain http on the same port)")?;
    writeln!(out, "  connection   AccountEndpoint=https://{nosql}/;AccountKey={EMULATOR_KEY};")?;
    writeln!(out, "  key          the well-known emulator key, for this machine only")?;
    writeln!(out, "  certificate  https://{nosql}/_explorer/emulator.pem")?;
    writeln!(out, "  health       http://{nosql}/health/ready    metrics http://{nosql}/metrics")?;
    writeln!(out, "  data         {data}")?;
    writeln!(out)?;
    writeln!(out, "  next: point an Azure Cosmos DB SDK at the connection string above. Ctrl-C stops.")?;
    writeln!(out)?;
    writeln!(out, "ready nosql=https://{nosql}")?;
    out.flush()
}
