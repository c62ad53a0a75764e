//! Work: what a partition did for a request, before it is priced.
//!
//! Partitions and queries report work. The engine prices it once and records the cost.

use crate::Charge;

/// The work of one step of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Not charged: housekeeping, or a request that did not reach the data.
    Free,
    /// Looked up a document and returned none: it is absent or unchanged, or the step was refused.
    Lookup,
    /// Read a document.
    Read {
        /// Its encoded size.
        bytes: usize,
    },
    /// Stored a new document.
    Create {
        /// Its encoded size.
        bytes: usize,
        /// Its indexed values.
        terms: u32,
    },
    /// Stored a new version of a document.
    Replace {
        /// Encoded size of the previous version.
        old_bytes: usize,
        /// Encoded size of the new version.
        new_bytes: usize,
        /// Indexed values of both versions.
        terms: u32,
    },
    /// Deleted a document.
    Delete {
        /// Its encoded size.
        bytes: usize,
        /// Its indexed values.
        terms: u32,
    },
    /// Evaluated a page of a query.
    Query {
        /// Documents that were read.
        documents: u64,
        /// Sum of their encoded sizes.
        bytes: u64,
        /// Values that were looked up or read in the index.
        terms: u64,
    },
}

impl Work {
    /// The price.
    pub fn price(self) -> Charge {
        match self {
            Work::Free => Charge::NONE,
            Work::Lookup => Charge::MINIMUM,
            Work::Read { bytes } => Charge::read(bytes),
            Work::Create { bytes, terms } | Work::Delete { bytes, terms } => Charge::write(bytes, terms),
            Work::Replace { old_bytes, new_bytes, terms } => Charge::replace(old_bytes, new_bytes, terms),
            Work::Query { documents, bytes, terms } => Charge::query(documents, bytes, terms),
        }
    }
}
