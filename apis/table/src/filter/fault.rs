//! What can be wrong with the text of a filter.

use crate::edm::EdmType;
use thiserror::Error;

/// A filter that is refused. Offsets are bytes from the start of the text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FilterFault {
    /// Longer than the longest filter.
    #[error("a filter of {bytes} bytes; at most {bytes_max} are allowed")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// Brackets and negations nested too deep.
    #[error("brackets nested deeper than {depth_max} levels at byte {offset}")]
    TooDeep {
        /// The first bracket or `not` that is too deep.
        offset: usize,
        /// The limit.
        depth_max: usize,
    },
    /// Another token is expected.
    #[error("expected {expected} at byte {offset}")]
    Unexpected {
        /// The place.
        offset: usize,
        /// The expected token.
        expected: &'static str,
    },
    /// A text without its closing quote.
    #[error("text without a closing quote at byte {offset}")]
    UnterminatedText {
        /// The opening quote.
        offset: usize,
    },
    /// A literal that is no value of its type.
    #[error("malformed {} at byte {offset}", edm_type.name())]
    MalformedLiteral {
        /// Its start.
        offset: usize,
        /// The type that its form announces.
        edm_type: EdmType,
    },
    /// A comparison of two properties, or of two literals.
    #[error("a comparison needs one property and one literal at byte {offset}")]
    NotPropertyAndLiteral {
        /// The start of the comparison.
        offset: usize,
    },
    /// The call of a function; the Table service has none.
    #[error("function \"{name}\" is not supported at byte {offset}")]
    Function {
        /// Its name.
        name: String,
        /// Its start.
        offset: usize,
    },
}
