//! Structured logs on standard error. Requests are not logged, and no log line carries a key, token or document.
//!
//! The project's own crates follow this rule. Libraries do not: at their most verbose level the storage engine prints
//! keys of records, and others may print headers. So whatever filter is set, libraries are logged from `info` upwards
//! only.

use crate::failure::Failure;
use crate::settings::{LogFormat, Settings};
use tracing::{Level, Metadata};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, fmt};

/// Crates that follow the rule.
const OUR_CRATES: [&str; 8] = ["perihelion", "nosql", "engine", "partition", "kv", "plan", "model", "value"];

/// Starts logging for the whole process.
pub(crate) fn start(settings: &Settings) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(&settings.log)
        .map_err(|error| Failure::Configuration(format!("setting \"log\" has an invalid filter: {error}")))?;
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines = match settings.log_format {
        LogFormat::Text => lines.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    let filtered = lines.with_filter(filter_fn(is_free_of_data));
    let result = tracing_subscriber::registry().with(filter).with(filtered).try_init();
    result.map_err(|error| Failure::Failed(format!("cannot start logging: {error}")))
}

/// Whether a log line is known to contain no data and no credentials.
fn is_free_of_data(metadata: &Metadata<'_>) -> bool {
    let name = metadata.target().split("::").next().unwrap_or_default();
    *metadata.level() <= Level::INFO || OUR_CRATES.contains(&name)
}
