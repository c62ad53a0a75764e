//! `perihelion partitions`: lists and splits the partitions of a container of a running server, by its control API.

use super::local_server::{self, LocalRequest};
use crate::failure::Failure;
use crate::output::{self, say};
use crate::settings::{self, Settings};
use clap::{Arg, ArgMatches, Command};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value as Json;

/// The commands without the settings.
pub(super) fn command() -> Command {
    let named = |command: Command| {
        let database = Arg::new("database").long("database").required(true).help("The database");
        let container = Arg::new("container").long("container").required(true).help("The container");
        command.arg(database).arg(container)
    };
    let list = named(Command::new("list"))
        .about("List the partitions of a container with their ranges, sizes, load and hottest partition keys")
        .after_help("Example:\n  perihelion partitions list --database db --container people\n\nThe server is that of --nosql, its key that of --data.")
        .arg(
            Arg::new("json")
                .long("json")
                .action(clap::ArgAction::SetTrue)
                .help("Print the answer of the server as JSON"),
        );
    let id = Arg::new("partition").long("partition").required(true).help("The id of the partition");
    let split = named(Command::new("split"))
        .about("Split a partition in two; clients do not notice it")
        .after_help("Example:\n  perihelion partitions split --database db --container people --partition 0\n\nThe server is that of --nosql, its key that of --data.")
        .arg(id);
    Command::new("partitions")
        .about("List and split the partitions of a container of the running server")
        .subcommand_required(true)
        .subcommands([list, split].map(|command| settings::with_arguments_of(command, settings::OF_SERVER)))
}

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
            let text = if as_json { format!("{answer:#}\n") } else { table(&answer) };
            output::write(format_args!("{text}"));
        }
        _ => {
            let answer = ask(&settings, "POST", &format!("{path}/{}/split", given("partition")))?;
            let children = answer["children"].as_array().map(Vec::as_slice).unwrap_or_default();
            let children: Vec<&str> = children.iter().filter_map(Json::as_str).collect();
            say!("split into {}", children.join(" and "));
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
    let headers = vec![("Authorization", format!("Bearer {}", local_server::key(settings)?))];
    let request = LocalRequest { verb, path, headers, body: &[] };
    let answer = local_server::send(settings, &request)?;
    if answer.status != 200 {
        return Err(answer.refusal());
    }
    let foreign = |_| Failure::Failed("the answer is not that of a perihelion server".to_owned());
    serde_json::from_slice(&answer.body).map_err(foreign)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
