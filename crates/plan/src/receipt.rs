//! What came of a wanted change or read.

use model::{DocumentNumber, Etag, Fault, Lsn, Ticks, Work};
use value::Document;

/// A document as it is stored, with what the server knows of it.
#[derive(Clone, Debug)]
pub struct StoredDocument {
    /// Its number, fixed at creation.
    pub number: DocumentNumber,
    /// The version.
    pub etag: Etag,
    /// Where in the partition's history this version was written.
    pub lsn: Lsn,
    /// When it was written.
    pub time: Ticks,
    /// The document, without system properties.
    pub document: Document,
}

impl StoredDocument {
    /// When it was written, in seconds since 1970: `_ts`.
    pub fn ts(&self) -> u64 {
        self.time.seconds()
    }
}

/// What one step did.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A new document is there.
    Created(StoredDocument),
    /// A document has a new version.
    Replaced(StoredDocument),
    /// A document is gone.
    Deleted,
    /// A document was read.
    Read(StoredDocument),
    /// The client has this version already.
    NotModified(Etag),
    /// There was nothing to do.
    Nothing,
}

/// A transaction was refused; nothing of it happened.
#[derive(Clone, Debug, PartialEq)]
pub struct StepFault {
    /// The step that was refused, from 0.
    pub index: usize,
    /// Why.
    pub fault: Fault,
    /// What finding out took.
    pub work: Work,
}
