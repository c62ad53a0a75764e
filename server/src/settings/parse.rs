//! Reads the settings file: flat TOML, known names only.

use super::DEFINITIONS;
use crate::failure::Failure;
use std::collections::BTreeMap;
use std::path::Path;

/// The values of the file as text.
pub(super) fn read_file(path: &Path) -> Result<BTreeMap<String, String>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::Configuration(format!("cannot read settings file \"{}\": {error}", path.display()))
    })?;
    parse(&text)
        .map_err(|reason| Failure::Configuration(format!("settings file \"{}\": {reason}", path.display())))
}

fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
    let table: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut values = BTreeMap::new();
    for (name, value) in table {
        if !DEFINITIONS.iter().any(|definition| definition.name == name) {
            return Err(format!("unknown setting \"{name}\"; did you mean \"{}\"?", nearest(&name)));
        }
        let value = match value {
            toml::Value::String(text) => text,
            toml::Value::Integer(number) => number.to_string(),
            toml::Value::Boolean(flag) => flag.to_string(),
            toml::Value::Float(_)
            | toml::Value::Datetime(_)
            | toml::Value::Array(_)
            | toml::Value::Table(_) => {
                return Err(format!("setting \"{name}\" must be a string, a whole number or a boolean"));
            }
        };
        values.insert(name, value);
    }
    Ok(values)
}

/// The known name with the smallest edit distance.
pub(super) fn nearest(name: &str) -> &'static str {
    let distance = |definition: &&super::Definition| edit_distance(name, definition.name);
    DEFINITIONS.iter().min_by_key(distance).map_or("", |definition| definition.name)
}

fn edit_distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, character) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, candidate) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(character != *candidate);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_read_and_others_get_a_hint() {
        let values = parse("data = \"x\"\npartition-max-throughput = 5000\nmemory = true\n").unwrap();
        assert_eq!(values["partition-max-throughput"], "5000");
        assert_eq!(values["memory"], "true");
        let error = parse("durabilty = \"sync\"").unwrap_err();
        assert!(error.contains("did you mean \"durability\""), "{error}");
        assert!(parse("data = [1]").is_err() && parse("= 1").is_err());
    }
}
