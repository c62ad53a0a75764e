//! The table of tested clients in COMPAT.md: written by the runs of their suites, and compared with them.
//!
//! A suite prints one line with its client. A row is found by the folder of its suite, so that a new version replaces
//! the old one and a run of some suites leaves the rows of the others alone.

use crate::tally::Tally;
use std::path::Path;

const FILE: &str = "COMPAT.md";
const BEGIN: &str = "<!-- clients: written by `cargo xtask test --update` -->";
const END: &str = "<!-- clients: end -->";
const HEAD: &str =
    "| language | client | version | protocol | tested by | checks passed |\n|---|---|---|---|---|---|\n";

/// What to do with the table after a suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// A row that differs from the run is a failure.
    Compare,
    /// Rows of the suites that ran are written.
    Update,
}

/// A client that passed all checks of its suite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    language: String,
    client: String,
    version: String,
    /// Version of the protocol that the client speaks, `x-ms-version`.
    protocol: String,
    /// Folder of the suite in the repository.
    folder: String,
    passed: u64,
}

impl Row {
    /// The client in a suite's output, in a line like `client {"client": "azure-cosmos", "version": "4.7.0", …}`.
    pub(crate) fn from_output(output: &str, folder: &str, tally: Tally) -> Result<Row, String> {
        let line = output.lines().find_map(|line| line.trim().strip_prefix("client {"));
        let line = line.ok_or_else(|| format!("{folder} does not name its client"))?;
        let fields: serde_json::Value = serde_json::from_str(&format!("{{{line}"))
            .map_err(|error| format!("{folder} names its client in a line that is not JSON: {error}"))?;
        let field = |name: &str| {
            let text = fields.get(name).and_then(serde_json::Value::as_str).filter(|text| !text.is_empty());
            text.map(str::to_owned).ok_or_else(|| format!("{folder} names its client without its {name}"))
        };
        Ok(Row {
            language: field("language")?,
            client: field("client")?,
            version: field("version")?,
            protocol: field("protocol")?,
            folder: folder.to_owned(),
            passed: tally.passed,
        })
    }

    fn parse(line: &str) -> Option<Row> {
        let cells: Vec<&str> =
            line.trim().strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
        let [language, client, version, protocol, suite, passed] = cells[..] else { return None };
        let folder = suite.strip_prefix('[')?.split_once("](")?.0;
        Some(Row {
            language: language.to_owned(),
            client: client.trim_matches('`').to_owned(),
            version: version.to_owned(),
            protocol: protocol.to_owned(),
            folder: folder.to_owned(),
            passed: passed.parse().ok()?,
        })
    }

    /// Rows of a language stand together, and the versions of a client in their order.
    fn place(&self) -> (&str, &str, Vec<u64>) {
        let numbers = self.version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok());
        (&self.language, &self.client, numbers.collect())
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Row { language, client, version, protocol, folder, passed } = self;
        write!(
            formatter,
            "| {language} | `{client}` | {version} | {protocol} | [{folder}]({folder}) | {passed} |"
        )
    }
}

/// Compares the table with what ran, or updates it.
pub(crate) fn settle(root: &Path, ran: &[Row], table: Table) -> Result<(), String> {
    if ran.is_empty() {
        return Ok(());
    }
    let path = root.join(FILE);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("cannot read {FILE}: {error}"))?;
    match table {
        Table::Compare => compare(&text, ran),
        Table::Update => std::fs::write(&path, updated(&text, ran)?)
            .map_err(|error| format!("cannot write {FILE}: {error}")),
    }
}

fn compare(text: &str, ran: &[Row]) -> Result<(), String> {
    let rows = rows(text)?;
    let missing = ran.iter().filter(|row| !rows.contains(row)).map(|row| format!("\n{row}"));
    match missing.collect::<String>() {
        missing if missing.is_empty() => Ok(()),
        missing => Err(format!("the table in {FILE} lacks these rows; --update writes them:{missing}")),
    }
}

/// The text with the rows of what ran.
fn updated(text: &str, ran: &[Row]) -> Result<String, String> {
    let mut rows = rows(text)?;
    rows.retain(|row| !ran.iter().any(|newer| newer.folder == row.folder));
    rows.extend_from_slice(ran);
    rows.sort_by(|left, right| left.place().cmp(&right.place()));
    let (before, _, after) = parts(text)?;
    let rows: String = rows.iter().map(|row| format!("{row}\n")).collect();
    Ok(format!("{before}{BEGIN}\n{HEAD}{rows}{END}{after}"))
}

fn rows(text: &str) -> Result<Vec<Row>, String> {
    let (_, table, _) = parts(text)?;
    // Before the rows there are the names of the columns and a rule.
    let lines = table.lines().map(str::trim).filter(|line| !line.is_empty()).skip(2);
    lines
        .map(|line| Row::parse(line).ok_or_else(|| format!("{FILE} has a row that no run wrote: {line}")))
        .collect()
}

/// The text before, between and after the markers.
fn parts(text: &str) -> Result<(&str, &str, &str), String> {
    let marked = text.split_once(BEGIN).and_then(|(before, rest)| {
        let (table, after) = rest.split_once(END)?;
        Some((before, table, after))
    });
    marked.ok_or_else(|| format!("{FILE} lacks the markers of the table of clients"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(language: &str, version: &str, folder: &str, passed: u64) -> Row {
        let line = format!(
            "client {{\"client\": \"azure-cosmos\", \"version\": \"{version}\", \"language\": \"{language}\", \
             \"protocol\": \"2018-12-31\"}}\n"
        );
        Row::from_output(&format!("== suite\n{line}ok read\n"), folder, Tally { passed, failed: 0 }).unwrap()
    }

    fn empty() -> String {
        format!("# Head\n\n{BEGIN}\n{HEAD}{END}\n\nAfter.\n")
    }

    #[test]
    fn rows_are_written_and_found_again() {
        let ran = [
            row("Python", "4.10.0", "c/new", 3),
            row("Java", "4.0.1", "c/java", 4),
            row("Python", "4.7.0", "c/old", 5),
        ];
        let text = updated(&empty(), &ran).unwrap();
        let places: Vec<_> = rows(&text).unwrap().into_iter().map(|row| row.folder).collect();
        assert_eq!(places, ["c/java", "c/old", "c/new"]);
        assert!(text.contains("| Python | `azure-cosmos` | 4.7.0 | 2018-12-31 | [c/old](c/old) | 5 |"));
        assert!(text.starts_with("# Head\n\n<!--") && text.ends_with("-->\n\nAfter.\n"));
        assert_eq!(compare(&text, &ran), Ok(()));
        assert_eq!(updated(&text, &ran), Ok(text));
    }

    #[test]
    fn a_new_version_replaces_the_row_of_its_folder_only() {
        let text =
            updated(&empty(), &[row("Python", "4.7.0", "c/a", 5), row("Go", "1.0.0", "c/b", 6)]).unwrap();
        let text = updated(&text, &[row("Python", "4.8.0", "c/a", 5)]).unwrap();
        assert_eq!(rows(&text), Ok(vec![row("Go", "1.0.0", "c/b", 6), row("Python", "4.8.0", "c/a", 5)]));
    }

    #[test]
    fn a_table_that_differs_from_the_run_is_refused() {
        let text = updated(&empty(), &[row("Python", "4.7.0", "c/a", 5)]).unwrap();
        assert_eq!(compare(&text, &[row("Python", "4.7.0", "c/a", 5)]), Ok(()));
        for other in [
            row("Python", "4.7.0", "c/a", 6),
            row("Python", "4.7.1", "c/a", 5),
            row("Python", "4.7.0", "c/b", 5),
        ] {
            assert!(compare(&text, std::slice::from_ref(&other)).unwrap_err().contains(&other.to_string()));
        }
    }

    #[test]
    fn bad_lines_and_tables_are_named() {
        let none = Tally { passed: 1, failed: 0 };
        assert!(Row::from_output("1 passed, 0 failed\n", "c/a", none).unwrap_err().contains("c/a"));
        assert!(
            Row::from_output("client {\"client\": \"x\"}\n", "c/a", none).unwrap_err().contains("language")
        );
        assert!(Row::from_output("client {x}\n", "c/a", none).unwrap_err().contains("JSON"));
        assert!(rows("no table\n").is_err());
        assert!(
            rows(&empty().replace(END, &format!("| by | hand |\n{END}"))).unwrap_err().contains("by | hand")
        );
    }
}
