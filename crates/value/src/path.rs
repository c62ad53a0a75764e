//! Property paths as used in definitions: `/address/city`, `/"department name"/x`.
//!
//! Wildcards of indexing policies and steps into arrays are not property paths; this file refuses them.

use std::fmt;

use thiserror::Error;

use crate::{ValueRef, format};

/// A path from the root of a document to a property, at least one name long.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PropertyPath {
    segments: Vec<PathSegment>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct PathSegment {
    name: Box<str>,
    /// Stored so that a lookup need not compute it.
    hash: u8,
}

impl PathSegment {
    fn new(name: &str) -> PathSegment {
        PathSegment { name: name.into(), hash: format::name_hash(name.as_bytes()) }
    }
}

/// Text that is not a property path.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{kind} at byte {offset} of a path")]
pub struct PathError {
    /// What is wrong.
    pub kind: PathErrorKind,
    /// Byte offset from the start of the path.
    pub offset: usize,
}

/// What can be wrong with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PathErrorKind {
    /// A path starts with a slash, and so does every name after a quoted one.
    #[error("missing '/'")]
    MissingSlash,
    /// An empty name between two slashes or at the end.
    #[error("empty name")]
    EmptyName,
    /// A quote that is not closed.
    #[error("unclosed quote")]
    UnclosedQuote,
    /// A quote inside a name that does not start with one.
    #[error("quote inside a name")]
    StrayQuote,
    /// A backslash or tilde that starts no known escape.
    #[error("invalid escape")]
    InvalidEscape,
    /// `*`, `?` or `[]`, which match many properties.
    #[error("wildcard")]
    Wildcard,
}

impl PropertyPath {
    /// Parses a path. A name in double or single quotes may contain anything; in it, `\"`, `\'`, `\\`, `\/`, `\b`,
    /// `\f`, `\n`, `\r` and `\t` are escapes as in JSON.
    pub fn parse(text: &str) -> Result<PropertyPath, PathError> {
        let mut segments = Vec::new();
        let mut rest = text;
        loop {
            let offset = text.len() - rest.len();
            let Some(after_slash) = rest.strip_prefix('/') else {
                return Err(PathError { kind: PathErrorKind::MissingSlash, offset });
            };
            let (name, after_name) = match after_slash.chars().next() {
                Some(quote @ ('"' | '\'')) => read_quoted(&after_slash[1..], quote, offset + 2)?,
                Some(_) | None => read_plain(after_slash, offset + 1)?,
            };
            segments.push(PathSegment::new(&name));
            rest = after_name;
            if rest.is_empty() {
                return Ok(PropertyPath { segments });
            }
        }
    }

    /// A path of unescaped names; `None` if there are none.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<PropertyPath> {
        let segments: Vec<PathSegment> = names.into_iter().map(PathSegment::new).collect();
        (!segments.is_empty()).then_some(PropertyPath { segments })
    }

    /// The names from the root down.
    pub fn segments(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        self.segments.iter().map(|segment| &*segment.name)
    }

    /// The value this path leads to from `root`.
    pub fn lookup<'a>(&self, root: ValueRef<'a>) -> Option<ValueRef<'a>> {
        self.segments.iter().try_fold(root, |value, segment| value.member_hashed(&segment.name, segment.hash))
    }
}

impl fmt::Display for PropertyPath {
    /// Text that parses to the same path; names are quoted only if necessary.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.segments()
            .try_for_each(|name| if is_plain(name) { write!(f, "/{name}") } else { write_quoted(name, f) })
    }
}

/// Reads a name without quotes up to the next slash.
fn read_plain(text: &str, offset: usize) -> Result<(String, &str), PathError> {
    let end = text.find('/').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let kind = match name {
        "" => PathErrorKind::EmptyName,
        "*" | "?" | "[]" => PathErrorKind::Wildcard,
        _ if name.contains('"') => PathErrorKind::StrayQuote,
        _ => return Ok((name.to_owned(), rest)),
    };
    Err(PathError { kind, offset })
}

/// Reads a name after its opening quote; `offset` is where it begins.
fn read_quoted(text: &str, quote: char, offset: usize) -> Result<(String, &str), PathError> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            _ if character == quote => return Ok((name, characters.as_str())),
            '\\' => match characters.next().and_then(|(_, escaped)| unescape(escaped)) {
                Some(character) => name.push(character),
                None => {
                    return Err(PathError { kind: PathErrorKind::InvalidEscape, offset: offset + index });
                }
            },
            _ => name.push(character),
        }
    }
    Err(PathError { kind: PathErrorKind::UnclosedQuote, offset: offset - 1 })
}

fn unescape(character: char) -> Option<char> {
    match character {
        '"' | '\'' | '\\' | '/' => Some(character),
        'b' => Some('\u{8}'),
        'f' => Some('\u{c}'),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        _ => None,
    }
}

fn is_plain(name: &str) -> bool {
    let special = |character: char| {
        matches!(character, '/' | '"' | '\\' | '*' | '?' | '[' | ']')
            || character.is_whitespace()
            || character.is_control()
    };
    !name.is_empty() && !name.starts_with('\'') && !name.contains(special)
}

fn write_quoted(name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("/\"")?;
    for character in name.chars() {
        if matches!(character, '"' | '\\') {
            f.write_str("\\")?;
        }
        write!(f, "{character}")?;
    }
    f.write_str("\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, names: &[&str], printed: &str) {
        let path = PropertyPath::parse(text).unwrap();
        assert_eq!(path.segments().collect::<Vec<_>>(), names);
        assert_eq!(path.to_string(), printed);
        assert_eq!(PropertyPath::parse(printed), Ok(path));
    }

    #[test]
    fn names_may_stand_in_single_quotes() {
        let path = PropertyPath::parse(r#"/'department name'/x"#).unwrap();
        assert_eq!(path, PropertyPath::parse(r#"/"department name"/x"#).unwrap());
        let odd = PropertyPath::from_names(["'quoted'"]).unwrap();
        assert_eq!(PropertyPath::parse(&odd.to_string()).unwrap(), odd);
        assert!(PropertyPath::parse("/'open").is_err());
    }

    #[test]
    fn names_with_and_without_quotes() {
        check("/a", &["a"], "/a");
        check("/a/b_1/é", &["a", "b_1", "é"], "/a/b_1/é");
        check(r#"/"department name"/x"#, &["department name", "x"], r#"/"department name"/x"#);
        check(r#"/"a"/"b/c\"\\d\t""#, &["a", "b/c\"\\d\t"], "/a/\"b/c\\\"\\\\d\t\"");
        check(r#"/"*"/"""#, &["*", ""], r#"/"*"/"""#);
    }

    #[test]
    fn errors_name_the_place() {
        let error = |text| PropertyPath::parse(text).map_err(|error| (error.kind, error.offset));
        assert_eq!(error(""), Err((PathErrorKind::MissingSlash, 0)));
        assert_eq!(error("a"), Err((PathErrorKind::MissingSlash, 0)));
        assert_eq!(error("/"), Err((PathErrorKind::EmptyName, 1)));
        assert_eq!(error("/a//b"), Err((PathErrorKind::EmptyName, 3)));
        assert_eq!(error("/a/"), Err((PathErrorKind::EmptyName, 3)));
        assert_eq!(error("/a/*"), Err((PathErrorKind::Wildcard, 3)));
        assert_eq!(error("/a/?"), Err((PathErrorKind::Wildcard, 3)));
        assert_eq!(error("/a/[]/b"), Err((PathErrorKind::Wildcard, 3)));
        assert_eq!(error("/a\"b"), Err((PathErrorKind::StrayQuote, 1)));
        assert_eq!(error("/a/\"b"), Err((PathErrorKind::UnclosedQuote, 3)));
        assert_eq!(error("/\"b\"c"), Err((PathErrorKind::MissingSlash, 4)));
        assert_eq!(error("/\"b\\x\""), Err((PathErrorKind::InvalidEscape, 3)));
    }
}
