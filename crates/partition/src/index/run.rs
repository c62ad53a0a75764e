//! A run: an immutable piece of the index on disk. This file has the part that is kept in memory.
//!
//! ```text
//! rows of a run, by number
//!   0 …               universe: differences of document numbers, 4,096 per row
//!   …                 blocks, and bitmaps that are too large for one
//!   fence_first …     fences: for each block its row, the documents of all postings before it, its first key
//! ```
//!
//! Every row has a checksum; see `block`.

use crate::index::block::{put_number, take_bytes, take_count, take_number, unseal};
use crate::index::block_cache::RowAddress;
use crate::index::memory::{HeldBytes, IndexMemory};
use crate::index::universe::{NumberPacker, PackedNumbers};
use crate::keyspace::{self, INDEX, PartitionId};
use crate::storage::{damaged, read_fault};
use bytes::Bytes;
use kv::View;
use model::{DocumentNumber, Fault, PartitionOrdinal};
use std::sync::Arc;

/// Document numbers per row of the universe.
pub(crate) const NUMBERS_PER_ROW: usize = 4096;

/// The entry of a run in the manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunMeta {
    /// The partition that wrote the run; its rows have the prefix of this partition.
    pub(crate) owner: PartitionOrdinal,
    pub(crate) id: u64,
    /// Number of documents, including dead ones.
    pub(crate) documents: u32,
    /// The first row with fences.
    pub(crate) fence_first: u32,
    pub(crate) rows: u32,
    pub(crate) size_bytes: u64,
}

impl RunMeta {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let fields = [
            self.owner.0.into(),
            self.id,
            self.documents.into(),
            self.fence_first.into(),
            self.rows.into(),
            self.size_bytes,
        ];
        fields.into_iter().for_each(|field| put_number(field, out));
    }

    pub(crate) fn read(bytes: &mut &[u8]) -> Result<RunMeta, Fault> {
        let small =
            |bytes: &mut &[u8]| u32::try_from(take_number(bytes)?).map_err(|_| damaged("size of a run"));
        let owner = PartitionOrdinal::from_raw(small(bytes)?).ok_or_else(|| damaged("owner of a run"))?;
        Ok(RunMeta {
            owner,
            id: take_number(bytes)?,
            documents: small(bytes)?,
            fence_first: small(bytes)?,
            rows: small(bytes)?,
            size_bytes: take_number(bytes)?,
        })
    }
}

/// The universe and fences of a run in memory.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) partition: PartitionId,
    pub(crate) meta: RunMeta,
    pub(crate) numbers: PackedNumbers,
    pub(crate) fences: Fences,
    /// Counts its memory until it is dropped.
    _held: HeldBytes,
}

/// The rows and first keys of the blocks of a run.
#[derive(Debug, Default)]
pub(crate) struct Fences {
    keys: Vec<u8>,
    fences: Vec<Fence>,
}

#[derive(Clone, Copy, Debug)]
struct Fence {
    key_end: u32,
    row: u32,
    /// Documents of all postings in the previous blocks.
    documents_before: u64,
}

impl Fences {
    pub(crate) fn push(&mut self, key: &[u8], row: u32, documents_before: u64) {
        self.keys.extend_from_slice(key);
        let key_end = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        self.fences.push(Fence { key_end, row, documents_before });
    }

    pub(crate) fn len(&self) -> usize {
        self.fences.len()
    }

    fn size_bytes(&self) -> usize {
        self.keys.capacity() + self.fences.capacity() * size_of::<Fence>()
    }

    pub(crate) fn row(&self, block: usize) -> Option<u32> {
        self.fences.get(block).map(|fence| fence.row)
    }

    fn key(&self, block: usize) -> &[u8] {
        let start = block.checked_sub(1).map_or(0, |before| self.fences[before].key_end);
        self.keys.get(start as usize..self.fences[block].key_end as usize).unwrap_or_default()
    }

    /// The last block that starts at or before `key`; the first block if there is none.
    pub(crate) fn block_of(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.fences.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.key(middle) <= key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.saturating_sub(1)
    }

    /// The documents of all postings in the blocks `first` to `last`; an upper bound if `last` is the last of the run.
    pub(crate) fn documents_between(&self, first: usize, last: usize) -> u64 {
        let before = |block: usize| self.fences.get(block).map_or(u64::MAX, |fence| fence.documents_before);
        before(last + 1).saturating_sub(before(first))
    }

    pub(crate) fn write(&self, block: usize, out: &mut Vec<u8>) {
        let key = self.key(block);
        put_number(u64::from(self.fences[block].row), out);
        put_number(self.fences[block].documents_before, out);
        put_number(key.len() as u64, out);
        out.extend_from_slice(key);
    }

    fn read(&mut self, mut bytes: &[u8]) -> Result<(), Fault> {
        while !bytes.is_empty() {
            let row = u32::try_from(take_number(&mut bytes)?).map_err(|_| damaged("fence of a run"))?;
            let documents_before = take_number(&mut bytes)?;
            let length = take_count(&mut bytes)?;
            self.push(take_bytes(&mut bytes, length)?, row, documents_before);
        }
        Ok(())
    }
}

impl Run {
    /// A run from its parts in memory.
    pub(crate) fn new(
        memory: &Arc<IndexMemory>,
        partition: PartitionId,
        meta: RunMeta,
        numbers: PackedNumbers,
        fences: Fences,
    ) -> Run {
        let held = HeldBytes::new(memory, numbers.size_bytes(), fences.size_bytes());
        Run { partition, meta, numbers, fences, _held: held }
    }

    /// Loads the parts of a run that are kept in memory.
    pub(crate) async fn load(
        memory: &Arc<IndexMemory>,
        view: &View,
        partition: PartitionId,
        meta: RunMeta,
    ) -> Result<Run, Fault> {
        let documents = meta.documents as usize;
        let mut numbers = NumberPacker::default();
        for row in 0..universe_rows(documents) {
            let payload = read_row(view, partition, meta.id, row).await?;
            read_numbers(&payload, &mut numbers)?;
        }
        if numbers.len() != documents {
            return Err(damaged("universe of a run"));
        }
        let mut fences = Fences::default();
        for row in meta.fence_first..meta.rows {
            fences.read(&read_row(view, partition, meta.id, row).await?)?;
        }
        Ok(Run::new(memory, partition, meta, numbers.finish(), fences))
    }

    pub(crate) fn address(&self, row: u32) -> RowAddress {
        RowAddress { partition: self.partition, run: self.meta.id, row }
    }

    pub(crate) async fn row(&self, view: &View, row: u32) -> Result<Bytes, Fault> {
        read_row(view, self.partition, self.meta.id, row).await
    }
}

async fn read_row(view: &View, partition: PartitionId, run: u64, row: u32) -> Result<Bytes, Fault> {
    let key = keyspace::run_row_key(partition, run, row);
    let row = view.get(INDEX, &key).await.map_err(read_fault)?;
    unseal(row.ok_or_else(|| damaged("missing row of the index"))?)
}

/// Rows of a universe of `documents` documents.
pub(crate) fn universe_rows(documents: usize) -> u32 {
    u32::try_from(documents.div_ceil(NUMBERS_PER_ROW)).unwrap_or(u32::MAX)
}

/// Writes the next row of a universe.
pub(crate) fn write_numbers(numbers: &mut impl Iterator<Item = u64>, out: &mut Vec<u8>) {
    let mut before = 0;
    for number in numbers.take(NUMBERS_PER_ROW) {
        put_number(number - before, out);
        before = number;
    }
}

fn read_numbers(mut bytes: &[u8], numbers: &mut NumberPacker) -> Result<(), Fault> {
    let bad = || damaged("universe of a run");
    let mut number = 0_u64;
    while !bytes.is_empty() {
        number = number.checked_add(take_number(&mut bytes)?).ok_or_else(bad)?;
        let is_number = DocumentNumber::from_raw(number).is_some();
        if !is_number || !numbers.push(number) {
            return Err(bad());
        }
    }
    Ok(())
}
