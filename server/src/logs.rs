//! Structured logs on standard error. Requests are not logged, and no log line carries a key, token or document.
//!
//! The project's own crates follow this rule and name the event of every line. Libraries do neither: at their most
//! verbose level the storage engine prints keys of records, and others may print headers. So whatever filter is set,
//! libraries log warnings and errors only.

use crate::failure::Failure;
use crate::settings::{LogFormat, Settings};
use tracing::{Level, Metadata};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, fmt};

/// Crates that follow the rule.
const OUR_CRATES: [&str; 11] = [
    "perihelion",
    "nosql",
    "control",
    "engine",
    "exec",
    "partition",
    "script",
    "kv",
    "plan",
    "model",
    "value",
];

/// Starts logging for the whole process.
pub(crate) fn start(settings: &Settings) -> Result<(), Failure> {
    let invalid = |cause: String| Failure::Configuration(format!("setting \"log\" is invalid: {cause}"));
    check_levels(&settings.log).map_err(invalid)?;
    let filter = EnvFilter::try_new(&settings.log).map_err(|error| invalid(error.to_string()))?;
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
    *metadata.level() <= Level::WARN || OUR_CRATES.contains(&name)
}

/// Refuses a word that is no level. The filter would take it for the name of a crate and log nothing else.
fn check_levels(log: &str) -> Result<(), String> {
    let is_level = |word: &str| word.eq_ignore_ascii_case("off") || word.parse::<Level>().is_ok();
    let words = log.split(',').map(str::trim).filter(|word| !word.is_empty());
    match words.into_iter().find(|word| !word.contains(['=', '[']) && !is_level(word)) {
        Some(word) => Err(format!("\"{word}\" is no level; use off, error, warn, info, debug or trace")),
        None => Ok(()),
    }
}

#[test]
fn a_bare_word_must_be_a_level() {
    for log in ["info", "DEBUG", "kv=debug,info", "off", "warn, engine=trace", ""] {
        assert_eq!(check_levels(log), Ok(()), "{log}");
    }
    for log in ["verbose", "info,kv", "inof"] {
        assert!(check_levels(log).is_err(), "{log}");
    }
}
