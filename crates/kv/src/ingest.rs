//! Sets of rows that bypass the commit thread and are kept only once a batch names them.
//!
//! Before the rows are written, a mark with their key range is committed to the internal space; the naming batch
//! deletes the mark. At every open, the rows of each remaining mark are removed, then the mark. This layer is above the
//! row store, so it is the same for all of them.
//!
//! ```text
//! own space   "last"            number of the last ingest, 8 bytes: numbers never repeat
//!             "pending" number  space, length of the first key (4 bytes), first key, last key
//! ```

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::batch::{Durability, IngestId, OWN_SPACE, RowChange, Space};
use crate::fault::{Cause, CommitFault};
use crate::rows::{AnyRows, RowStore};
use crate::view::{Direction, KeyRange, Parts, Scan, ScanLimit};

const LAST_KEY: &[u8] = b"last";
const PENDING_PREFIX: &[u8] = b"pending";

/// Rows removed with one commit.
const REMOVAL_LIMIT: ScanLimit = ScanLimit { rows: 1000, bytes: 4 << 20 };

/// Key of the mark of a pending ingest.
pub(crate) fn pending_key(ingest: IngestId) -> Bytes {
    [PENDING_PREFIX, &ingest.0.to_be_bytes()].concat().into()
}

/// The changes that announce an ingest of the rows from `first` to `last`.
pub(crate) fn announce(ingest: IngestId, space: Space, first: &Bytes, last: &Bytes) -> [RowChange; 2] {
    let mut mark = BytesMut::with_capacity(5 + first.len() + last.len());
    mark.put_u8(space.0);
    mark.put_u32(u32::try_from(first.len()).unwrap_or(u32::MAX));
    mark.put_slice(first);
    mark.put_slice(last);
    let put = |key, value| RowChange { space: OWN_SPACE, key, value: Some(value) };
    [
        put(Bytes::from_static(LAST_KEY), Bytes::copy_from_slice(&ingest.0.to_be_bytes())),
        put(pending_key(ingest), mark.freeze()),
    ]
}

/// Space and range of an announced ingest; `None` if the mark is malformed.
fn parse_mark(mut mark: Bytes) -> Option<(Space, KeyRange)> {
    let space = Space(mark.try_get_u8().ok()?);
    let first_length = usize::try_from(mark.try_get_u32().ok()?).ok()?;
    if first_length > mark.len() {
        return None;
    }
    let first = mark.split_to(first_length);
    // The range ends after the last key: the direct successor of a key is the key with a zero byte appended.
    let end = Bytes::from([&mark[..], &[0]].concat());
    Some((space, KeyRange { start: first, end: Some(end) }))
}

/// Number of the last ingest of this store.
pub(crate) async fn last_number(rows: &AnyRows) -> Result<u64, Cause> {
    let point = rows.point().await.map_err(Cause::new)?;
    let row = rows.get(&point, OWN_SPACE, LAST_KEY).await.map_err(Cause::new)?;
    Ok(row.and_then(|mut row| row.try_get_u64().ok()).unwrap_or(0))
}

/// Removes every ingest that was announced and never named.
pub(crate) async fn remove_unnamed(rows: &AnyRows) -> Result<(), Cause> {
    loop {
        let point = rows.point().await.map_err(Cause::new)?;
        let range = KeyRange::prefix(Bytes::from_static(PENDING_PREFIX));
        let marks = rows.scan(&point, OWN_SPACE, some_of(range, Parts::Rows)).await;
        let marks = marks.map_err(Cause::new)?;
        drop(point);
        for (key, mark) in marks.rows {
            let (space, range) =
                parse_mark(mark).ok_or_else(|| Cause::new("the mark of an ingest is damaged"))?;
            let row_count = remove_range(rows, space, range).await?;
            let gone = RowChange { space: OWN_SPACE, key, value: None };
            rows.commit(vec![vec![gone]], Durability::Sync).await?;
            tracing::info!(
                event = "ingest_removed",
                row_count,
                "rows of an unreferenced ingest were deleted"
            );
        }
        if !marks.more {
            return Ok(());
        }
    }
}

fn some_of(range: KeyRange, parts: Parts) -> Scan {
    Scan { range, direction: Direction::Forward, limit: REMOVAL_LIMIT, parts }
}

/// Deletes all rows of a range and returns their number.
async fn remove_range(rows: &AnyRows, space: Space, range: KeyRange) -> Result<usize, Cause> {
    let mut row_count = 0;
    loop {
        let point = rows.point().await.map_err(Cause::new)?;
        let chunk = rows.scan(&point, space, some_of(range.clone(), Parts::Keys)).await;
        let chunk = chunk.map_err(Cause::new)?;
        drop(point);
        row_count += chunk.rows.len();
        let gone = chunk.rows.into_iter().map(|(key, _)| RowChange { space, key, value: None });
        let gone: Vec<_> = gone.collect();
        if !gone.is_empty() {
            rows.commit(vec![gone], Durability::Sync).await?;
        }
        if !chunk.more {
            return Ok(row_count);
        }
    }
}

/// Checks that rows are in strictly ascending order of their keys.
pub(crate) fn check_order(rows: &[(Bytes, Bytes)]) -> Result<(), CommitFault> {
    match rows.windows(2).position(|pair| pair[0].0 >= pair[1].0) {
        Some(position) => Err(CommitFault::Unsorted { index: position + 1 }),
        None => Ok(()),
    }
}
