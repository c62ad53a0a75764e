//! JSON text: reader, writer and errors.

pub(crate) mod read;
mod scan;
pub(crate) mod write;

use thiserror::Error;

/// Appends a text as JSON, in quotes.
pub fn write_json_string(text: &str, out: &mut Vec<u8>) {
    write::write_string(text, out);
}

/// Text that is not acceptable JSON.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{kind} at byte {offset}")]
pub struct JsonError {
    /// What is wrong.
    pub kind: JsonErrorKind,
    /// Byte offset from the start of the text.
    pub offset: usize,
}

/// What can be wrong with JSON text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JsonErrorKind {
    /// Nothing but white space.
    #[error("empty JSON text")]
    Empty,
    /// The text ends before the value does.
    #[error("unexpected end of JSON text")]
    UnexpectedEnd,
    /// Another token is expected here.
    #[error("expected {expected}")]
    Unexpected {
        /// The expected token.
        expected: &'static str,
    },
    /// Text after the value.
    #[error("unexpected text after the JSON value")]
    TrailingText,
    /// Bytes that are not UTF-8.
    #[error("invalid UTF-8")]
    InvalidUtf8,
    /// A control character inside a string that is not escaped.
    #[error("unescaped control character in a string")]
    ControlCharacter,
    /// A backslash followed by none of the characters JSON allows.
    #[error("invalid escape sequence")]
    InvalidEscape,
    /// Half of a surrogate pair; it has no UTF-8 form.
    #[error("lone surrogate in a string")]
    LoneSurrogate,
    /// A number that is not valid JSON.
    #[error("invalid number")]
    InvalidNumber,
    /// A number above the largest double.
    #[error("number out of range")]
    NumberOutOfRange,
    /// More levels of arrays and objects than [`JSON_DEPTH_MAX`](crate::JSON_DEPTH_MAX).
    #[error("nesting of {depth} levels")]
    TooDeep {
        /// The first level that is too deep.
        depth: usize,
    },
    /// A document must be an object.
    #[error("expected a JSON object")]
    NotAnObject,
    /// A name that an object has twice, where that is refused.
    #[error("repeated name")]
    RepeatedName,
    /// A byte of binary JSON that starts no value, or not one that is allowed here.
    #[error("unknown marker {marker:#04x}")]
    UnknownMarker {
        /// The byte.
        marker: u8,
    },
    /// Lengths or counts of binary JSON that contradict their content.
    #[error("length or count that does not fit")]
    WrongLength,
    /// A reference of binary JSON to something other than a string.
    #[error("reference to no string")]
    WrongReference,
    /// A reference to a string table that only the service knows.
    #[error("string of an unknown table")]
    ForeignString,
    /// More than 4 GiB in encoded form.
    #[error("JSON value too large")]
    TooLarge,
}
