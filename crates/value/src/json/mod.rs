//! JSON text in and out, and what can be wrong with it.

pub(crate) mod read;
mod scan;
pub(crate) mod write;

use thiserror::Error;

/// Text that is no acceptable JSON.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{kind} at byte {offset}")]
pub struct JsonError {
    /// What is wrong.
    pub kind: JsonErrorKind,
    /// Where, in bytes from the start of the text.
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
    /// Something else should stand here.
    #[error("expected {expected}")]
    Unexpected {
        /// What should stand here.
        expected: &'static str,
    },
    /// More text behind the value.
    #[error("unexpected text after the JSON value")]
    TrailingText,
    /// Bytes that are no UTF-8.
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
    /// A number not written as JSON wants it.
    #[error("invalid number")]
    InvalidNumber,
    /// A number beyond the largest double.
    #[error("number out of range")]
    NumberOutOfRange,
    /// More levels of arrays and objects than [`JSON_DEPTH_MAX`](crate::JSON_DEPTH_MAX).
    #[error("nesting of {depth} levels")]
    TooDeep {
        /// The level that was one too many.
        depth: usize,
    },
    /// A document must be an object.
    #[error("expected a JSON object")]
    NotAnObject,
    /// A byte of binary JSON that begins no value, or not one that may stand here.
    #[error("unknown marker {marker:#04x}")]
    UnknownMarker {
        /// The byte.
        marker: u8,
    },
    /// Lengths or counts of binary JSON that contradict what they describe.
    #[error("length or count that does not fit")]
    WrongLength,
    /// A reference of binary JSON to something that is no string.
    #[error("reference to no string")]
    WrongReference,
    /// A string of a table that is known inside the service only.
    #[error("string of an unknown table")]
    ForeignString,
    /// More than 4 GiB in encoded form.
    #[error("JSON value too large")]
    TooLarge,
}
