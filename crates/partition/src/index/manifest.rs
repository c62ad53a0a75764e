//! The stored description of a partition's index: its runs, their dead sets, and the position reached.
//!
//! ```text
//! manifest   format:1 = 4 · fingerprint of the policy:16 · length of its definition · definition · lsn · count of runs · for each: see `run`
//! dead set   roaring bitmap of dead ranks of a run, 65,536 ranks per row
//! ```
//!
//! Both have a checksum. One batch writes the manifest and everything that it names: a run is part of the index from
//! that batch on, and every change up to the position is in the runs.

use crate::index::block::{
    put_number, read_bitmap, seal, take_bytes, take_count, take_number, unseal, write_bitmap,
};
use crate::index::dead::{DeadSet, chunk_count};
use crate::index::memory::IndexMemory;
use crate::index::piece::RunPiece;
use crate::index::run::{Run, RunMeta};
use crate::keyspace::{self, INDEX, META, PartitionId};
use crate::storage::{damaged, read_fault};
use bytes::Bytes;
use kv::{Batch, Direction, KeyRange, ScanLimit, View};
use model::{Fault, Lsn};
use std::collections::BTreeSet;
use std::sync::Arc;

const FORMAT: u8 = 4;
/// Rows of dead sets per scan.
const STEP: ScanLimit = ScanLimit { rows: 1024, bytes: 4 << 20 };

/// Identifies what terms a policy produces.
pub type Fingerprint = [u8; 16];

/// The stored description of a partition's index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) fingerprint: Fingerprint,
    /// The encoded definition; see `Rules::definition`.
    pub(crate) definition: Bytes,
    pub(crate) lsn: Lsn,
    pub(crate) runs: Vec<RunMeta>,
}

impl Manifest {
    pub(crate) fn put(&self, partition: PartitionId, batch: &mut Batch) {
        let mut bytes = vec![FORMAT];
        bytes.extend_from_slice(&self.fingerprint);
        put_number(self.definition.len() as u64, &mut bytes);
        bytes.extend_from_slice(&self.definition);
        for number in [self.lsn.0, self.runs.len() as u64] {
            put_number(number, &mut bytes);
        }
        self.runs.iter().for_each(|run| run.write(&mut bytes));
        batch.put(META, keyspace::manifest_key(partition), seal(&bytes));
    }

    pub(crate) async fn load(view: &View, partition: PartitionId) -> Result<Option<Manifest>, Fault> {
        let row = view.get(META, &keyspace::manifest_key(partition)).await.map_err(read_fault)?;
        let Some(row) = row else { return Ok(None) };
        let payload = unseal(row)?;
        let mut bytes = payload.as_ref();
        if take_bytes(&mut bytes, 1)? != [FORMAT] {
            return Err(damaged("format of the index"));
        }
        let fingerprint = take_bytes(&mut bytes, 16)?;
        let fingerprint = fingerprint.try_into().map_err(|_| damaged("fingerprint of the index"))?;
        let length = take_count(&mut bytes)?;
        let definition = Bytes::copy_from_slice(take_bytes(&mut bytes, length)?);
        let lsn = Lsn(take_number(&mut bytes)?);
        let count = take_count(&mut bytes)?;
        let runs = (0..count).map(|_| RunMeta::read(&mut bytes)).collect::<Result<_, _>>()?;
        Ok(Some(Manifest { fingerprint, definition, lsn, runs }))
    }
}

/// Loads a run with its dead set. A run that is `loaded` already is shared.
pub(crate) async fn load_piece(
    memory: &Arc<IndexMemory>,
    view: &View,
    partition: PartitionId,
    meta: RunMeta,
    loaded: Option<Arc<Run>>,
) -> Result<RunPiece, Fault> {
    let mut dead = DeadSet::default();
    let mut range = keyspace::dead_range(partition, meta.owner, meta.id);
    loop {
        let chunk = view.scan(META, range.clone(), Direction::Forward, STEP).await.map_err(read_fault)?;
        for (_, row) in &chunk.rows {
            if !dead.add_chunk(read_bitmap(&unseal(row.clone())?)?) {
                return Err(damaged("dead set of a run"));
            }
        }
        match chunk.rows.last() {
            Some((key, _)) if chunk.more => range = keyspace::after(&range, key),
            Some(_) | None => break,
        }
    }
    if dead.max().is_some_and(|last| last >= meta.documents) {
        return Err(damaged("dead set of a run"));
    }
    let owner = PartitionId { ordinal: meta.owner, ..partition };
    let run = match loaded {
        Some(run) => run,
        None => Arc::new(Run::load(memory, view, owner, meta).await?),
    };
    let dead = Arc::new(dead);
    Ok(RunPiece { run, saved: Arc::clone(&dead), dead })
}

/// Writes the parts of a dead set that have changed since it was saved.
pub(crate) fn put_dead(partition: PartitionId, piece: &RunPiece, batch: &mut Batch) {
    for (chunk, ranks) in piece.dead.changed_since(&piece.saved) {
        let key = keyspace::dead_key(partition, piece.run.meta.owner, piece.run.meta.id, chunk);
        batch.put(META, key, seal(&write_bitmap(ranks)));
    }
}

/// Deletes the dead set of a replaced run.
pub(crate) fn delete_dead(partition: PartitionId, piece: &RunPiece, batch: &mut Batch) {
    let meta = &piece.run.meta;
    for chunk in 0..chunk_count(meta.documents) {
        batch.delete(META, keyspace::dead_key(partition, meta.owner, meta.id, chunk));
    }
}

/// The runs that have rows in the store.
pub(crate) async fn stored_runs(view: &View, partition: PartitionId) -> Result<BTreeSet<u64>, Fault> {
    let mut found = BTreeSet::new();
    let mut range = keyspace::runs_range(partition);
    loop {
        let limit = ScanLimit { rows: 1, bytes: 1 };
        let chunk = view.scan(INDEX, range.clone(), Direction::Forward, limit).await.map_err(read_fault)?;
        let Some((key, _)) = chunk.rows.first() else {
            return Ok(found);
        };
        let run = keyspace::parse_run(key).ok_or_else(|| damaged("key of the index"))?;
        found.insert(run);
        let end = keyspace::run_range(partition, run).end;
        range = KeyRange { start: end.unwrap_or_default(), end: range.end };
    }
}
