//! `$batch`: many requests in one multipart body, and their answers.
//!
//! ```text
//! --batch_x
//! Content-Type: multipart/mixed; boundary=changeset_y
//!
//! --changeset_y
//! Content-Type: application/http
//! Content-Transfer-Encoding: binary
//!
//! PUT https://host/table(PartitionKey='p',RowKey='r') HTTP/1.1
//! Content-Type: application/json
//!
//! {"a":1}
//! --changeset_y--
//! --batch_x--
//! ```

mod fault;
mod parts;
mod read;
mod request;
mod write;

#[cfg(test)]
mod tests;

pub use fault::MultipartFault;
pub use read::{BATCH_BYTES_MAX, BATCH_OPERATIONS_MAX, Batch, read_batch};
pub use request::{HEADERS_MAX, PartRequest};
pub use write::{PartResponse, batch_content_type, write_changeset, write_retrieval};
