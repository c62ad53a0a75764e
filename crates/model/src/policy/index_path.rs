//! Paths of an indexing policy: `/*`, `/name/?`, `/"quoted name"/[]/*`.

use crate::{DecodeFault, Decoder, DefinitionPart, DefinitionRule, Encoder, PolicyPathError, RequestFault};
use std::fmt;

/// A path of an indexing policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyPath {
    /// The steps from the root.
    pub segments: Vec<IndexSegment>,
    /// What the path covers at its last step.
    pub end: IndexEnd,
    text: String,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum IndexSegment {
    /// To a property.
    Name(String),
    /// To any element of an array.
    Elements,
}

/// What a path ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexEnd {
    /// `/?`: the scalar at this path.
    Scalar,
    /// `/*`: everything below this path.
    Below,
}

impl PolicyPath {
    /// `/*`: the whole document.
    pub(super) fn root() -> PolicyPath {
        PolicyPath { segments: Vec::new(), end: IndexEnd::Below, text: "/*".to_owned() }
    }

    /// `/"_etag"/?`: the version of a document.
    pub(super) fn etag() -> PolicyPath {
        let segments = vec![IndexSegment::Name("_etag".to_owned())];
        PolicyPath { segments, end: IndexEnd::Scalar, text: "/\"_etag\"/?".to_owned() }
    }

    /// Parses a path. `/` is an old form of `/*`.
    pub fn parse(text: &str) -> Result<PolicyPath, RequestFault> {
        if text == "/" {
            return Ok(PolicyPath::root());
        }
        let bad = |error| {
            DefinitionPart::Indexing.violates(DefinitionRule::PolicyPath { path: text.to_owned(), error })
        };
        let mut segments = Vec::new();
        let mut rest = text;
        loop {
            rest = rest.strip_prefix('/').ok_or_else(|| bad(PolicyPathError::MissingSlash))?;
            let end = match rest {
                "*" => Some(IndexEnd::Below),
                "?" => Some(IndexEnd::Scalar),
                "" => return Err(bad(PolicyPathError::MissingEnd)),
                _ => None,
            };
            match end {
                Some(IndexEnd::Scalar) if segments.is_empty() => {
                    return Err(bad(PolicyPathError::ScalarRoot));
                }
                Some(end) => return Ok(PolicyPath { segments, end, text: text.to_owned() }),
                None => {}
            }
            let (segment, after) = segment(rest).map_err(bad)?;
            if after.is_empty() {
                return Err(bad(PolicyPathError::MissingEnd));
            }
            segments.push(segment);
            rest = after;
        }
    }

    /// Whether both paths are the same, independent of quoting.
    pub(crate) fn is_same_place(&self, other: &PolicyPath) -> bool {
        self.place() == other.place()
    }

    /// Identifies the path, independent of quoting.
    pub(super) fn place(&self) -> (&[IndexSegment], IndexEnd) {
        (&self.segments, self.end)
    }
}

impl fmt::Display for PolicyPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// The segment at the start of `text` and the rest.
fn segment(text: &str) -> Result<(IndexSegment, &str), PolicyPathError> {
    if let Some(quoted) = text.strip_prefix('"') {
        return quoted_name(quoted);
    }
    let (name, after) = text.split_at(text.find('/').unwrap_or(text.len()));
    match name {
        "" => Err(PolicyPathError::EmptyName),
        "[]" => Ok((IndexSegment::Elements, after)),
        "*" | "?" => Err(PolicyPathError::Wildcard),
        _ if name.chars().all(|character| character.is_alphanumeric() || character == '_') => {
            Ok((IndexSegment::Name(name.to_owned()), after))
        }
        _ => Err(PolicyPathError::Unquoted),
    }
}

fn quoted_name(text: &str) -> Result<(IndexSegment, &str), PolicyPathError> {
    let mut name = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' if name.is_empty() => return Err(PolicyPathError::EmptyName),
            '"' => return Ok((IndexSegment::Name(name), characters.as_str())),
            '\\' => name.push(characters.next().ok_or(PolicyPathError::UnclosedQuote)?),
            _ => name.push(character),
        }
    }
    Err(PolicyPathError::UnclosedQuote)
}

impl PolicyPath {
    /// Appends the path without its original text.
    pub fn encode_place(&self, out: &mut Encoder) {
        out.list(&self.segments, |out, segment| segment.encode(out));
        out.byte(self.end.tag());
    }

    pub(super) fn encode(&self, out: &mut Encoder) {
        self.encode_place(out);
        out.text(&self.text);
    }

    pub(super) fn decode(input: &mut Decoder<'_>) -> Result<PolicyPath, DecodeFault> {
        Ok(PolicyPath {
            segments: input.list("segments of an index path", IndexSegment::decode)?,
            end: input.choice("end of an index path", [IndexEnd::Scalar, IndexEnd::Below], IndexEnd::tag)?,
            text: input.text("text of an index path")?,
        })
    }
}

impl IndexSegment {
    fn encode(&self, out: &mut Encoder) {
        match self {
            IndexSegment::Name(name) => {
                out.byte(0);
                out.text(name);
            }
            IndexSegment::Elements => out.byte(1),
        }
    }

    fn decode(input: &mut Decoder<'_>) -> Result<IndexSegment, DecodeFault> {
        match input.byte("segment of an index path")? {
            0 => input.text("name in an index path").map(IndexSegment::Name),
            1 => Ok(IndexSegment::Elements),
            tag => Err(input.unknown("segment of an index path", tag)),
        }
    }
}

impl IndexEnd {
    fn tag(self) -> u8 {
        match self {
            IndexEnd::Scalar => 0,
            IndexEnd::Below => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_that_of_the_service() {
        let count = |text: &str| PolicyPath::parse(text).unwrap().segments.len();
        assert_eq!(count("/*"), 0);
        assert_eq!(count("/a/?"), 1);
        assert_eq!(count("/a/[]/b/*"), 3);
        assert_eq!(count("/\"a b/c\"/?"), 1);
        assert_eq!(PolicyPath::parse("/\"_etag\"/?"), Ok(PolicyPath::etag()));
        assert_eq!(PolicyPath::parse("/*"), Ok(PolicyPath::root()));
        assert_eq!(PolicyPath::parse("/"), Ok(PolicyPath::root()));
        assert_eq!(count("/größe/*"), 1);
        let quoted = PolicyPath::parse("/\"a\"/?").unwrap();
        assert!(
            quoted.is_same_place(&PolicyPath::parse("/a/?").unwrap()) && quoted.to_string() == "/\"a\"/?"
        );
        for text in [
            "",
            "*",
            "/?",
            "/a",
            "/a/",
            "a/?",
            "//?",
            "/a b/?",
            "/a-b/?",
            "/*/a/?",
            "/?/a/*",
            "/\"a/?",
            "/\"\"/?",
            "/\"a\"b/?",
            "/a/**",
            "/a?",
            "/[]",
            "/[0]/?",
        ] {
            assert!(PolicyPath::parse(text).is_err(), "{text}");
        }
    }
}
