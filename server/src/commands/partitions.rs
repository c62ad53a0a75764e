//! `perihelion partitions`: lists and splits the partitions of a container of a running server.
//!
//! Asks the control API of the server on this machine, at the address of the setting `nosql`, with a key of the data
//! folder or, if it has none, with the well-known key.

use crate::failure::Failure;
use crate::keys::KeyFile;
use crate::screen::EMULATOR_KEY;
use crate::settings::{self, Endpoint, Settings};
use clap::{Arg, ArgMatches, Command};
use engine::KeyName;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value as Json;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// How long an answer may take; a split waits for the writes in progress.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// Limit of the size of an answer.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// The commands without the settings.
pub(super) fn command() -> Command {
    let named = |command: Command| {
        let database = Arg::new("database").long("database").required(true).help("The database");
        let container = Arg::new("container").long("container").required(true).help("The container");
        command.arg(database).arg(container)
    };
    let list = named(Command::new("list"))
        .about("List the partitions of a container with their ranges, sizes, load and hottest partition keys")
        .after_help("Example:\n  perihelion partitions list --database db --container people")
        .arg(
            Arg::new("json")
                .long("json")
                .action(clap::ArgAction::SetTrue)
                .help("Print the answer of the server as JSON"),
        );
    let id = Arg::new("partition").long("partition").required(true).help("The id of the partition");
    let split = named(Command::new("split"))
        .about("Split a partition in two; clients do not notice it")
        .after_help("Example:\n  perihelion partitions split --database db --container people --partition 0")
        .arg(id);
    Command::new("partitions")
        .about("List and split the partitions of a container of the running server")
        .subcommand_required(true)
        .subcommands([list, split].map(settings::with_arguments))
}

#[allow(clippy::print_stdout)] // what the commands are for
pub(super) fn run(matches: &ArgMatches, environment: impl Fn(&str) -> Option<String>) -> Result<(), Failure> {
    let Some((command, matches)) = matches.subcommand() else {
        return Err(Failure::Failed("partitions needs a subcommand".to_owned()));
    };
    let settings = Settings::from_raw(&settings::gather(matches, environment)?)?;
    let given = |name: &str| {
        let text = matches.get_one::<String>(name).map_or("", String::as_str);
        utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
    };
    let path = format!("/_control/dbs/{}/colls/{}/partitions", given("database"), given("container"));
    match command {
        "list" => {
            let answer = ask(&settings, "GET", &path)?;
            let as_json = matches.get_flag("json");
            print!("{}", if as_json { format!("{answer:#}\n") } else { table(&answer) });
        }
        _ => {
            let answer = ask(&settings, "POST", &format!("{path}/{}/split", given("partition")))?;
            let children = answer["children"].as_array().map(Vec::as_slice).unwrap_or_default();
            let children: Vec<&str> = children.iter().filter_map(Json::as_str).collect();
            println!("split into {}", children.join(" and "));
        }
    }
    Ok(())
}

/// One line for each partition. The lower bound of its range is shortened.
fn table(answer: &Json) -> String {
    let partitions = answer["partitions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut rows = vec![
        ["ID", "STATE", "FROM", "DOCUMENTS", "BYTES", "RU/S", "THROTTLED", "PARENTS", "HOTTEST KEYS"]
            .map(str::to_owned),
    ];
    for partition in partitions {
        let text = |name: &str| match &partition[name] {
            Json::String(text) => text.clone(),
            other @ (Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_)) => {
                other.to_string()
            }
        };
        let parents = partition["parents"].as_array().map(Vec::as_slice).unwrap_or_default();
        let parents: Vec<&str> = parents.iter().filter_map(Json::as_str).collect();
        let hottest = partition["hottestKeys"].as_array().map(Vec::as_slice).unwrap_or_default();
        let hottest = hottest.iter().take(3).map(|hot| {
            format!("{} {:.0} %", hot["partitionKey"], hot["share"].as_f64().unwrap_or_default() * 100.0)
        });
        let from = text("minInclusive");
        rows.push([
            text("id"),
            text("state"),
            if from.is_empty() { "-".to_owned() } else { from.chars().take(12).collect() },
            text("documents"),
            text("documentBytes"),
            text("requestUnitsLastSecond"),
            text("throttledRequests"),
            if parents.is_empty() { "-".to_owned() } else { parents.join(",") },
            hottest.collect::<Vec<_>>().join(", "),
        ]);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let line = |row: &[String; 9]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// The answer of the server to a request without a body.
fn ask(settings: &Settings, verb: &str, path: &str) -> Result<Json, Failure> {
    let address = address(settings)?;
    let key = key(settings)?;
    let unreachable = |cause: std::io::Error| {
        let hint = "is it running, and is --nosql (or the settings file) the same as for the server?";
        Failure::Failed(format!("cannot reach a server at {address}: {cause}\n  {hint}"))
    };
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5)).map_err(unreachable)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).map_err(unreachable)?;
    let request = format!(
        "{verb} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\nContent-Length: 0\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).map_err(unreachable)?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).map_err(unreachable)?;
    read_answer(&answer)
}

/// The body of an answer, or its message if it is a refusal.
fn read_answer(answer: &[u8]) -> Result<Json, Failure> {
    let foreign = || Failure::Failed("the answer is not that of a perihelion server".to_owned());
    let head_end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").ok_or_else(foreign)?;
    let head = std::str::from_utf8(&answer[..head_end]).map_err(|_| foreign())?;
    let status: u16 = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(foreign)?;
    let body: Json = serde_json::from_slice(&answer[head_end + 4..]).map_err(|_| foreign())?;
    match status {
        200 => Ok(body),
        _ => Err(Failure::Failed(body["message"].as_str().unwrap_or("the server refused").to_owned())),
    }
}

/// Where the server on this machine listens.
fn address(settings: &Settings) -> Result<SocketAddr, Failure> {
    let Endpoint::At(mut address) = settings.nosql else {
        return Err(Failure::Configuration(
            "the setting \"nosql\" is off: there is no server to ask".to_owned(),
        ));
    };
    if address.port() == 0 {
        let text = "the setting \"nosql\" has port 0: name the port that the server has printed";
        return Err(Failure::Configuration(text.to_owned()));
    }
    if !address.ip().is_unspecified() && !address.ip().is_loopback() {
        // The key is sent without TLS.
        let text = format!(
            "the server listens on {address} only, which is not loopback: send the request with another program, see \
             docs/control.md"
        );
        return Err(Failure::Configuration(text));
    }
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() {
            Ipv4Addr::LOCALHOST.into()
        } else {
            Ipv6Addr::LOCALHOST.into()
        });
    }
    Ok(address)
}

fn key(settings: &Settings) -> Result<String, Failure> {
    let keys = KeyFile::of(&settings.data).read()?.unwrap_or_default();
    let primary = keys.into_iter().find(|key| key.name == KeyName::Primary);
    Ok(primary.map_or_else(|| EMULATOR_KEY.to_owned(), |key| key.text.reveal().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_are_bodies_or_refusals() {
        let read = |text: &str| read_answer(text.as_bytes());
        assert_eq!(read("HTTP/1.1 200 OK\r\nx: y\r\n\r\n{\"a\":1}").unwrap(), json!({ "a": 1 }));
        let refused = read("HTTP/1.1 404 Not Found\r\n\r\n{\"message\":\"absent\"}").unwrap_err();
        assert_eq!(refused.to_string(), "absent");
        for text in ["", "SSH-2.0\r\n", "HTTP/1.1 200 OK\r\n\r\n<html>"] {
            assert!(read(text).unwrap_err().to_string().contains("perihelion"), "{text}");
        }
    }

    #[test]
    fn a_partition_is_one_line() {
        let answer = json!({ "partitions": [{
            "id": "1", "state": "serving", "minInclusive": "", "documents": 3, "documentBytes": 900, "requestUnitsLastSecond": 1.5,
            "throttledRequests": 0, "parents": ["0"], "hottestKeys": [{ "partitionKey": ["a"], "share": 0.75 }],
        }] });
        let table = table(&answer);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(
            lines[1].split_whitespace().collect::<Vec<_>>().join(" "),
            "1 serving - 3 900 1.5 0 0 [\"a\"] 75 %"
        );
    }
}
