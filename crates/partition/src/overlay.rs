//! The rows that a view of a partition reads: those of the store with uncommitted rows on top.
//!
//! An uncommitted change is described by the rows that it would write, as in the writer's state. Every read of a view
//! therefore sees it without special code.

use crate::state::Rows;
use bytes::Bytes;
use kv::{Chunk, Direction, KeyRange, ReadFault, ScanLimit, Space, View};
use std::ops::Bound;
use std::sync::Arc;

/// Rows of the store with uncommitted rows on top.
#[derive(Clone, Debug)]
pub(crate) struct RowsView {
    base: View,
    overlay: Option<Arc<Rows>>,
}

impl From<View> for RowsView {
    fn from(base: View) -> RowsView {
        RowsView { base, overlay: None }
    }
}

impl RowsView {
    /// The same rows of the store with `rows` on top, instead of any other overlay.
    pub(crate) fn with_overlay(&self, rows: Arc<Rows>) -> RowsView {
        RowsView { base: self.base.clone(), overlay: Some(rows) }
    }

    /// Returns whether the overlay writes or deletes this row. Caches contain committed rows only.
    pub(crate) fn is_uncommitted(&self, space: Space, key: impl FnOnce() -> Bytes) -> bool {
        self.overlay.as_ref().is_some_and(|rows| rows.contains_key(&(space, key())))
    }

    /// The rows of the store without the overlay.
    pub(crate) fn base(&self) -> &View {
        &self.base
    }

    /// The value of one row.
    pub(crate) async fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, ReadFault> {
        if let Some(rows) = &self.overlay
            && let Some(row) = rows.get(&(space, Bytes::copy_from_slice(key)))
        {
            return Ok(row.clone());
        }
        self.base.get(space, key).await
    }

    /// The values of several rows, in the order of `keys`.
    pub(crate) async fn get_many(
        &self,
        space: Space,
        keys: &[Bytes],
    ) -> Result<Vec<Option<Bytes>>, ReadFault> {
        let mut values = self.base.get_many(space, keys).await?;
        if let Some(rows) = &self.overlay {
            for (key, value) in keys.iter().zip(&mut values) {
                if let Some(row) = rows.get(&(space, key.clone())) {
                    value.clone_from(row);
                }
            }
        }
        Ok(values)
    }

    /// One chunk of a range, in ascending order. `more` may be set although only deleted rows follow.
    pub(crate) async fn scan(
        &self,
        space: Space,
        mut range: KeyRange,
        limit: ScanLimit,
    ) -> Result<Chunk, ReadFault> {
        let Some(rows) = &self.overlay else {
            return self.base.scan(space, range, Direction::Forward, limit).await;
        };
        loop {
            let below = self.base.scan(space, range.clone(), Direction::Forward, limit).await?;
            let last = below.rows.last().filter(|_| below.more).map(|(key, _)| key.clone());
            let chunk = merged(below, over(rows, space, &range, last.as_ref()), limit);
            match last {
                // Callers continue after the last row of a chunk, so a chunk with more after it must not be empty.
                Some(last) if chunk.rows.is_empty() => range.start = key_after(&last),
                Some(_) | None => return Ok(chunk),
            }
        }
    }
}

/// The uncommitted rows of a range, up to and including `last` if there is one.
fn over<'r>(
    rows: &'r Rows,
    space: Space,
    range: &KeyRange,
    last: Option<&Bytes>,
) -> impl Iterator<Item = (&'r Bytes, &'r Option<Bytes>)> {
    let from = Bound::Included((space, range.start.clone()));
    let until = match (last, &range.end) {
        (Some(last), _) => Bound::Included((space, last.clone())),
        (None, Some(end)) => Bound::Excluded((space, end.clone())),
        (None, None) => Bound::Unbounded,
    };
    let is_empty = range.end.as_ref().is_some_and(|end| *end <= range.start);
    let found = (!is_empty).then(|| rows.range((from, until)));
    // Without an end the range would continue into the next space.
    let of_space = found.into_iter().flatten().take_while(move |((one, _), _)| *one == space);
    of_space.map(|((_, key), row)| (key, row))
}

/// A chunk of committed rows merged with uncommitted ones, up to the limit.
fn merged<'r>(
    below: Chunk,
    over: impl Iterator<Item = (&'r Bytes, &'r Option<Bytes>)>,
    limit: ScanLimit,
) -> Chunk {
    let mut below_rows = below.rows.into_iter().peekable();
    let mut over = over.peekable();
    let mut chunk = Chunk { rows: Vec::new(), more: below.more };
    let mut bytes = 0;
    loop {
        let is_over_next = match (below_rows.peek(), over.peek()) {
            (Some((key, _)), Some((changed, _))) => *changed <= key,
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (None, None) => return chunk,
        };
        let next = if is_over_next {
            let Some((key, row)) = over.next() else { return chunk };
            let _ = below_rows.next_if(|(replaced, _)| replaced == key);
            row.as_ref().map(|row| (key.clone(), row.clone()))
        } else {
            below_rows.next()
        };
        let Some((key, row)) = next else { continue };
        if !chunk.rows.is_empty() && (chunk.rows.len() >= limit.rows || bytes >= limit.bytes) {
            chunk.more = true;
            return chunk;
        }
        bytes += key.len() + row.len();
        chunk.rows.push((key, row));
    }
}

/// The first key after a key.
fn key_after(key: &Bytes) -> Bytes {
    [key, &[0][..]].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kv::{Batch, CommitMode, Durability, SpaceOptions, Store};

    const ONE: Space = Space(0);
    const OTHER: Space = Space(1);

    fn key(number: u8) -> Bytes {
        vec![number].into()
    }

    /// All rows, read in chunks of a size.
    async fn walked(rows: &RowsView, range: KeyRange, limit: ScanLimit) -> Vec<(Bytes, Bytes)> {
        let mut found = Vec::new();
        let mut range = range;
        for _ in 0..1000 {
            let chunk = rows.scan(ONE, range.clone(), limit).await.unwrap();
            found.extend(chunk.rows);
            match found.last() {
                Some((last, _)) if chunk.more => range.start = key_after(last),
                Some(_) | None => return found,
            }
        }
        panic!("a walk without an end");
    }

    #[tokio::test]
    async fn chunks_of_every_size_give_the_rows_as_they_would_be() {
        let spaces = ["one", "other"].map(|name| SpaceOptions { name, compressed: false });
        let store = Store::memory(&spaces, CommitMode::Thread);
        let mut batch = Batch::default();
        for number in (0..60).filter(|number| number % 3 != 0) {
            batch.put(ONE, key(number), Bytes::from_static(b"old"));
        }
        store.submit(&store.lane(), batch, Durability::Sync).await.unwrap();
        let base = store.view().await.unwrap();
        let mut changes = Rows::new();
        changes.insert((OTHER, key(7)), Some(Bytes::from_static(b"of another space")));
        for number in 0..60 {
            match number {
                // A long interval without rows.
                20..40 => drop(changes.insert((ONE, key(number)), None)),
                _ if number % 5 == 0 => {
                    changes.insert((ONE, key(number)), Some(Bytes::from_static(b"new")));
                }
                _ if number % 7 == 0 => drop(changes.insert((ONE, key(number)), None)),
                _ => {}
            }
        }
        let mut expected = Vec::new();
        for number in 0..60 {
            let changed = changes.get(&(ONE, key(number))).cloned();
            let row = match changed {
                Some(row) => row,
                None => base.get(ONE, &key(number)).await.unwrap(),
            };
            expected.extend(row.map(|row| (key(number), row)));
        }
        let rows = RowsView::from(base).with_overlay(Arc::new(changes));
        for (start, end) in [(0, 60), (5, 41), (20, 40), (22, 30), (59, 60), (30, 30)] {
            let range = KeyRange { start: key(start), end: Some(key(end)) };
            let inside: Vec<_> = expected.iter().filter(|(key, _)| range.contains(key)).cloned().collect();
            for rows_max in [1, 2, 3, 7, 100] {
                for bytes in [1, 9, usize::MAX] {
                    let limit = ScanLimit { rows: rows_max, bytes };
                    assert_eq!(
                        walked(&rows, range.clone(), limit).await,
                        inside,
                        "{start} to {end}, {limit:?}"
                    );
                }
            }
        }
        let keys: Vec<Bytes> = (0..60).map(key).collect();
        for (key, value) in keys.iter().zip(rows.get_many(ONE, &keys).await.unwrap()) {
            assert_eq!(rows.get(ONE, key).await.unwrap(), value);
            let of_walk = expected.iter().find(|(found, _)| found == key).map(|(_, row)| row.clone());
            assert_eq!(value, of_walk);
        }
    }
}
