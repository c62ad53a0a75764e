//! Writes sorted rows directly into tables of the engine.
//!
//! The engine ends an ingest under the lock of its journal: it flushes the memtable of the space, syncs the new tables
//! and adds them to the space. No commit is possible meanwhile. So the tables are synced before, when nobody waits.

use std::fs::File;
use std::io;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use fjall::{AbstractTree, Keyspace};

use super::engine::StorageEngine;
use super::inspect::TABLES_FOLDER;
use crate::batch::Space;
use crate::fault::Cause;

/// Writes rows directly into tables.
pub(super) fn ingest_now(
    engine: &StorageEngine,
    writing: &Mutex<()>,
    space: Space,
    rows: Vec<(Bytes, Bytes)>,
) -> Result<(), Cause> {
    let keyspace = engine.keyspace_to_write(space)?;
    let table_first = keyspace.tree.next_table_id();
    let mut ingestion = keyspace.start_ingestion().map_err(Cause::new)?;
    for (key, value) in rows {
        ingestion.write(key, value).map_err(Cause::new)?;
    }
    sync_tables_since(keyspace, table_first).map_err(Cause::new)?;
    // Finishing flushes the space's memtable. If a part of a batch is in a table and the rest only in an unsynced
    // journal, a power failure would tear the batch. So the journal is synced first, and nobody may write in between.
    let _writing = writing.lock().unwrap_or_else(PoisonError::into_inner);
    engine.sync()?;
    ingestion.finish().map_err(Cause::new)
}

/// Syncs what was written to the tables that have this number or a later one, and returns how many there are. Tables of
/// flushes and merges that began meanwhile are among them, which does no harm. The engine syncs the rest of a table
/// when it ends it.
fn sync_tables_since(keyspace: &Keyspace, table_first: u64) -> io::Result<usize> {
    let folder = keyspace.path().join(TABLES_FOLDER);
    let mut synced = 0;
    for table in table_first..keyspace.tree.next_table_id() {
        match File::open(folder.join(table.to_string())) {
            Ok(file) => {
                file.sync_data()?;
                synced += 1;
            }
            // A merge has already replaced it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(synced)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::SpaceOptions;
    use crate::embedded::EmbeddedOptions;
    use crate::embedded::folder::Folder;
    use std::sync::Arc;

    const SPACES: [SpaceOptions; 1] = [SpaceOptions { name: "rows", compressed: false }];

    /// Otherwise nothing would be synced before commits have to wait.
    #[test]
    fn the_table_of_an_ingest_is_found_before_it_is_finished() {
        let folder = tempfile::tempdir().unwrap();
        let options = EmbeddedOptions::new(folder.path(), &SPACES);
        let opened = Arc::new(Folder::open(folder.path(), &SPACES).unwrap());
        let engine = StorageEngine::open(&opened, &options).unwrap();
        let keyspace = engine.keyspace_to_write(Space(0)).unwrap();
        for round in 0..2_u32 {
            let table_first = keyspace.tree.next_table_id();
            assert_eq!(sync_tables_since(keyspace, table_first).unwrap(), 0);
            let mut ingestion = keyspace.start_ingestion().unwrap();
            for row in 0..1_000_u32 {
                let key = [round.to_be_bytes(), row.to_be_bytes()].concat();
                ingestion.write(key, vec![7; 1_000]).unwrap();
            }
            assert_eq!(sync_tables_since(keyspace, table_first).unwrap(), 1);
            let table = keyspace.path().join(TABLES_FOLDER).join(table_first.to_string());
            assert!(std::fs::metadata(table).unwrap().len() > 900_000);
            ingestion.finish().unwrap();
        }
        assert_eq!(keyspace.len().unwrap(), 2_000);
    }
}
