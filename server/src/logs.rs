//! Structured logs on standard error. Requests are not logged, and no log line carries a key, token or document.

use crate::failure::Failure;
use crate::settings::{LogFormat, Settings};
use tracing_subscriber::EnvFilter;

/// Begins logging for the whole program.
pub(crate) fn start(settings: &Settings) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(&settings.log)
        .map_err(|error| Failure::Configuration(format!("setting \"log\" has an invalid filter: {error}")))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let result = match settings.log_format {
        LogFormat::Text => builder.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    result.map_err(|error| Failure::Failed(format!("cannot start logging: {error}")))
}
