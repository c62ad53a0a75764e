//! Results before they become part of a page.

use eval::Holding;
use model::PartitionOrdinal;
use plan::StoredDocument;
use std::time::Duration;
use value::{Decoded, Value, ValueRef, WALK_DEPTH_MAX};

use crate::access_path::PathKind;
use crate::task::OpenPart;

/// A row of a result.
#[derive(Clone, Debug)]
pub enum QueryRow {
    /// A document as it is stored; the API adds the system properties when it writes it.
    Document(StoredDocument),
    /// A computed value.
    Value(Value),
}

/// Approximate bytes of a number whose digits are not counted.
const NUMBER_BYTES: usize = 8;
/// Bytes of a stored document in addition to its content.
const DOCUMENT_BYTES: usize = 128;

impl QueryRow {
    /// Approximate bytes of its text.
    pub(crate) fn size(&self) -> usize {
        match self {
            QueryRow::Document(stored) => stored.document.bytes().len(),
            QueryRow::Value(value) => value_size(value),
        }
    }

    /// Approximate bytes that it holds, or a fault if it is too large.
    pub(crate) fn weight(&self) -> Result<usize, eval::EvalFault> {
        match self {
            QueryRow::Document(stored) => Ok(stored.document.bytes().len() + DOCUMENT_BYTES),
            QueryRow::Value(value) => eval::weigh_inside(value.as_ref()),
        }
    }
}

/// Approximate bytes of the text of a value.
pub(crate) fn value_size(value: &Value) -> usize {
    text_size(value.as_ref(), WALK_DEPTH_MAX)
}

fn text_size(value: ValueRef<'_>, levels_left: usize) -> usize {
    let Some(levels_left) = levels_left.checked_sub(1) else {
        return 0;
    };
    match value.decode() {
        Decoded::Null | Decoded::Bool(_) => 5,
        Decoded::Int32(_) | Decoded::Int64(_) | Decoded::Double(_) => NUMBER_BYTES,
        Decoded::Decimal(_)
        | Decoded::Date(_)
        | Decoded::Ticks(_)
        | Decoded::Guid(_)
        | Decoded::ObjectId(_) => 40,
        Decoded::String(text) => text.len() + 3,
        Decoded::Binary { bytes, .. } => bytes.len() * 4 / 3 + 5,
        Decoded::Array(elements) => {
            2 + elements.map(|element| text_size(element, levels_left) + 1).sum::<usize>()
        }
        Decoded::Object(members) => {
            2 + members.map(|(name, member)| name.len() + 4 + text_size(member, levels_left)).sum::<usize>()
        }
    }
}

/// A result and its position.
#[derive(Debug)]
pub(crate) struct FoundRow {
    pub(crate) position: Vec<u8>,
    pub(crate) row: QueryRow,
    /// Approximate bytes of its text.
    pub(crate) size: usize,
}

/// Results in their order.
#[derive(Debug)]
pub(crate) struct FoundRows {
    pub(crate) rows: Vec<FoundRow>,
    pub(crate) has_more: bool,
    /// Nothing up to this position is missing.
    pub(crate) reached: Vec<u8>,
    /// The memory that the rows hold.
    pub(crate) holding: Holding,
}

/// The work for a page. Counts are exact, times are measured.
#[derive(Clone, Debug, Default)]
pub struct QueryMetrics {
    /// Documents that were read.
    pub documents_read: u64,
    /// Their bytes.
    pub bytes_read: u64,
    /// Rows that were returned.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The documents read that an index had found.
    pub documents_by_index: u64,
    /// Values that were visited in an index to find documents in its order; an upper bound for lookups.
    pub index_values: u64,
    /// Time in the index.
    pub index_time: Duration,
    /// Time to read documents.
    pub read_time: Duration,
    /// Time to evaluate.
    pub evaluation_time: Duration,
    /// Time altogether.
    pub total_time: Duration,
    /// What was read, by partition.
    pub partitions: Vec<PartitionWork>,
    /// The access path of the partition that was read first.
    pub path: Option<PathKind>,
}

/// What was read of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionWork {
    /// The partition.
    pub ordinal: PartitionOrdinal,
    /// Documents.
    pub documents: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Values that were read in the index in place of documents.
    pub terms: u64,
}

impl QueryMetrics {
    /// Adds work that was done elsewhere for the same page. Times of concurrent partitions are added too.
    pub fn add(&mut self, other: &QueryMetrics) {
        self.documents_read += other.documents_read;
        self.bytes_read += other.bytes_read;
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.documents_by_index += other.documents_by_index;
        self.index_values += other.index_values;
        self.index_time += other.index_time;
        self.read_time += other.read_time;
        self.evaluation_time += other.evaluation_time;
        self.total_time += other.total_time;
        other.partitions.iter().for_each(|work| self.add_work(*work));
        self.path = self.path.or(other.path);
    }

    fn add_work(&mut self, work: PartitionWork) {
        // A partition is usually read without interruption.
        match self.partitions.iter_mut().rev().find(|known| known.ordinal == work.ordinal) {
            Some(known) => {
                known.documents += work.documents;
                known.bytes += work.bytes;
                known.terms += work.terms;
            }
            None => self.partitions.push(work),
        }
    }

    pub(crate) fn count_read(&mut self, open: &OpenPart, documents: &[StoredDocument], time: Duration) {
        let bytes = documents.iter().map(|stored| stored.document.bytes().len() as u64).sum::<u64>();
        let documents = documents.len() as u64;
        self.documents_read += documents;
        self.bytes_read += bytes;
        self.read_time += time;
        if documents > 0 {
            self.add_work(PartitionWork { ordinal: open.part.source.ordinal(), documents, bytes, terms: 0 });
        }
    }

    /// Counts values that were read in the index in place of documents.
    pub(crate) fn count_terms(&mut self, open: &OpenPart, terms: usize) {
        let terms = terms as u64;
        if terms > 0 {
            let ordinal = open.part.source.ordinal();
            self.add_work(PartitionWork { ordinal, documents: 0, bytes: 0, terms });
        }
    }
}
