//! Words of one protocol that have no place in the crates below the APIs.
//!
//! A word is listed for the crates that are free of it. An exception is a file that means something else by it, or a
//! place that is still to be cleaned; it says which.

use std::path::{Path, PathBuf};

/// A word and where it must not occur.
struct Word {
    text: &'static str,
    kind: Kind,
    /// Crates below `crates/` whose sources are free of it.
    crates: &'static [&'static str],
    /// Beginnings of paths that may have it.
    except: &'static [&'static str],
}

/// What counts as an occurrence.
enum Kind {
    /// The text anywhere.
    Anywhere,
    /// The text at the beginning of a word, in small letters.
    Beginning,
    /// The text as a whole word.
    Whole,
    /// The text with four digits behind it.
    Code,
}

/// All crates below the APIs.
const ALL: &[&str] = &["model", "plan", "eval", "sql", "exec", "partition", "engine", "kv", "script"];

/// The words. Add one when a crate is free of it; shorten the exceptions when one of them is mended.
const WORDS: [Word; 11] = [
    Word {
        text: "serde_json",
        kind: Kind::Anywhere,
        // The unit tests of partition draw documents as JSON.
        crates: &["model", "plan", "eval", "sql", "exec", "engine", "kv", "script"],
        // The claims of a bearer token are JSON.
        except: &["crates/engine/src/authorisation/bearer/"],
    },
    Word { text: "x-ms-", kind: Kind::Anywhere, crates: ALL, except: &[] },
    Word { text: "percent_encod", kind: Kind::Anywhere, crates: ALL, except: &[] },
    Word { text: "SC", kind: Kind::Code, crates: ALL, except: &[] },
    Word {
        text: "header",
        kind: Kind::Beginning,
        // Rows of partition have headers of their own.
        crates: &["model", "plan", "eval", "sql", "exec", "engine", "kv", "script"],
        // A bearer token has a header.
        except: &["crates/engine/src/authorisation/bearer/"],
    },
    Word { text: "GET", kind: Kind::Whole, crates: ALL, except: &[] },
    Word { text: "POST", kind: Kind::Whole, crates: ALL, except: &[] },
    Word { text: "PUT", kind: Kind::Whole, crates: ALL, except: &[] },
    Word { text: "PATCH", kind: Kind::Whole, crates: ALL, except: &[] },
    Word { text: "dbs/", kind: Kind::Anywhere, crates: ALL, except: &[] },
    Word { text: "colls/", kind: Kind::Anywhere, crates: ALL, except: &[] },
];

/// The listed words that occur where they must not.
pub(super) fn findings(root: &Path, files: &[PathBuf]) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    for file in files {
        let inside = file.strip_prefix(root).unwrap_or(file);
        let Some(name) = inside.to_str().filter(|name| name.ends_with(".rs")) else { continue };
        let Some((folder, _)) = name.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/")) else {
            continue;
        };
        let text = std::fs::read_to_string(file).map_err(|error| format!("cannot read {name}: {error}"))?;
        let is_banned = |word: &&Word| {
            word.crates.contains(&folder) && !word.except.iter().any(|except| name.starts_with(except))
        };
        for word in WORDS.iter().filter(is_banned) {
            let lines = text.lines().enumerate().filter(|(_, line)| word.occurs_in(line));
            findings.extend(lines.map(|(index, _)| {
                format!("{name}: line {}: `{}` belongs to the API of a protocol", index + 1, word.text)
            }));
        }
    }
    Ok(findings)
}

impl Word {
    fn occurs_in(&self, line: &str) -> bool {
        let is_word = |character: char| character.is_alphanumeric() || character == '_';
        line.match_indices(self.text).any(|(at, text)| {
            let begins = !line[..at].ends_with(is_word);
            let rest = &line[at + text.len()..];
            match self.kind {
                Kind::Anywhere => true,
                Kind::Beginning => begins,
                Kind::Whole => begins && !rest.starts_with(is_word),
                Kind::Code => begins && rest.bytes().take_while(u8::is_ascii_digit).count() == 4,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn occurs(text: &'static str, kind: Kind, line: &str) -> bool {
        Word { text, kind, crates: ALL, except: &[] }.occurs_in(line)
    }

    #[test]
    fn each_kind_has_both_sides() {
        assert!(occurs("x-ms-", Kind::Anywhere, "the x-ms-date"));
        assert!(
            occurs("header", Kind::Beginning, "two headers")
                && !occurs("header", Kind::Beginning, "subheader")
        );
        assert!(occurs("GET", Kind::Whole, "a GET.") && !occurs("GET", Kind::Whole, "BUDGET, GETS, GET_X"));
        assert!(occurs("SC", Kind::Code, "`SC1001`"));
        assert!(!occurs("SC", Kind::Code, "SCHEMA SC100 SC10011 ASC1001"));
    }
}
