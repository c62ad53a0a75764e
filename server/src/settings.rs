//! Settings: one table, four sources, and the origin of each value.
//!
//! A flag overrides the environment, which overrides the file, which overrides the default. Every setting has one name:
//! `--partition-max-bytes` on the command line, `PERIHELION_PARTITION_MAX_BYTES` in the environment,
//! `partition-max-bytes` in the TOML file.

mod memory;
mod parse;
mod typed;

pub(crate) use memory::MemoryShares;
pub(crate) use typed::{AuthFailures, CertificateFiles, Endpoint, LogFormat, PlainHttp, Settings, Timeouts};

use crate::failure::Failure;
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// One setting as documented for users.
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    pub(crate) value_name: &'static str,
    pub(crate) default: &'static str,
    pub(crate) help: &'static str,
}

/// A switch that needs no value on the command line.
const SWITCH: &str = "BOOL";

/// All settings, in the order in which help and `config show` list them.
pub(crate) const DEFINITIONS: &[Definition] = &[
    define("data", "DIR", "perihelion-data", "Folder of the embedded store"),
    define("memory", SWITCH, "false", "Keep everything in memory; nothing is written to disk"),
    define("nosql", "ADDR", "127.0.0.1:8081", "Address of the NoSQL API; port 0 picks a free one"),
    define("table", "ADDR", "127.0.0.1:8902", "Address of the Table API, or `off`; port 0 picks a free one"),
    define("table-account", "NAME", "localhost", "Account name of the Table API"),
    define("mongo", "ADDR", "127.0.0.1:10255", "Address of the MongoDB API, or `off` (not implemented yet)"),
    define("gremlin", "ADDR", "127.0.0.1:8901", "Address of the Gremlin API, or `off` (not implemented yet)"),
    define(
        "tls-certificate",
        "FILE",
        "",
        "Certificate chain (PEM) instead of one from the local authority; reloaded when it changes",
    ),
    define("tls-key", "FILE", "", "Private key (PEM) of the certificate"),
    define(
        "identity",
        "FILE",
        "",
        "Identity provider whose tokens are accepted, and role assignments (TOML); reloaded when it changes",
    ),
    define(
        "plain-http",
        "loopback|always",
        "loopback",
        "From where requests without TLS are accepted; `always` is for a server behind a TLS proxy",
    ),
    define(
        "compatibility",
        "strict|relaxed",
        "strict",
        "`strict`: refuse what the service refuses, and leave merging of ranges to clients as it does; `relaxed`: \
         answer what can be answered. A request chooses with the header x-perihelion-compatibility",
    ),
    define("region", "NAME", "Local", "Name of the account's region, as clients see it"),
    define(
        "consistency",
        "LEVEL",
        "Session",
        "Default consistency level of the account: Strong, BoundedStaleness, Session, ConsistentPrefix or Eventual; \
         clients may ask for weaker ones. Reads are always strong",
    ),
    define("public-endpoint", "URL", "", "Endpoint published to clients instead of the address they used"),
    define(
        "durability",
        "sync|buffered",
        "sync",
        "`sync`: acknowledge writes after fsync; `buffered`: after the journal write",
    ),
    define(
        "throughput",
        "measure|enforce",
        "measure",
        "`measure`: count request units; `enforce`: refuse requests beyond the provisioned throughput",
    ),
    define(
        "partition-max-throughput",
        "RU/S",
        "10000",
        "Request units per second of one physical partition: a container with more gets several",
    ),
    define(
        "partition-create-throughput",
        "RU/S",
        "6000",
        "Request units per second of each partition of a new container that gets several",
    ),
    define(
        "partition-max-bytes",
        "BYTES",
        "53687091200",
        "Bytes of documents above which a physical partition is split",
    ),
    define(
        "logical-partition-max-bytes",
        "BYTES",
        "21474836480",
        "Bytes of the documents of one partition key above which writes that add to them are refused",
    ),
    define(
        "memory-bytes",
        "BYTES|auto",
        "auto",
        "Memory for caches, memtables, index segments, queries, responses and request bodies together; `auto` is a \
         quarter of the memory available to this process. The program itself takes about 50 MB in addition",
    ),
    define(
        "cache-bytes",
        "BYTES|auto",
        "auto",
        "Memory for documents and blocks read from the store; `auto` is five sixteenths of memory-bytes",
    ),
    define(
        "free-space-reserve-bytes",
        "BYTES",
        "",
        "Disk space that writes must leave free; default chosen by the store",
    ),
    define("cors", "ORIGIN,…|*", "", "Allowed CORS origins of the NoSQL API, or `*` for any"),
    define(
        "query-timeout-ms",
        "MS",
        "30000",
        "Timeout of a query page that cannot be returned in part; other pages end after five seconds",
    ),
    define(
        "query-threads",
        "COUNT|auto",
        "auto",
        "Threads for long queries, separate from those that serve requests; `auto` is four per core",
    ),
    define(
        "script-workers",
        "COUNT|auto|off",
        "auto",
        "Processes that execute stored procedures, triggers and user-defined functions at the same time; `auto` is one less than there are cores, at least one; `off` executes none",
    ),
    define(script::TIME_SETTING, "MS", "5000", "Time of one script, its operations included"),
    define(script::MEMORY_SETTING, "BYTES", "67108864", "Memory of one script"),
    define("connections-max", "COUNT", "10000", "Most concurrent connections"),
    define(
        "handshake-timeout-ms",
        "MS",
        "10000",
        "Timeout for the first byte of a new connection, and for the TLS handshake",
    ),
    define("header-timeout-ms", "MS", "10000", "Timeout for the headers of a request"),
    define("body-timeout-ms", "MS", "30000", "Timeout for the body of a request"),
    define("idle-timeout-ms", "MS", "120000", "Idle timeout of a keep-alive connection"),
    define(
        "auth-failures-max",
        "COUNT",
        "",
        "Failed credentials of an address per minute before responses to them are delayed, or `off`; \
         default 20 for serve, off for dev",
    ),
    define(
        "log",
        "LEVEL",
        "info",
        "Log level (`off`, `error`, `warn`, `info`, `debug`, `trace`) or filter by crate, e.g. `kv=debug,info`; \
         libraries log warnings and errors only",
    ),
    define("log-format", "text|json", "text", "Format of log lines on standard error"),
];

const fn define(
    name: &'static str,
    value_name: &'static str,
    default: &'static str,
    help: &'static str,
) -> Definition {
    Definition { name, value_name, default, help }
}

impl Definition {
    fn is_switch(&self) -> bool {
        self.value_name == SWITCH
    }

    fn environment_name(&self) -> String {
        environment_name(self.name)
    }
}

fn environment_name(setting: &str) -> String {
    format!("{VARIABLE_PREFIX}{}", setting.to_ascii_uppercase().replace('-', "_"))
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag,
    Environment(String),
    File(String),
    Default,
}

/// The effective value if the text does not state it: the memory size of `auto`.
pub(crate) fn resolved(raw: &RawSettings, name: &str) -> Result<Option<String>, Failure> {
    match (name, raw.get(name)) {
        ("memory-bytes", Some((value, _))) if value == "auto" => {
            Ok(Some(typed::memory_total(raw)?.to_string()))
        }
        ("table", Some((_, Origin::Default)))
            if raw.get("nosql").is_some_and(|(address, _)| address.ends_with(":0")) =>
        {
            Ok(Some("a free port, as for nosql".to_owned()))
        }
        _ => Ok(None),
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Flag => formatter.write_str("flag"),
            Origin::Environment(name) => write!(formatter, "environment {name}"),
            Origin::File(path) => write!(formatter, "file {path}"),
            Origin::Default => formatter.write_str("default"),
        }
    }
}

/// The settings as text, before validation.
pub(crate) type RawSettings = BTreeMap<&'static str, (String, Origin)>;

/// The settings that tell commands which data folder they work on, and which server they ask.
pub(crate) const OF_DATA: &[&str] = &["data"];
pub(crate) const OF_SERVER: &[&str] = &["data", "nosql"];

/// Adds all settings and `--config` to a command.
pub(crate) fn with_arguments(command: Command) -> Command {
    with_some_arguments(command, |_| true)
}

/// The same for a command that needs only these settings. Others may be in the settings file and the environment.
pub(crate) fn with_arguments_of(command: Command, names: &[&str]) -> Command {
    with_some_arguments(command, |name| names.contains(&name))
}

fn with_some_arguments(command: Command, is_wanted: impl Fn(&str) -> bool) -> Command {
    let file = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .help("Settings file (TOML) [env: PERIHELION_CONFIG]");
    let wanted = DEFINITIONS.iter().filter(|definition| is_wanted(definition.name));
    wanted.fold(command.arg(file), |command, definition| {
        let default = if definition.default.is_empty() { "none" } else { definition.default };
        let help =
            format!("{} [default: {default}] [env: {}]", definition.help, definition.environment_name());
        let arg = Arg::new(definition.name).long(definition.name).help(help);
        command.arg(if definition.is_switch() {
            arg.action(ArgAction::SetTrue)
        } else {
            arg.value_name(definition.value_name)
        })
    })
}

const VARIABLE_PREFIX: &str = "PERIHELION_";
const CONFIG_VARIABLE: &str = "PERIHELION_CONFIG";

/// An environment variable that looks like a setting and is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnknownVariable {
    pub(crate) name: String,
    /// The nearest name of a setting.
    pub(crate) nearest: String,
}

/// The unknown ones of these variables. Kubernetes adds the address of a service called `perihelion`, as
/// `PERIHELION_SERVICE_…` and `PERIHELION_PORT…`, to every container; these are not reported.
pub(crate) fn unknown_variables(names: impl Iterator<Item = String>) -> Vec<UnknownVariable> {
    let is_known = |name: &str| {
        name == CONFIG_VARIABLE || DEFINITIONS.iter().any(|definition| definition.environment_name() == name)
    };
    let mut unknown: Vec<UnknownVariable> = names
        .filter_map(|name| {
            let setting = name.strip_prefix(VARIABLE_PREFIX)?;
            if is_known(&name) || setting.starts_with("SERVICE_") || setting.starts_with("PORT") {
                return None;
            }
            let setting = setting.to_ascii_lowercase().replace('_', "-");
            Some(UnknownVariable { nearest: environment_name(parse::nearest(&setting)), name })
        })
        .collect();
    unknown.sort_by(|one, other| one.name.cmp(&other.name));
    unknown
}

/// Reads all sources.
pub(crate) fn gather(
    matches: &ArgMatches,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<RawSettings, Failure> {
    let path = matches.get_one::<String>("config").cloned().or_else(|| environment(CONFIG_VARIABLE));
    let file =
        path.map(|path| parse::read_file(Path::new(&path)).map(|values| (path, values))).transpose()?;
    let mut settings = RawSettings::new();
    for definition in DEFINITIONS {
        // A command does not have every setting as a flag.
        let flag = if definition.is_switch() {
            let flag = matches.try_get_one::<bool>(definition.name).ok().flatten();
            flag.filter(|is_set| **is_set).map(|_| "true".to_owned())
        } else {
            matches.try_get_one::<String>(definition.name).ok().flatten().cloned()
        };
        let variable = definition.environment_name();
        let value = if let Some(value) = flag {
            (value, Origin::Flag)
        } else if let Some(value) = environment(&variable) {
            (value, Origin::Environment(variable))
        } else if let Some((path, value)) =
            file.as_ref().and_then(|(path, values)| Some((path, values.get(definition.name)?)))
        {
            (value.clone(), Origin::File(path.clone()))
        } else {
            (definition.default.to_owned(), Origin::Default)
        };
        settings.insert(definition.name, value);
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(arguments: &[&str], environment: &[(&str, &str)]) -> RawSettings {
        let command = with_arguments(Command::new("perihelion"));
        let matches = command.try_get_matches_from(std::iter::once(&"perihelion").chain(arguments)).unwrap();
        let lookup = |name: &str| {
            environment.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        gather(&matches, lookup).unwrap()
    }

    #[test]
    fn a_flag_beats_the_environment_beats_the_default() {
        let raw = gathered(&["--data", "x"], &[("PERIHELION_DATA", "y"), ("PERIHELION_LOG", "debug")]);
        assert_eq!(raw["data"], ("x".to_owned(), Origin::Flag));
        assert_eq!(raw["log"], ("debug".to_owned(), Origin::Environment("PERIHELION_LOG".to_owned())));
        assert_eq!(raw["nosql"], ("127.0.0.1:8081".to_owned(), Origin::Default));
    }

    #[test]
    fn variables_that_are_no_settings_are_found() {
        let names = [
            "PERIHELION_TRHOUGHPUT",
            "PERIHELION_THROUGHPUT",
            "PERIHELION_CONFIG",
            "PERIHELION_PORT_8081_TCP",
            "PERIHELION_SERVICE_HOST",
            "PATH",
        ];
        let unknown = UnknownVariable {
            name: "PERIHELION_TRHOUGHPUT".to_owned(),
            nearest: "PERIHELION_THROUGHPUT".to_owned(),
        };
        assert_eq!(unknown_variables(names.iter().map(ToString::to_string)), [unknown]);
    }

    #[test]
    fn the_defaults_make_valid_settings() {
        Settings::from_raw(&gathered(&[], &[])).unwrap();
    }
}
