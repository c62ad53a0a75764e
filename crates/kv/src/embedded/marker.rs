//! The marker row: keeps the highest number in the tables of a space from falling.
//!
//! Every commit has a number, and so has each version of a row. The engine removes a journal when every space has a
//! table with a number at least as high as the highest one that the memtables of the space had when the journal was
//! sealed. A merge into the last level drops deletions, and with them their numbers: if the newest rows of a space are
//! deletions, the highest number in its tables falls, and the journal would stay until the space is written again.
//!
//! So a commit that deletes rows of a space also puts the marker row of the space. The newest change of a space that
//! is flushed is then always a put of a row that has no newer version in any table. No merge drops that one.
//!
//! The key of the marker is before all others, so readers of any range see it nowhere, and commits cannot contain it. It
//! is the first and not the last one because deletions are mostly of old rows, with low keys: most tables with deletions
//! begin low anyway. With a last key, tables with ascending keys would all overlap, and the engine could not move them
//! to another level without rewriting them.

use bytes::Bytes;

use crate::batch::KEY_RESERVED;
use crate::view::KeyRange;

/// The first key after the marker.
const KEY_FIRST: &[u8] = &[0, 0];

/// Excludes the marker from a range that is to be read.
pub(super) fn hide(mut range: KeyRange) -> KeyRange {
    if *range.start < *KEY_FIRST {
        range.start = Bytes::from_static(KEY_FIRST);
    }
    range
}

/// Whether this is the key of the marker.
pub(super) fn is_hidden(key: &[u8]) -> bool {
    key == KEY_RESERVED
}
#[cfg(test)]
mod tests {
    use super::super::EmbeddedOptions;
    use super::super::engine::StorageEngine;
    use super::super::folder::Folder;
    use super::*;
    use crate::batch::{Durability, RowChange, Space, SpaceOptions};
    use fjall::AbstractTree;
    use std::path::Path;
    use std::sync::Arc;

    const SPACES: [SpaceOptions; 2] = [
        SpaceOptions { name: "emptied", compressed: false },
        SpaceOptions { name: "other", compressed: false },
    ];

    fn open(path: &Path) -> StorageEngine {
        let folder = Arc::new(Folder::open(path, &SPACES).unwrap());
        StorageEngine::open(&folder, &EmbeddedOptions::new(path, &SPACES)).unwrap()
    }

    fn change(engine: &StorageEngine, space: u8, value: Option<&'static [u8]>) {
        let value = value.map(Bytes::from_static);
        let change = RowChange { space: Space(space), key: Bytes::from_static(b"k"), value };
        engine.commit(vec![vec![change]], Durability::Sync).unwrap();
    }

    /// Flushes and merges all, and returns the highest number in the tables of the first space.
    fn number_merged(engine: &StorageEngine) -> Option<u64> {
        engine.flush_all().unwrap();
        let emptied = engine.keyspace(Space(0)).unwrap().unwrap();
        emptied.major_compact().unwrap();
        emptied.tree.get_highest_persisted_seqno()
    }

    #[test]
    fn the_number_of_a_deletion_survives_its_eviction() {
        let folder = tempfile::tempdir().unwrap();
        let engine = open(folder.path());
        let mut last = None;
        for _ in 0..3 {
            change(&engine, 0, Some(b"x"));
            change(&engine, 0, None);
            let written = engine.keyspace(Space(0)).unwrap().unwrap().tree.get_highest_memtable_seqno();
            let merged = number_merged(&engine);
            assert!(written > last && merged == written, "{last:?}, {written:?}, {merged:?}");
            last = merged;
        }
        // Only a commit that deletes puts the marker.
        let rows = |space| engine.keyspace(Space(space)).unwrap().map_or(0, |rows| rows.len().unwrap());
        change(&engine, 1, Some(b"x"));
        assert_eq!((rows(0), rows(1)), (1, 1));
    }

    /// The journal of a store from the time before there were markers.
    #[test]
    fn a_deletion_without_a_marker_in_a_found_journal_gets_one() {
        let folder = tempfile::tempdir().unwrap();
        let engine = open(folder.path());
        change(&engine, 0, Some(b"x"));
        let emptied = engine.keyspace(Space(0)).unwrap().unwrap();
        emptied.remove("k").unwrap();
        let written = emptied.tree.get_highest_memtable_seqno();
        drop(engine);
        let engine = open(folder.path());
        change(&engine, 1, Some(b"x"));
        let merged = number_merged(&engine);
        assert!(written.is_some() && merged > written, "{written:?}, {merged:?}");
    }

    #[test]
    fn no_range_begins_with_the_marker() {
        for start in [&b""[..], &[0]] {
            let range = hide(KeyRange { start: Bytes::copy_from_slice(start), end: None });
            assert!(!range.contains(KEY_RESERVED) && range.contains(&[0, 0]));
        }
        let only_marker = KeyRange { start: Bytes::new(), end: Some(Bytes::from_static(&[0, 0])) };
        assert!(hide(only_marker).is_empty());
        let later = KeyRange::prefix("a");
        assert_eq!(hide(later.clone()), later);
    }
}
