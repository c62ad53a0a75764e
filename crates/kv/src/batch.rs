//! Input of a commit: spaces, changes of their rows and the conditions under which they apply.
//!
//! Pure data; nothing here knows when or how a batch is committed.

use bytes::Bytes;

use crate::fault::CommitFault;

/// Longest key, in bytes. The embedded engine counts key lengths in 16 bits.
pub const KEY_BYTES_MAX: usize = u16::MAX as usize;

/// The key that no row can have: the embedded engine uses it in every space. It is the first of all keys.
pub const KEY_RESERVED: &[u8] = &[0];

/// Largest batch, in bytes of keys and values: it must fit into one journal of the embedded engine.
pub const BATCH_BYTES_MAX: usize = 48 << 20;

/// Most spaces a store can have. The next number is the store's internal space.
pub(crate) const SPACES_MAX: usize = u8::MAX as usize;

/// One ordered region of the store: an index into the list of spaces given at opening.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Space(pub u8);

/// Internal rows of the store; submitters cannot access them.
pub(crate) const OWN_SPACE: Space = Space(u8::MAX);

/// Fails if no row can have this key.
pub(crate) fn check_key(space: Space, key: &[u8]) -> Result<(), CommitFault> {
    match key.len() {
        length if length == 0 || length > KEY_BYTES_MAX => Err(CommitFault::BadKey { space, length }),
        _ if key == KEY_RESERVED => Err(CommitFault::ReservedKey { space }),
        _ => Ok(()),
    }
}

/// Name and properties of one space. Its position in the list is its [`Space`] number. The order never changes; new
/// spaces are appended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpaceOptions {
    /// Name of the space on disk.
    pub name: &'static str,
    /// Whether blocks of the lower levels are compressed. Fixed when the space is created.
    pub compressed: bool,
}

/// When a commit is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durability {
    /// When it survives a power failure.
    Sync,
    /// When it survives the end of the process. A power failure may lose the last commits, always from the end: what
    /// remains is a prefix of the commit order.
    Buffered,
}

/// A set of ingested rows that is not yet named by a batch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct IngestId(pub(crate) u64);

/// One change of one row: a value to put, or `None` to delete it.
#[derive(Clone, Debug)]
pub(crate) struct RowChange {
    pub(crate) space: Space,
    pub(crate) key: Bytes,
    pub(crate) value: Option<Bytes>,
}

impl RowChange {
    pub(crate) fn size_bytes(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, Bytes::len)
    }
}

/// A value a row must have for the batch to apply; `None` requires its absence.
#[derive(Clone, Debug)]
pub(crate) struct RowRequirement {
    pub(crate) space: Space,
    pub(crate) key: Bytes,
    pub(crate) expected: Option<Bytes>,
}

/// Changes that are applied atomically.
///
/// Later changes of the same key win. Keys and values are not copied; the embedded engine keeps them as long as its
/// memtable lives, so a slice of a larger buffer keeps the whole buffer alive.
#[derive(Default, Debug)]
pub struct Batch {
    pub(crate) changes: Vec<RowChange>,
    pub(crate) requirements: Vec<RowRequirement>,
    pub(crate) ingests: Vec<IngestId>,
    pub(crate) shrinking: bool,
    /// Made by the store itself: only such a batch may touch the internal space.
    pub(crate) own: bool,
    size_bytes: usize,
}

impl Batch {
    /// Sets the value of a row.
    pub fn put(&mut self, space: Space, key: impl Into<Bytes>, value: impl Into<Bytes>) {
        self.push(RowChange { space, key: key.into(), value: Some(value.into()) });
    }

    /// Removes a row, if present.
    pub fn delete(&mut self, space: Space, key: impl Into<Bytes>) {
        self.push(RowChange { space, key: key.into(), value: None });
    }

    /// Applies the batch only if the row has the expected value (`None`: is absent) before any change of the batch;
    /// otherwise nothing of the batch is applied.
    pub fn require(&mut self, space: Space, key: impl Into<Bytes>, expected: Option<Bytes>) {
        self.requirements.push(RowRequirement { space, key: key.into(), expected });
    }

    /// Keeps an ingested set of rows: after this batch it is no longer removed at start.
    pub fn name_ingest(&mut self, ingest: IngestId) {
        self.ingests.push(ingest);
    }

    /// Declares that the batch frees space in the long run, so that it is admitted below the free-space reserve. Its
    /// tombstones still take some bytes; the reserve is large enough for them.
    pub fn mark_shrinking(&mut self) {
        self.shrinking = true;
    }

    /// Whether the batch holds no change. It may still hold requirements.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.ingests.is_empty()
    }

    /// Number of changes.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Bytes of all keys and values of the changes.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// An internal batch of the store.
    pub(crate) fn of_store(changes: impl IntoIterator<Item = RowChange>) -> Batch {
        let mut batch = Batch { own: true, ..Batch::default() };
        changes.into_iter().for_each(|change| batch.push(change));
        batch
    }

    fn push(&mut self, change: RowChange) {
        self.size_bytes += change.size_bytes();
        self.changes.push(change);
    }
}
