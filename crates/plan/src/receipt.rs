//! The result of a change or read.

use model::{DocumentNumber, Etag, Fault, Lsn, Ticks, Work};
use value::Document;

/// A stored document with the metadata of its version.
#[derive(Clone, Debug)]
pub struct StoredDocument {
    /// Its number, fixed at creation.
    pub number: DocumentNumber,
    /// The version.
    pub etag: Etag,
    /// The LSN of this version.
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

/// The result of one step.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A new document was stored.
    Created(StoredDocument),
    /// A new version was stored.
    Replaced(StoredDocument),
    /// A document was deleted.
    Deleted,
    /// A document was read.
    Read(StoredDocument),
    /// The client already has this version.
    NotModified(Etag),
    /// Nothing had to be done.
    Nothing,
}

/// A refused transaction; nothing of it was applied.
#[derive(Clone, Debug, PartialEq)]
pub struct StepFault {
    /// Index of the refused step, from 0.
    pub index: usize,
    /// The reason.
    pub fault: Fault,
    /// The work done until the refusal.
    pub work: Work,
}
