//! What can be wrong with a batch.

use thiserror::Error;

/// A refused batch. `part` is the index of an operation, from 0.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MultipartFault {
    /// More bytes than a batch may have.
    #[error("a batch of {bytes} bytes; at most {bytes_max} are allowed")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// A content type that is not multipart or has no usable boundary.
    #[error("the content type is not multipart/mixed with a boundary")]
    ContentType,
    /// No part at all, or a changeset without requests.
    #[error("the batch has no operation")]
    Empty,
    /// A body whose closing boundary is missing.
    #[error("the closing boundary is missing")]
    Unterminated,
    /// Something after the end of a boundary, before the next line.
    #[error("malformed boundary at byte {offset}")]
    MalformedBoundary {
        /// The place in the body.
        offset: usize,
    },
    /// More than one changeset, a changeset beside a request, or several requests outside of a changeset.
    #[error("a batch holds one changeset or one query")]
    SeveralParts,
    /// More operations than a batch may have.
    #[error("a batch of more than {count_max} operations")]
    TooManyOperations {
        /// The limit.
        count_max: usize,
    },
    /// A changeset inside a changeset.
    #[error("operation {part}: a changeset cannot contain another one")]
    NestedChangeset {
        /// The operation.
        part: usize,
    },
    /// A part that is not a request.
    #[error("operation {part}: the content type is not application/http")]
    PartContentType {
        /// The operation.
        part: usize,
    },
    /// A line that is not a header.
    #[error("operation {part}: malformed header")]
    MalformedHeader {
        /// The operation.
        part: usize,
    },
    /// More headers than a request may have.
    #[error("operation {part}: too many headers")]
    TooManyHeaders {
        /// The operation.
        part: usize,
    },
    /// A first line that is not that of a request.
    #[error("operation {part}: malformed request line")]
    MalformedRequestLine {
        /// The operation.
        part: usize,
    },
    /// A query inside a changeset.
    #[error("operation {part}: a changeset cannot contain a query")]
    QueryInChangeset {
        /// The operation.
        part: usize,
    },
    /// A write outside of a changeset.
    #[error("a write must be inside a changeset")]
    WriteOutsideChangeset,
}
