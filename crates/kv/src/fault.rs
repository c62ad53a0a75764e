//! What can go wrong, one enum per family of calls, and the store's own word on how it is.
//!
//! Knows no engine: causes are carried as text, everything a caller may act on as data.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use crate::batch::{IngestId, Space};

/// Words of the engine or the operating system about a failure, for logs and people.
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
    /// The lane has too many batches under way.
    #[error("the lane already has {limit} batches under way")]
    LaneCrowded {
        /// Most batches one lane may have under way.
        limit: usize,
    },
    /// The disk is below the free-space reserve and the batch would grow the store. Reads and shrinking batches
    /// go on; growing ones are admitted again as soon as there is room.
    #[error("{free_bytes} bytes are free, fewer than the reserve of {reserve_bytes}")]
    Full {
        /// Bytes free on the disk of the store.
        free_bytes: u64,
        /// Bytes that must stay free.
        reserve_bytes: u64,
    },
    /// Writing or syncing failed underway: the batch is either wholly there or wholly absent, and which of the
    /// two is only known after the store was reopened.
    #[error("the outcome of the commit is unknown: {cause}")]
    Uncertain {
        /// What failed.
        cause: Cause,
    },
    /// The store has a doubtful tail and takes no commit until it was reopened. Nothing of the batch was applied.
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
    /// The store has no such space.
    #[error("the store has no space {}", space.0)]
    UnknownSpace {
        /// The space asked for.
        space: Space,
    },
    /// No such ingest waits to be named: it was named before, or the store was reopened since.
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
    /// A required row could not be read, so the batch could not be judged. Nothing of it was applied.
    #[error("a required row could not be read: {0}")]
    Unreadable(ReadFault),
}

/// Why a read failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReadFault {
    /// The stored bytes do not match their checksum or make no sense.
    #[error("stored bytes of space {} are damaged: {cause}", space.0)]
    Damaged {
        /// Space that was read.
        space: Space,
        /// What did not match.
        cause: Cause,
    },
    /// The operating system refused.
    #[error("reading space {} failed: {cause}", space.0)]
    Io {
        /// Space that was read.
        space: Space,
        /// Kind of the operating system's error.
        kind: io::ErrorKind,
        /// Its words.
        cause: Cause,
    },
    /// The engine behind this view was closed to be reopened. A new view will do.
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
    #[error("the store has format {found}, this version reads format {supported} only")]
    NewerFormat {
        /// Format of the store.
        found: u32,
        /// The format known here.
        supported: u32,
    },
    /// An earlier version of this software wrote the store. Formats are not upgraded before the first release.
    #[error(
        "the store has format {found}, this version reads format {supported} only; there is no upgrade from formats \
         before the first release"
    )]
    OlderFormat {
        /// Format of the store.
        found: u32,
        /// The format known here.
        supported: u32,
    },
    /// The store's spaces are not the first ones of the list asked for.
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
    /// The folder holds other things.
    #[error("\"{}\" is not empty and not a store", path.display())]
    NotAStore {
        /// The folder.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("opening the store in \"{}\" failed", path.display())]
    Io {
        /// File or folder concerned.
        path: PathBuf,
        /// Its error.
        source: io::Error,
    },
    /// Files that the store must have are not there.
    #[error("the store in \"{}\" is incomplete, these files are missing: {}", path.display(), names(missing))]
    Missing {
        /// Folder of the store.
        path: PathBuf,
        /// The files, by their paths in the store.
        missing: Vec<PathBuf>,
    },
    /// A file of the store is not as it was written.
    #[error("the file \"{}\" is damaged: {cause}", path.display())]
    DamagedFile {
        /// The file.
        path: PathBuf,
        /// What does not match.
        cause: Cause,
    },
    /// The disk has no room for a copy of the store.
    #[error("a copy in \"{}\" needs {needed_bytes} bytes, {free_bytes} are free", path.display())]
    NoRoom {
        /// Folder of the copy.
        path: PathBuf,
        /// Bytes free on its disk.
        free_bytes: u64,
        /// Bytes that it needs.
        needed_bytes: u64,
    },
    /// A journal is damaged in front of commits that were acknowledged.
    #[error("the journal \"{}\" is damaged at byte {position}", path.display())]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// Where the damaged commit starts.
        position: usize,
    },
    /// A journal ends before commits that were synced, as in a copy that was interrupted.
    #[error(
        "the journal \"{}\" ends at byte {position}, but was synced up to byte {synced_bytes}: it was shortened",
        path.display()
    )]
    Shortened {
        /// The journal.
        path: PathBuf,
        /// Where its last readable commit ends.
        position: usize,
        /// Up to where it is known to have been synced.
        synced_bytes: u64,
    },
    /// The engine could not recover its files.
    #[error("the engine could not open \"{}\": {cause}", path.display())]
    Engine {
        /// Folder of the engine.
        path: PathBuf,
        /// Its words.
        cause: Cause,
    },
}

/// Files named in a message at most; a store that lost a folder lacks all of its files.
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

/// How a store is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Health {
    /// Reads and commits are served.
    Serving,
    /// Reads and shrinking batches are served; growing ones wait for room on the disk.
    Full {
        /// Bytes free on the disk of the store.
        free_bytes: u64,
        /// Bytes that must stay free.
        reserve_bytes: u64,
    },
    /// A commit left a doubtful tail; no commit is taken until the store was reopened.
    Poisoned {
        /// What failed.
        cause: Cause,
    },
    /// The store was closed.
    Closed,
}
