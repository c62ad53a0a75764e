//! The marker row: keeps the highest number in the tables of a space from falling.
//!
//! Every commit has a number, and so has each version of a row. The engine removes a journal when every space has a
//! table with a number at least as high as the highest one that the memtables of the space had when the journal was
//! sealed. A merge into the last level drops deletions, and with them their numbers: if the newest rows of a space are
//! deletions, the highest number in its tables falls, and the journal would stay until the space is written again.
//!
//! If a journal is kept after a flush of all spaces, the next commit puts the marker row of every space. The next flush
//! writes it, and no merge drops the newest version of a row that exists. So a journal is kept for one flush at most.
//! Markers are not put with every deletion: a table that contains one begins with the lowest key of all and overlaps
//! others, so the engine would merge tables of index runs that it only has to move otherwise.
//!
//! The key of the marker is before all others, so readers of any range see it nowhere, and commits cannot contain it.

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

    /// Deletes the only row of the first space, flushes and merges all, and returns the highest number that was written
    /// and the one in the tables.
    fn numbers_after_deletion(engine: &StorageEngine) -> [Option<u64>; 2] {
        for value in [Some(Bytes::from_static(b"x")), None] {
            let change = RowChange { space: Space(0), key: Bytes::from_static(b"k"), value };
            engine.commit(vec![vec![change]], Durability::Sync).unwrap();
        }
        let emptied = engine.keyspace(Space(0)).unwrap().unwrap();
        let written = emptied.tree.get_highest_memtable_seqno();
        engine.flush_all().unwrap();
        emptied.major_compact().unwrap();
        [written, emptied.tree.get_highest_persisted_seqno()]
    }

    #[test]
    fn the_number_of_a_space_rises_with_its_marker() {
        let folder = tempfile::tempdir().unwrap();
        let engine = open(folder.path());
        let [written, forgotten] = numbers_after_deletion(&engine);
        assert!(forgotten < written, "{forgotten:?}, {written:?}");
        engine.rotation.want_markers();
        let other = RowChange {
            space: Space(1),
            key: Bytes::from_static(b"k"),
            value: Some(Bytes::from_static(b"x")),
        };
        engine.commit(vec![vec![other]], Durability::Sync).unwrap();
        assert!(!engine.rotation.wants_markers());
        let [later, kept] = numbers_after_deletion(&engine);
        assert!(written < kept && kept < later, "{written:?}, {kept:?}, {later:?}");
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
