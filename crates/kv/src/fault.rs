//! Errors, one enum per kind of call, and the health of the store.
//!
//! Knows no engine: causes are text; everything a caller may act on is data.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use crate::batch::{IngestId, Space};

/// Message of the engine or the operating system about a failure, for logs and people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cause(Arc<str>);

impl Cause {
    pub(crate) fn new(text: impl fmt::Display) -> Cause {
        Cause(text.to_string().into())
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Why a batch or an ingest was not committed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CommitFault {
    /// A required row has another value. Nothing of the batch was applied.
    #[error("a required row of space {} has another value, key {key:?}", space.0)]
    PreconditionFailed {
        /// Space of the first row that failed.
        space: Space,
        /// Key of that row.
        key: Bytes,
    },
    /// An earlier batch of the same lane failed.
    #[error("an earlier batch of this lane failed")]
    ChainBroken,
    /// The lane has too many batches in flight.
    #[error("the lane already has {limit} batches in flight")]
    LaneCrowded {
        /// Most batches of one lane in flight.
        limit: usize,
    },
    /// The free disk space is below the reserve and the batch would grow the store. Reads and shrinking batches
    /// continue; growing ones are admitted again when there is space.
    #[error("{free_bytes} bytes are free, fewer than the reserve of {reserve_bytes}")]
    Full {
        /// Bytes free on the disk of the store.
        free_bytes: u64,
        /// Bytes that must stay free.
        reserve_bytes: u64,
    },
    /// A write or sync failed: the batch is either completely present or completely absent, and which of the two is
    /// known only after a reopen.
    #[error("the outcome of the commit is unknown: {cause}")]
    Uncertain {
        /// What failed.
        cause: Cause,
    },
    /// The outcome of an earlier commit is unknown and the store accepts no commit until it is reopened. Nothing of the
    /// batch was applied.
    #[error("the store must be reopened before it can commit: {cause}")]
    Poisoned {
        /// What failed first.
        cause: Cause,
    },
    /// The store was closed. Nothing of the batch was applied.
    #[error("the store is closed")]
    Closed,
    /// The batch is larger than a batch may be.
    #[error("the batch has {size_bytes} bytes, more than {limit_bytes}")]
    TooLarge {
        /// Size of the batch.
        size_bytes: usize,
        /// Largest size.
        limit_bytes: usize,
    },
    /// A key is empty or too long.
    #[error("a key of space {} has {length} bytes", space.0)]
    BadKey {
        /// Space of the row.
        space: Space,
        /// Length of the key in bytes.
        length: usize,
    },
    /// A key is [`KEY_RESERVED`](crate::KEY_RESERVED).
    #[error("a key of space {} is reserved for the storage engine", space.0)]
    ReservedKey {
        /// Space of the row.
        space: Space,
    },
    /// The store has no such space.
    #[error("the store has no space {}", space.0)]
    UnknownSpace {
        /// The space asked for.
        space: Space,
    },
    /// No such pending ingest: it was already named, or the store was reopened since.
    #[error("no ingest {} waits to be named", ingest.0)]
    UnknownIngest {
        /// The ingest asked for.
        ingest: IngestId,
    },
    /// The rows of an ingest are not in strictly ascending order of their keys.
    #[error("row {index} of the ingest does not come after the row before it")]
    Unsorted {
        /// Index of the first row out of order.
        index: usize,
    },
    /// A required row could not be read, so the batch could not be validated. Nothing of it was applied.
    #[error("a required row could not be read: {0}")]
    Unreadable(ReadFault),
}

/// Why a read failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReadFault {
    /// The stored bytes do not match their checksum or are malformed.
    #[error("stored bytes of space {} are damaged: {cause}", space.0)]
    Damaged {
        /// Space that was read.
        space: Space,
        /// What did not match.
        cause: Cause,
    },
    /// An operating system error.
    #[error("reading space {} failed: {cause}", space.0)]
    Io {
        /// Space that was read.
        space: Space,
        /// Kind of the operating system's error.
        kind: io::ErrorKind,
        /// Message of that error.
        cause: Cause,
    },
    /// The engine of this view was closed for a reopen. Take a new view.
    #[error("the store was reopened, or waits to be")]
    Poisoned,
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// The store has no such space.
    #[error("the store has no space {}", space.0)]
    UnknownSpace {
        /// The space asked for.
        space: Space,
    },
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenFault {
    /// Another process, or another store of this one, has the folder open.
    #[error("the store in \"{}\" is open elsewhere", path.display())]
    Locked {
        /// Folder of the store.
        path: PathBuf,
    },
    /// A later version of this software wrote the store.
    #[error("the store has format {found}, this version reads formats up to {supported}")]
    NewerFormat {
        /// Format of the store.
        found: u32,
        /// The format this version supports.
        supported: u32,
    },
    /// An earlier version of this software wrote the store, and there is no upgrade from its format.
    #[error(
        "the store has format {found}, this version reads format {supported}; there is no upgrade from formats this \
         old"
    )]
    OlderFormat {
        /// Format of the store.
        found: u32,
        /// The format this version supports.
        supported: u32,
    },
    /// The store's spaces are not a prefix of the requested list.
    #[error("the store has other spaces: found {found:?}, wanted {wanted:?}")]
    SpacesChanged {
        /// Names in the store, in order.
        found: Vec<String>,
        /// Names asked for, in order.
        wanted: Vec<String>,
    },
    /// More spaces than a store can have.
    #[error("{count} spaces are more than {limit}")]
    TooManySpaces {
        /// Number asked for.
        count: usize,
        /// Most a store can have.
        limit: usize,
    },
    /// The folder is not empty and holds no store.
    #[error("\"{}\" is not empty and not a store", path.display())]
    NotAStore {
        /// The folder.
        path: PathBuf,
    },
    /// An operating system error.
    #[error("opening the store in \"{}\" failed", path.display())]
    Io {
        /// File or folder concerned.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// Required files of the store are missing.
    #[error("the store in \"{}\" is incomplete, these files are missing: {}", path.display(), names(missing))]
    Missing {
        /// Folder of the store.
        path: PathBuf,
        /// Their paths, relative to the store.
        missing: Vec<PathBuf>,
    },
    /// A file of the store does not match its checksum or is malformed.
    #[error("the file \"{}\" is damaged: {cause}", path.display())]
    DamagedFile {
        /// The file.
        path: PathBuf,
        /// What does not match.
        cause: Cause,
    },
    /// The disk has no space for a copy of the store.
    #[error("a copy in \"{}\" needs {needed_bytes} bytes, {free_bytes} are free", path.display())]
    NoSpace {
        /// Folder of the copy.
        path: PathBuf,
        /// Bytes free on its disk.
        free_bytes: u64,
        /// Bytes that it needs.
        needed_bytes: u64,
    },
    /// A journal is damaged before acknowledged commits.
    #[error("the journal \"{}\" is damaged at byte {position}", path.display())]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// Where the damaged commit starts.
        position: usize,
    },
    /// A journal ends before synced commits, as in an interrupted copy.
    #[error(
        "the journal \"{}\" ends at byte {position}, but was synced up to byte {synced_bytes}: it was shortened",
        path.display()
    )]
    Shortened {
        /// The journal.
        path: PathBuf,
        /// Where its last readable commit ends.
        position: usize,
        /// Length known to have been synced.
        synced_bytes: u64,
    },
    /// A damaged journal cannot be cut: some tables have rows of commits that would be cut off.
    #[error(
        "the journal \"{}\" is damaged at byte {position} and cannot be cut there: tables ({}) already have rows of \
         later commits, and the other rows of these commits are only in the journal",
        path.display(), spaces.join(", ")
    )]
    CutTears {
        /// The journal.
        path: PathBuf,
        /// Where the damaged commit starts.
        position: usize,
        /// The spaces whose tables have them.
        spaces: Vec<String>,
    },
    /// Tables have rows of commits that the journals lack: these were cut off, or removed.
    #[error(
        "the store in \"{}\" is torn: tables ({}) have rows of commits that were removed from the journal",
        path.display(), spaces.join(", ")
    )]
    Torn {
        /// Folder of the engine.
        path: PathBuf,
        /// The spaces whose tables have them.
        spaces: Vec<String>,
    },
    /// The engine could not recover its files.
    #[error("the engine could not open \"{}\": {cause}", path.display())]
    Engine {
        /// Folder of the engine.
        path: PathBuf,
        /// Message of the engine.
        cause: Cause,
    },
}

/// Most files named in a message; a store that lost a folder lacks all of its files.
const NAMES_SHOWN_MAX: usize = 8;

fn names(paths: &[PathBuf]) -> String {
    let mut text = paths
        .iter()
        .take(NAMES_SHOWN_MAX)
        .map(|path| path.display().to_string())
        .collect::<Vec<_>>()
        .join(", ");
    if paths.len() > NAMES_SHOWN_MAX {
        text += &format!(" and {} more", paths.len() - NAMES_SHOWN_MAX);
    }
    text
}

/// State of a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Health {
    /// Reads and commits are served.
    Serving,
    /// Reads and shrinking batches are served; growing ones are refused until there is space on the disk.
    Full {
        /// Bytes free on the disk of the store.
        free_bytes: u64,
        /// Bytes that must stay free.
        reserve_bytes: u64,
    },
    /// The outcome of a commit is unknown; commits are refused until the store is reopened.
    Poisoned {
        /// What failed.
        cause: Cause,
    },
    /// The store was closed.
    Closed,
}
