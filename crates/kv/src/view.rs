//! Reads: a consistent snapshot of the whole store, and the types of requests and results.
//!
//! Knows nothing of how a backend stores several versions.

use std::sync::Arc;

use bytes::Bytes;

use crate::batch::Space;
use crate::fault::ReadFault;
#[cfg(feature = "round-trip")]
use crate::round_trip::RemotePoint;
use crate::rows::{AnyRows, RowStore, RowsPoint};

/// A range of keys: from `start`, inclusive, up to `end`, exclusive; without `end` up to the last key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyRange {
    /// First key of the range.
    pub start: Bytes,
    /// First key after the range.
    pub end: Option<Bytes>,
}

impl KeyRange {
    /// Every key.
    pub fn all() -> KeyRange {
        KeyRange { start: Bytes::new(), end: None }
    }

    /// Every key that begins with `prefix`.
    pub fn prefix(prefix: impl Into<Bytes>) -> KeyRange {
        let start = prefix.into();
        let end = key_after_prefix(&start);
        KeyRange { start, end }
    }

    /// Whether `key` is in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        *key >= self.start[..] && self.end.as_ref().is_none_or(|end| *key < end[..])
    }

    /// The intersection of both ranges, if it is not empty.
    pub fn intersection(&self, other: &KeyRange) -> Option<KeyRange> {
        let start = self.start.clone().max(other.start.clone());
        let end = match (&self.end, &other.end) {
            (Some(one), Some(other)) => Some(one.min(other).clone()),
            (Some(end), None) | (None, Some(end)) => Some(end.clone()),
            (None, None) => None,
        };
        let range = KeyRange { start, end };
        (!range.is_empty()).then_some(range)
    }

    /// Whether it contains no key.
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }
}

/// The first key after all keys with `prefix`; there is none if all of its bytes are 255.
fn key_after_prefix(prefix: &[u8]) -> Option<Bytes> {
    let kept = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut end = prefix[..=kept].to_vec();
    end[kept] += 1;
    Some(end.into())
}

/// The order in which a scan reads its range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the first key of the range to the last.
    Forward,
    /// From the last key of the range to the first.
    Backward,
}

/// Where a chunk ends. A chunk holds at least one row if there is one, whatever its size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScanLimit {
    /// Most rows.
    pub rows: usize,
    /// Bytes of keys and values after which no further row is added.
    pub bytes: usize,
}

/// The rows of a scan, in its direction.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Chunk {
    /// Keys and values.
    pub rows: Vec<(Bytes, Bytes)>,
    /// Whether the range holds at least one further row. The next chunk starts after the last key of this one
    /// (forward), or ends before it (backward).
    pub more: bool,
}

/// The keys of a forward scan.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeyChunk {
    /// The keys.
    pub keys: Vec<Bytes>,
    /// Whether the range holds at least one further row.
    pub more: bool,
}

/// A scan as passed to a backend, with a non-empty range.
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    pub(crate) range: KeyRange,
    pub(crate) direction: Direction,
    pub(crate) limit: ScanLimit,
    pub(crate) parts: Parts,
}

/// Which parts of its rows a scan returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Parts {
    Rows,
    /// Keys; the values of the chunk are empty.
    Keys,
}

/// Fills one chunk up to its limit; shared by the backends so that all end a chunk at the same row.
pub(crate) struct ChunkBuilder {
    chunk: Chunk,
    limit: ScanLimit,
    size_bytes: usize,
}

impl ChunkBuilder {
    pub(crate) fn new(limit: ScanLimit) -> ChunkBuilder {
        ChunkBuilder { chunk: Chunk::default(), limit, size_bytes: 0 }
    }

    /// Adds a row and returns whether it fitted; the first that does not ends the chunk.
    pub(crate) fn push(&mut self, key: Bytes, value: Bytes) -> bool {
        let is_full = self.chunk.rows.len() >= self.limit.rows || self.size_bytes >= self.limit.bytes;
        if is_full && !self.chunk.rows.is_empty() {
            self.chunk.more = true;
            return false;
        }
        self.size_bytes += key.len() + value.len();
        self.chunk.rows.push((key, value));
        true
    }

    pub(crate) fn finish(self) -> Chunk {
        self.chunk
    }
}

/// A consistent snapshot of the store, as of the commit that returned it or of [`crate::Store::view`].
///
/// Cheap to clone and meant to be short-lived: while a view is held, the engine keeps every version it can see, in all
/// spaces.
#[derive(Clone)]
pub struct View {
    source: ViewSource,
}

/// Where a view reads.
#[derive(Clone)]
enum ViewSource {
    Rows(Arc<AnyRows>, RowsPoint),
    #[cfg(feature = "round-trip")]
    Remote(RemotePoint),
}

impl View {
    pub(crate) fn of_rows(rows: Arc<AnyRows>, point: RowsPoint) -> View {
        View { source: ViewSource::Rows(rows, point) }
    }

    #[cfg(feature = "round-trip")]
    pub(crate) fn remote(point: RemotePoint) -> View {
        View { source: ViewSource::Remote(point) }
    }

    /// Whether the store was neither reopened nor closed since; if not, reads fail and a new view is needed.
    pub fn is_live(&self) -> bool {
        match &self.source {
            ViewSource::Rows(_, point) => point.is_live(),
            #[cfg(feature = "round-trip")]
            ViewSource::Remote(point) => point.is_live(),
        }
    }

    /// The value of one row. Runs on the caller's thread: most rows come from a cache, and a disk read takes about as
    /// long as a switch to another thread.
    pub async fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, ReadFault> {
        match &self.source {
            ViewSource::Rows(rows, point) => rows.get(point, space, key).await,
            #[cfg(feature = "round-trip")]
            ViewSource::Remote(point) => point.get(space, key).await,
        }
    }

    /// The values of several rows, in the order of their keys in `keys`.
    pub async fn get_many(&self, space: Space, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>, ReadFault> {
        match &self.source {
            ViewSource::Rows(rows, point) => rows.get_many(point, space, keys).await,
            #[cfg(feature = "round-trip")]
            ViewSource::Remote(point) => point.get_many(space, keys).await,
        }
    }

    /// One chunk of a range. Small ones run on the caller's thread, others on a bounded thread pool.
    pub async fn scan(
        &self,
        space: Space,
        range: KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Result<Chunk, ReadFault> {
        if range.is_empty() {
            return Ok(Chunk::default());
        }
        self.scan_parts(space, Scan { range, direction, limit, parts: Parts::Rows }).await
    }

    /// The keys of one chunk of a range, without reading their values; the byte limit counts keys only.
    pub async fn scan_keys(
        &self,
        space: Space,
        range: KeyRange,
        limit: ScanLimit,
    ) -> Result<KeyChunk, ReadFault> {
        if range.is_empty() {
            return Ok(KeyChunk::default());
        }
        let scan = Scan { range, direction: Direction::Forward, limit, parts: Parts::Keys };
        let Chunk { rows, more } = self.scan_parts(space, scan).await?;
        Ok(KeyChunk { keys: rows.into_iter().map(|(key, _)| key).collect(), more })
    }

    async fn scan_parts(&self, space: Space, scan: Scan) -> Result<Chunk, ReadFault> {
        match &self.source {
            ViewSource::Rows(rows, point) => rows.scan(point, space, scan).await,
            #[cfg(feature = "round-trip")]
            ViewSource::Remote(point) => point.scan(space, scan).await,
        }
    }
}

impl std::fmt::Debug for View {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("View")
    }
}

#[test]
fn a_prefix_ends_before_its_successor() {
    assert_eq!(KeyRange::prefix("ab").end, Some(Bytes::from("ac")));
    assert_eq!(KeyRange::prefix(vec![1, 255]).end, Some(Bytes::from(vec![2])));
    assert_eq!(KeyRange::prefix(vec![255, 255]).end, None);
    assert_eq!(KeyRange::prefix("").end, None);
}

#[test]
fn ranges_intersect() {
    let range =
        |start: &'static str, end: &'static str| KeyRange { start: start.into(), end: Some(end.into()) };
    assert_eq!(range("a", "c").intersection(&range("b", "d")), Some(range("b", "c")));
    assert_eq!(range("a", "b").intersection(&range("b", "c")), None);
    assert_eq!(KeyRange::all().intersection(&range("b", "c")), Some(range("b", "c")));
    assert!(range("b", "c").contains(b"b") && !range("b", "c").contains(b"c"));
}
