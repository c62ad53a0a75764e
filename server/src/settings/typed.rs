//! Validated settings: each text is checked once and converted to its type.

use super::memory::{MEMORY_BYTES_MIN, MemoryShares, MemoryTotal};
use super::{Origin, RawSettings};
use crate::failure::Failure;
use engine::ThroughputMode;
use kv::Durability;
use nosql::{Compatibility, ConsistencyLevel, CorsPolicy};
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Where an API listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Off,
    At(SocketAddr),
}

/// The certificate files of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CertificateFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// From where requests without TLS are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlainHttp {
    FromLoopback,
    Always,
}

/// Timeouts of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// From the connection to its first byte, and from there to the end of the TLS handshake.
    pub(crate) handshake: Duration,
    /// From the first byte of a request to the end of its headers.
    pub(crate) header: Duration,
    pub(crate) body: Duration,
    /// From the last answer to the first byte of the next request.
    pub(crate) idle: Duration,
}

/// The setting for failed credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthFailures {
    ByMode,
    Off,
    Max(u32),
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// All settings, validated.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) data: PathBuf,
    pub(crate) memory: bool,
    pub(crate) nosql: Endpoint,
    pub(crate) table: Endpoint,
    /// Whether the address of the Table API is not the default.
    pub(crate) is_table_given: bool,
    pub(crate) table_account: String,
    pub(crate) certificate: Option<CertificateFiles>,
    pub(crate) identity: Option<PathBuf>,
    pub(crate) plain_http: PlainHttp,
    pub(crate) compatibility: Compatibility,
    pub(crate) region: String,
    pub(crate) consistency: ConsistencyLevel,
    pub(crate) public_endpoint: Option<String>,
    pub(crate) durability: Durability,
    pub(crate) throughput: ThroughputMode,
    pub(crate) partition_max_throughput: u64,
    pub(crate) partition_create_throughput: u64,
    pub(crate) partition_max_bytes: u64,
    pub(crate) logical_partition_max_bytes: u64,
    pub(crate) memory_total: MemoryTotal,
    pub(crate) shares: MemoryShares,
    pub(crate) free_space_reserve_bytes: Option<u64>,
    pub(crate) cors: Option<CorsPolicy>,
    pub(crate) query_timeout_ms: u64,
    pub(crate) query_threads: usize,
    /// Limits of scripts; `None` if none is executed.
    pub(crate) scripts: Option<script::Limits>,
    pub(crate) connections_max: usize,
    pub(crate) timeouts: Timeouts,
    pub(crate) auth_failures: AuthFailures,
    pub(crate) log: String,
    pub(crate) log_format: LogFormat,
    /// Settings that were given and have no effect yet.
    pub(crate) without_effect: Vec<&'static str>,
}

/// Settings of APIs and limits that are not implemented yet.
const NOT_BUILT: [&str; 2] = ["mongo", "gremlin"];

/// Those of [`NOT_BUILT`] whose value is not the default.
fn without_effect(raw: &RawSettings) -> Vec<&'static str> {
    let is_given = |name: &&str| raw.get(*name).is_some_and(|(_, origin)| *origin != Origin::Default);
    NOT_BUILT.into_iter().filter(is_given).collect()
}

impl Settings {
    pub(crate) fn from_raw(raw: &RawSettings) -> Result<Settings, Failure> {
        // APIs and limits that are not implemented yet: their values must still be valid.
        for name in NOT_BUILT {
            parsed::<Endpoint>(raw, name)?;
        }
        let memory_total = memory_total(raw)?;
        let cache_bytes = cache_bytes(raw)?;
        if cache_bytes.is_some_and(|bytes| bytes > memory_total.bytes()) {
            let total = memory_total.bytes();
            return Err(bad(raw, "cache-bytes", &format!("it is part of memory-bytes, which is {total}")));
        }
        Ok(Settings {
            data: match text(raw, "data") {
                "" => return Err(bad(raw, "data", "it must not be empty")),
                data => PathBuf::from(data),
            },
            memory: parsed(raw, "memory")?,
            nosql: parsed(raw, "nosql")?,
            table: parsed(raw, "table")?,
            is_table_given: raw.get("table").is_some_and(|(_, origin)| *origin != Origin::Default),
            table_account: table_account(raw)?,
            certificate: certificate(raw)?,
            identity: optional(raw, "identity").map(PathBuf::from),
            plain_http: one_of(
                raw,
                "plain-http",
                &[("loopback", PlainHttp::FromLoopback), ("always", PlainHttp::Always)],
            )?,
            compatibility: parsed(raw, "compatibility")?,
            region: match text(raw, "region").trim() {
                "" => return Err(bad(raw, "region", "it must not be empty")),
                region => region.to_owned(),
            },
            consistency: parsed(raw, "consistency")?,
            public_endpoint: public_endpoint(raw)?,
            durability: one_of(
                raw,
                "durability",
                &[("sync", Durability::Sync), ("buffered", Durability::Buffered)],
            )?,
            throughput: one_of(
                raw,
                "throughput",
                &[("measure", ThroughputMode::Measure), ("enforce", ThroughputMode::Enforce)],
            )?,
            partition_max_throughput: positive(raw, "partition-max-throughput")?,
            partition_create_throughput: positive(raw, "partition-create-throughput")?,
            partition_max_bytes: positive(raw, "partition-max-bytes")?,
            logical_partition_max_bytes: positive(raw, "logical-partition-max-bytes")?,
            shares: memory_total.shares(cache_bytes),
            memory_total,
            free_space_reserve_bytes: match optional(raw, "free-space-reserve-bytes") {
                Some(_) => Some(whole(raw, "free-space-reserve-bytes")?),
                None => None,
            },
            cors: optional(raw, "cors")
                .map(|text| CorsPolicy::parse(&text).map_err(|reason| bad(raw, "cors", &reason)))
                .transpose()?,
            query_timeout_ms: positive(raw, "query-timeout-ms")?,
            query_threads: query_threads(raw)?,
            scripts: scripts(raw)?,
            connections_max: usize::try_from(positive(raw, "connections-max")?).unwrap_or(usize::MAX),
            timeouts: Timeouts {
                handshake: duration(raw, "handshake-timeout-ms")?,
                header: duration(raw, "header-timeout-ms")?,
                body: duration(raw, "body-timeout-ms")?,
                idle: duration(raw, "idle-timeout-ms")?,
            },
            auth_failures: match text(raw, "auth-failures-max") {
                "" => AuthFailures::ByMode,
                "off" => AuthFailures::Off,
                _ => AuthFailures::Max(parsed(raw, "auth-failures-max")?),
            },
            log: text(raw, "log").to_owned(),
            log_format: one_of(raw, "log-format", &[("text", LogFormat::Text), ("json", LogFormat::Json)])?,
            without_effect: without_effect(raw),
        })
    }
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Endpoint, String> {
        if text.eq_ignore_ascii_case("off") {
            return Ok(Endpoint::Off);
        }
        let local = text.replace("localhost:", "127.0.0.1:");
        local
            .parse()
            .map(Endpoint::At)
            .map_err(|_| "it must be an address like 127.0.0.1:8081, or off".to_owned())
    }
}

fn certificate(raw: &RawSettings) -> Result<Option<CertificateFiles>, Failure> {
    match (optional(raw, "tls-certificate"), optional(raw, "tls-key")) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => {
            Ok(Some(CertificateFiles { certificate: certificate.into(), key: key.into() }))
        }
        (Some(_), None) => Err(bad(raw, "tls-key", "a certificate needs its private key")),
        (None, Some(_)) => Err(bad(raw, "tls-certificate", "a private key needs its certificate")),
    }
}

/// The account name of the Table API: what can stand in a path and in a host name.
fn table_account(raw: &RawSettings) -> Result<String, Failure> {
    let name = text(raw, "table-account");
    let is_valid = (3..=63).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    match is_valid {
        true => Ok(name.to_owned()),
        false => Err(bad(raw, "table-account", "it must be 3 to 63 small letters, digits and hyphens")),
    }
}

/// The endpoint published to clients: a URL with a host.
fn public_endpoint(raw: &RawSettings) -> Result<Option<String>, Failure> {
    let Some(url) = optional(raw, "public-endpoint") else { return Ok(None) };
    let is_url = url
        .parse::<http::Uri>()
        .is_ok_and(|parsed| matches!(parsed.scheme_str(), Some("http" | "https")) && parsed.host().is_some());
    match is_url {
        true => Ok(Some(url)),
        false => Err(bad(raw, "public-endpoint", "it must be a URL like https://db.example.org:8081")),
    }
}

fn duration(raw: &RawSettings, name: &str) -> Result<Duration, Failure> {
    positive(raw, name).map(Duration::from_millis)
}

fn text<'a>(raw: &'a RawSettings, name: &str) -> &'a str {
    raw.get(name).map_or("", |(value, _)| value)
}

fn optional(raw: &RawSettings, name: &str) -> Option<String> {
    Some(text(raw, name)).filter(|value| !value.is_empty()).map(str::to_owned)
}

fn parsed<T: FromStr<Err: std::fmt::Display>>(raw: &RawSettings, name: &str) -> Result<T, Failure> {
    text(raw, name).parse().map_err(|error: T::Err| bad(raw, name, &error.to_string()))
}

/// The memory for everything that grows with load.
pub(super) fn memory_total(raw: &RawSettings) -> Result<MemoryTotal, Failure> {
    match text(raw, "memory-bytes") {
        "auto" => Ok(MemoryTotal::auto()),
        _ => match whole(raw, "memory-bytes")? {
            bytes if bytes < MEMORY_BYTES_MIN => {
                Err(bad(raw, "memory-bytes", &format!("it must be at least {MEMORY_BYTES_MIN} (64 MiB)")))
            }
            bytes => Ok(MemoryTotal::Set(bytes)),
        },
    }
}

/// The size of the caches, if it is set separately.
fn cache_bytes(raw: &RawSettings) -> Result<Option<u64>, Failure> {
    match text(raw, "cache-bytes") {
        "auto" => Ok(None),
        _ => whole(raw, "cache-bytes").map(Some),
    }
}

/// Most threads for queries.
const QUERY_THREADS_MAX: u64 = 1024;

/// More threads than cores, so that other queries continue while one document takes long.
fn query_threads(raw: &RawSettings) -> Result<usize, Failure> {
    const PER_CORE: usize = 4;
    if text(raw, "query-threads") == "auto" {
        return Ok(PER_CORE * std::thread::available_parallelism().map_or(2, NonZero::get));
    }
    match positive(raw, "query-threads")? {
        threads @ 1..=QUERY_THREADS_MAX => Ok(usize::try_from(threads).unwrap_or(usize::MAX)),
        _ => Err(bad(raw, "query-threads", &format!("it must be at most {QUERY_THREADS_MAX}"))),
    }
}

/// Most processes for scripts.
const SCRIPT_WORKERS_MAX: u64 = 1024;
/// Least memory of a script in bytes: less does not hold the API that scripts use.
const SCRIPT_MEMORY_MIN: u64 = 4 << 20;
/// Most memory of a script in bytes.
const SCRIPT_MEMORY_MAX: u64 = 2 << 30;
/// Longest time of a script in milliseconds: its transaction keeps a state of its partition.
const SCRIPT_TIME_MS_MAX: u64 = 60_000;

fn scripts(raw: &RawSettings) -> Result<Option<script::Limits>, Failure> {
    let cores = std::thread::available_parallelism().map_or(2, NonZero::get);
    let mut limits = script::Limits::for_cores(cores);
    limits.time = match duration(raw, script::TIME_SETTING)? {
        time if time <= Duration::from_millis(SCRIPT_TIME_MS_MAX) => time,
        _ => return Err(bad(raw, script::TIME_SETTING, &format!("it must be at most {SCRIPT_TIME_MS_MAX}"))),
    };
    limits.memory_bytes = match whole(raw, script::MEMORY_SETTING)? {
        bytes @ SCRIPT_MEMORY_MIN..=SCRIPT_MEMORY_MAX => bytes,
        _ => {
            let reason = format!("it must be from {SCRIPT_MEMORY_MIN} to {SCRIPT_MEMORY_MAX}");
            return Err(bad(raw, script::MEMORY_SETTING, &reason));
        }
    };
    limits.busy_max = match text(raw, "script-workers") {
        "auto" => limits.busy_max,
        "off" => return Ok(None),
        _ => match positive(raw, "script-workers")? {
            workers @ 1..=SCRIPT_WORKERS_MAX => usize::try_from(workers).unwrap_or(usize::MAX),
            _ => return Err(bad(raw, "script-workers", &format!("it must be at most {SCRIPT_WORKERS_MAX}"))),
        },
    };
    Ok(Some(limits))
}

/// A number without a unit.
fn whole(raw: &RawSettings, name: &str) -> Result<u64, Failure> {
    let number = text(raw, name).parse();
    number.map_err(|_| bad(raw, name, "it must be a whole number without a unit"))
}

fn positive(raw: &RawSettings, name: &str) -> Result<u64, Failure> {
    match whole(raw, name)? {
        0 => Err(bad(raw, name, "it must be at least 1")),
        number => Ok(number),
    }
}

fn one_of<T: Clone>(raw: &RawSettings, name: &str, choices: &[(&str, T)]) -> Result<T, Failure> {
    let chosen = choices.iter().find(|(choice, _)| *choice == text(raw, name));
    chosen.map(|(_, meaning)| meaning.clone()).ok_or_else(|| {
        let names: Vec<_> = choices.iter().map(|(choice, _)| *choice).collect();
        bad(raw, name, &format!("it must be one of: {}", names.join(", ")))
    })
}

fn bad(raw: &RawSettings, name: &str, reason: &str) -> Failure {
    let origin = raw.get(name).map_or(String::new(), |(_, origin)| format!(" ({origin})"));
    Failure::Configuration(format!(
        "setting \"{name}\" has the invalid value \"{}\"{origin}: {reason}",
        text(raw, name)
    ))
}
