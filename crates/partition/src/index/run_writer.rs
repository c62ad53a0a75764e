//! Writes a run: sorted terms become blocks, rows and ingests.
//!
//! Rows are ingested a few megabytes at a time, so memory does not grow with the run. They are then durable, and are
//! kept once the manifest that names them is committed.

use crate::index::block::{BlockBuilder, StoredPosting, seal};
use crate::index::index_writer::IndexEnvironment;
use crate::index::memory::IndexMemory;
use crate::index::merge::TERMS_PER_TURN;
use crate::index::run::{Fences, NUMBERS_PER_ROW, Run, RunMeta, universe_rows, write_numbers};
use crate::index::segment::Segment;
use crate::index::universe::{NumberPacker, PackedNumbers};
use crate::index::unnamed::UnnamedRun;
use crate::keyspace::{self, PartitionId};
use bytes::Bytes;
use model::Fault;
use std::sync::Arc;

/// Bytes of rows per ingest.
const PART_BYTES: usize = 8 << 20;
/// Size at which a row with fences is closed.
const FENCE_ROW_BYTES: usize = 16 * 1024;

/// A durable run that no manifest names yet.
#[derive(Debug)]
pub(crate) struct NewRun {
    pub(crate) run: Run,
    pub(crate) unnamed: UnnamedRun,
}

/// Writes the rows of a run from its terms in order.
pub(crate) struct RunWriter {
    partition: PartitionId,
    id: u64,
    memory: Arc<IndexMemory>,
    numbers: PackedNumbers,
    block: BlockBuilder,
    fences: Fences,
    /// Documents of all postings so far, and of those before the open block.
    documents: u64,
    documents_before: u64,
    rows: u32,
    part: Vec<(Bytes, Bytes)>,
    part_bytes: usize,
    size_bytes: u64,
    unnamed: UnnamedRun,
}

impl RunWriter {
    pub(crate) async fn new(
        environment: &IndexEnvironment,
        numbers: PackedNumbers,
    ) -> Result<RunWriter, Fault> {
        let (partition, id) = (environment.partition, environment.run_numbers.take());
        let mut writer = RunWriter {
            partition,
            id,
            memory: Arc::clone(&environment.memory),
            numbers: PackedNumbers::default(),
            block: BlockBuilder::default(),
            fences: Fences::default(),
            documents: 0,
            documents_before: 0,
            rows: 0,
            part: Vec::new(),
            part_bytes: 0,
            size_bytes: 0,
            unnamed: UnnamedRun::new(environment.store.clone(), partition, id),
        };
        for row in 0..universe_rows(numbers.len()) {
            let mut payload = Vec::new();
            write_numbers(&mut numbers.iter_from(row as usize * NUMBERS_PER_ROW), &mut payload);
            writer.row(&payload).await?;
        }
        writer.numbers = numbers;
        Ok(writer)
    }

    /// Adds a term, path and code, in ascending order, with ascending ranks. A term without documents is left out.
    pub(crate) async fn term(&mut self, key: &[u8], ranks: &[u32]) -> Result<(), Fault> {
        if ranks.is_empty() {
            return Ok(());
        }
        let posting = StoredPosting::new(ranks, self.numbers.len());
        let elsewhere = match posting.large() {
            Some(bytes) => Some(self.row(bytes).await?),
            None => None,
        };
        self.block.push(key, &posting, elsewhere);
        self.documents += posting.count();
        if self.block.is_full() {
            self.end_block().await?;
        }
        Ok(())
    }

    async fn end_block(&mut self) -> Result<(), Fault> {
        let (first_key, payload) = self.block.finish();
        let row = self.row(&payload).await?;
        self.fences.push(&first_key, row, self.documents_before);
        self.documents_before = self.documents;
        Ok(())
    }

    /// Adds a row and returns its number.
    async fn row(&mut self, payload: &[u8]) -> Result<u32, Fault> {
        let number = self.rows;
        let row = seal(payload);
        self.rows += 1;
        self.part_bytes += row.len();
        self.size_bytes += row.len() as u64;
        self.part.push((keyspace::run_row_key(self.partition, self.id, number), row));
        if self.part_bytes >= PART_BYTES {
            self.end_part().await?;
        }
        Ok(number)
    }

    async fn end_part(&mut self) -> Result<(), Fault> {
        self.part_bytes = 0;
        let rows = std::mem::take(&mut self.part);
        self.unnamed.ingest(rows).await
    }

    pub(crate) async fn finish(mut self) -> Result<NewRun, Fault> {
        if !self.block.is_empty() {
            self.end_block().await?;
        }
        let fence_first = self.rows;
        let mut payload = Vec::new();
        for block in 0..self.fences.len() {
            self.fences.write(block, &mut payload);
            if payload.len() >= FENCE_ROW_BYTES || block + 1 == self.fences.len() {
                self.row(&payload).await?;
                payload.clear();
            }
        }
        if !self.part.is_empty() {
            self.end_part().await?;
        }
        let meta = RunMeta {
            owner: self.partition.ordinal,
            id: self.id,
            documents: u32::try_from(self.numbers.len()).unwrap_or(u32::MAX),
            fence_first,
            rows: self.rows,
            size_bytes: self.size_bytes,
        };
        let RunWriter { partition, memory, numbers, fences, unnamed, .. } = self;
        Ok(NewRun { run: Run::new(&memory, partition, meta, numbers, fences), unnamed })
    }
}

/// Writes a segment as a run.
pub(crate) async fn write_segment(
    environment: &IndexEnvironment,
    segment: &Segment,
) -> Result<NewRun, Fault> {
    let mut numbers = NumberPacker::default();
    segment.numbers().iter().for_each(|number| {
        numbers.push(number.raw());
    });
    let mut writer = RunWriter::new(environment, numbers.finish()).await?;
    let mut key = Vec::new();
    let mut ranks = Vec::new();
    for field in 0..segment.field_count() {
        for term in segment.terms(field) {
            key.clear();
            key.extend_from_slice(segment.path(field));
            key.extend_from_slice(segment.code(term));
            ranks.clear();
            segment.posting(term).for_each(segment.numbers().len(), |rank| ranks.push(rank));
            writer.term(&key, &ranks).await?;
            if term % TERMS_PER_TURN == 0 {
                tokio::task::yield_now().await;
            }
        }
    }
    writer.finish().await
}
