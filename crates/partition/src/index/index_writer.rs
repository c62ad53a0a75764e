//! The writer's side of the index: applies committed changes and merges pieces.
//!
//! Every batch becomes one small segment. Eight segments of a size are merged into one of the next size, all segments
//! are flushed to a run, and runs of a size are merged. Large merges are background jobs. The terms of small segments
//! are computed when a reader needs them or when enough documents have come together. Knows nothing of how changes
//! were evaluated and commits nothing: it returns batches for the writer to commit.

mod background;
mod install;
mod job_state;
mod separation;

pub(crate) use self::install::InstallBatch;
use self::install::manifest;
use self::job_state::{JobState, MergeState};
use crate::index::jobs::{Inputs, Job, flush, merge_job};
use crate::index::manifest::{Manifest, put_dead};
use crate::index::memory::{IndexMemory, MemoryShare};
use crate::index::merge::{FAN_IN, merge_all};
use crate::index::piece::{Piece, RunPiece, SegmentPiece};
use crate::index::rules::Rules;
use crate::index::run::Run;
use crate::index::run_numbers::RunNumbers;
use crate::index::segment::{SEGMENT_DOCUMENTS_MAX, Segment};
use crate::index::terms::DocumentVersion;
use crate::index::unnamed::UnnamedRun;
use crate::keyspace::PartitionId;
use crate::lineage::Lineage;
use crate::metrics::PartitionMetrics;
use kv::{Batch, Store};
use model::{DocumentNumber, Fault, Lsn};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use tokio::sync::Notify;

/// The writer waits for a running flush when memory holds the documents of more flushes than this.
const BACKLOG_MAX: usize = 4;

/// After a failed job the next one waits for this fraction of a flush.
const RETRY_PART: usize = 8;

/// Documents of a segment from which on its terms are computed in advance: the most that a reader may have to wait
/// for, and enough to share the work on what documents have in common.
const PENDING_DOCUMENTS_MAX: usize = 64;

/// An idle merge includes a segment if the smaller ones have at least this fraction of its documents together.
const IDLE_MERGE_PART: u64 = 4;

/// The changes of one batch: each document as the batch leaves it.
pub(crate) type Changes = BTreeMap<DocumentNumber, Option<DocumentVersion>>;

/// The changes of a batch to the index, computed while the batch is in flight.
#[derive(Debug)]
pub(crate) struct Prepared {
    segments: Vec<SegmentPiece>,
    /// Documents whose older version, if any, is dead.
    touched: Vec<DocumentNumber>,
}

impl Prepared {
    pub(crate) fn new(rules: &Arc<Rules>, changes: Changes) -> Prepared {
        let touched = changes.keys().copied().collect();
        let mut versions: Vec<DocumentVersion> = changes.into_values().flatten().collect();
        let mut segments = Vec::with_capacity(versions.len().div_ceil(SEGMENT_DOCUMENTS_MAX));
        while !versions.is_empty() {
            let rest = versions.split_off(versions.len().min(SEGMENT_DOCUMENTS_MAX));
            let some = std::mem::replace(&mut versions, rest);
            segments.push(SegmentPiece::new(Segment::pending(Arc::clone(rules), some)));
        }
        Prepared { segments, touched }
    }
}

/// What an index needs of its partition and store.
#[derive(Clone, Debug)]
pub(crate) struct IndexEnvironment {
    pub(crate) store: Store,
    pub(crate) partition: PartitionId,
    /// The partition, its keys and its ancestors.
    pub(crate) lineage: Arc<Lineage>,
    /// Runs that are in memory already, because the partition was split from one that used them.
    pub(crate) loaded: Arc<[Weak<Run>]>,
    pub(crate) memory: Arc<IndexMemory>,
    pub(crate) run_numbers: Arc<RunNumbers>,
    pub(crate) metrics: PartitionMetrics,
}

/// The pieces of a partition's index and the job that changes them.
#[derive(Debug)]
pub(crate) struct IndexWriter {
    environment: IndexEnvironment,
    share: MemoryShare,
    rules: Arc<Rules>,
    segments: Vec<SegmentPiece>,
    runs: Vec<RunPiece>,
    /// Runs that no manifest names yet.
    unnamed: Vec<UnnamedRun>,
    /// Notified by readers that find damage.
    damage_signal: Arc<Notify>,
    /// All changes up to here are in the pieces.
    pub(crate) lsn: Lsn,
    /// No piece has a document with a greater number.
    number_last: Option<DocumentNumber>,
    /// The position of the stored manifest, if there is one.
    lsn_saved: Option<Lsn>,
    /// Changes since the last flush started.
    changes: usize,
    /// Whether to flush all segments as soon as no other job runs.
    flush_wanted: bool,
    /// Changes to wait for after a failed job.
    pause: usize,
    /// Whether runs of ancestors are rewritten.
    separates: bool,
    job_state: JobState,
    merge_state: MergeState,
}

/// Events of an index for the partition's writer.
#[derive(Debug)]
pub(crate) enum IndexWriterEvent {
    /// The pieces may have changed, but not their contents; or runs wait for their manifest.
    Changed,
    /// A reader found damage: the index must be rebuilt.
    Damaged,
}

impl IndexWriter {
    /// An empty index.
    pub(crate) fn new(environment: IndexEnvironment, rules: Arc<Rules>, lsn: Lsn) -> IndexWriter {
        IndexWriter {
            share: MemoryShare::new(Arc::clone(&environment.memory)),
            environment,
            rules,
            segments: Vec::new(),
            runs: Vec::new(),
            unnamed: Vec::new(),
            damage_signal: Arc::new(Notify::new()),
            lsn,
            number_last: None,
            lsn_saved: None,
            changes: 0,
            flush_wanted: false,
            pause: 0,
            separates: false,
            job_state: JobState::Incomplete,
            merge_state: MergeState::None,
        }
    }

    /// The index that a manifest describes, at its position.
    pub(crate) fn saved(
        environment: IndexEnvironment,
        rules: Arc<Rules>,
        manifest: &Manifest,
        runs: Vec<RunPiece>,
    ) -> IndexWriter {
        let mut index_writer = IndexWriter::new(environment, rules, manifest.lsn);
        index_writer.lsn_saved = Some(manifest.lsn);
        let in_runs = runs.iter().filter_map(|piece| piece.run.numbers.last());
        index_writer.number_last = in_runs.filter_map(DocumentNumber::from_raw).max();
        index_writer.runs = runs;
        index_writer
    }

    #[cfg(test)]
    pub(crate) fn partition(&self) -> PartitionId {
        self.environment.partition
    }

    pub(crate) fn run_pieces(&self) -> &[RunPiece] {
        &self.runs
    }

    /// The stored manifest, if there is one.
    pub(crate) fn saved_manifest(&self) -> Option<Manifest> {
        self.lsn_saved.map(|lsn| manifest(self, lsn, &self.runs))
    }

    pub(crate) fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    /// The current pieces.
    pub(crate) fn pieces(&self) -> Arc<[Piece]> {
        let runs = self.runs.iter().cloned().map(Piece::Run);
        runs.chain(self.segments.iter().cloned().map(Piece::Segment)).collect()
    }

    /// Log entries after this position may be needed to recover the index.
    pub(crate) fn lsn_needed(&self) -> Option<Lsn> {
        let job = self.job_state.job().map(|job| job.lsn);
        self.lsn_saved.into_iter().chain(job).min()
    }

    /// Adds the manifest of an index that was built in the background. Returns the runs that the batch names.
    pub(crate) fn save(&mut self, batch: &mut Batch) -> Vec<UnnamedRun> {
        let Some(lsn) = self.lsn_saved else { return Vec::new() };
        self.unnamed.iter().for_each(|run| run.name_in(batch));
        self.put_manifest(lsn, batch);
        std::mem::take(&mut self.unnamed)
    }

    /// Writes the manifest and the changed parts of the dead sets.
    fn put_manifest(&mut self, lsn: Lsn, batch: &mut Batch) {
        for piece in &mut self.runs {
            put_dead(self.environment.partition, piece, batch);
            piece.saved = Arc::clone(&piece.dead);
        }
        manifest(self, lsn, &self.runs).put(self.environment.partition, batch);
    }

    pub(crate) fn memory(&self) -> &Arc<IndexMemory> {
        &self.environment.memory
    }

    /// The signal for readers that find damage.
    pub(crate) fn damage_signal(&self) -> &Arc<Notify> {
        &self.damage_signal
    }

    /// Flushes memory to runs at once, if a flush is due. For an index that is being built, which has no manifest and
    /// no readers.
    pub(crate) async fn spill(&mut self) -> Result<(), Fault> {
        if self.is_flush_due() { self.spill_all().await } else { Ok(()) }
    }

    /// Flushes all changes if any run was written: a manifest can then be written for this position.
    pub(crate) async fn spill_remainder(&mut self) -> Result<(), Fault> {
        if self.unnamed.is_empty() {
            return Ok(());
        }
        self.spill_all().await?;
        self.lsn_saved = Some(self.lsn);
        Ok(())
    }

    async fn spill_all(&mut self) -> Result<(), Fault> {
        self.changes = 0;
        let segments = std::mem::take(&mut self.segments);
        for new in flush(&self.environment, &segments).await? {
            self.unnamed.push(new.unnamed);
            self.runs.push(RunPiece::new(new.run));
        }
        self.merge_due().await;
        Ok(())
    }

    /// Applies the changes of a committed batch.
    pub(crate) async fn apply(&mut self, prepared: Prepared, lsn: Lsn) {
        self.changes += prepared.touched.len();
        // New documents have no older version; most have greater numbers than all before.
        let last = self.number_last;
        self.number_last = last.max(prepared.touched.last().copied());
        for number in prepared.touched.into_iter().take_while(|number| Some(*number) <= last) {
            self.mark_dead(number);
        }
        self.segments.extend(prepared.segments);
        self.lsn = lsn;
        self.merge_due().await;
    }

    fn mark_dead(&mut self, number: DocumentNumber) {
        // Newest first: recently written documents are written again more often.
        let in_memory = self.segments.iter_mut().rev().any(|piece| piece.mark_dead(number));
        let _ = in_memory || self.runs.iter_mut().rev().any(|piece| piece.mark_dead(number));
    }

    /// Merges what is due. Large merges are only started.
    async fn merge_due(&mut self) {
        self.segments.retain(|piece| piece.live_count() > 0);
        while let Some(inputs) = self.due_segments() {
            let documents: usize = inputs.iter().map(|piece| piece.segment.numbers().len()).sum();
            if documents < self.environment.memory.options().inline_documents_max {
                let merged = match joined_pending(&inputs) {
                    Some(joined) => joined,
                    None => merge_all(inputs.clone()).await,
                };
                self.replace_inputs(&inputs, SegmentPiece::new(merged));
            } else {
                if self.may_begin() && !self.is_flush_due() {
                    self.job_state = JobState::Busy(merge_job(inputs, self.lsn));
                }
                break;
            }
        }
        self.share.set(self.segments.iter().map(|piece| piece.segment.size_bytes()).sum());
        self.flush_wanted |= self.environment.memory.is_tight() && !self.segments.is_empty();
        self.begin_job();
    }

    /// Starts to merge segments that were too few of a size, because every lookup reads each of them. A large segment
    /// is included only if the smaller ones have a good part of its documents, so that occasional writes to a
    /// partition do not merge all of it every time.
    pub(crate) fn merge_when_idle(&mut self) {
        if !self.may_begin() || self.is_flush_due() {
            return;
        }
        let mut segments: Vec<&SegmentPiece> = self.segments.iter().collect();
        segments.sort_by_key(|piece| piece.live_count());
        let sizes: Vec<u64> = segments.iter().map(|piece| piece.live_count()).collect();
        let count = merged_when_idle(&sizes);
        if count > 1 {
            let inputs = segments.into_iter().take(count).cloned().collect();
            self.job_state = JobState::Busy(merge_job(inputs, self.lsn));
        }
    }

    /// Computes the terms that are due; called while the disk is busy with a batch.
    pub(crate) fn compute_due_terms(&self) {
        let is_due = |piece: &&SegmentPiece| piece.segment.numbers().len() >= PENDING_DOCUMENTS_MAX;
        self.segments.iter().filter(is_due).for_each(|piece| piece.segment.compute_terms());
    }

    /// All stored changes were applied: jobs may start and the index may be saved.
    pub(crate) async fn complete(&mut self) {
        self.job_state = JobState::Idle;
        self.merge_due().await;
    }

    fn may_begin(&self) -> bool {
        matches!(self.job_state, JobState::Idle) && self.changes >= self.pause
    }

    /// Starts to flush what is in memory, however little.
    pub(crate) async fn flush(&mut self) {
        self.flush_wanted = true;
        self.merge_due().await;
    }

    fn is_flush_due(&self) -> bool {
        let options = self.environment.memory.options();
        // This runs for every batch: one pass over the segments.
        let add = |(documents, bytes), piece: &SegmentPiece| {
            (documents + piece.segment.numbers().len(), bytes + piece.segment.size_bytes())
        };
        let (documents, bytes) = self.segments.iter().fold((0, 0), add);
        // Removals leave no documents, but they lengthen the log that a recovery replays.
        self.flush_wanted
            || documents >= options.flush_documents
            || bytes >= options.flush_bytes
            || self.changes >= options.flush_documents.saturating_mul(2)
    }

    /// Documents that are not in a run yet.
    pub(crate) fn documents_in_memory(&self) -> usize {
        self.segments.iter().map(|piece| piece.segment.numbers().len()).sum()
    }

    /// Whether so much is in memory that the writer should wait for the running job.
    pub(crate) fn is_overfull(&self) -> bool {
        let most = self.environment.memory.options().flush_documents.saturating_mul(BACKLOG_MAX);
        let job = self.job_state.job();
        let is_flushing = matches!(job, Some(Job { inputs: Inputs::Flushed(_), .. }));
        job.is_some() && self.documents_in_memory() >= most
            || is_flushing && self.environment.memory.is_tight()
    }

    /// The oldest segments of the smallest size that has enough of them.
    fn due_segments(&self) -> Option<Vec<SegmentPiece>> {
        let frozen = self.job_state.frozen();
        let is_free =
            |piece: &&SegmentPiece| !frozen.iter().any(|frozen| Arc::ptr_eq(&frozen.segment, &piece.segment));
        let free = || self.segments.iter().filter(is_free);
        let size = |piece: &SegmentPiece| piece.segment.numbers().len().max(1).ilog2() / FAN_IN.ilog2();
        let due = due_size(free().map(size), FAN_IN)?;
        let group: Vec<_> = free().filter(|piece| size(piece) == due).take(FAN_IN).cloned().collect();
        let live: u64 = group.iter().map(SegmentPiece::live_count).sum();
        (live <= SEGMENT_DOCUMENTS_MAX as u64).then_some(group)
    }

    /// Runs of a size that has enough of them.
    fn due_runs(&self) -> Option<Vec<RunPiece>> {
        // Before the first manifest only a flush determines the position.
        self.lsn_saved?;
        let fan_in = self.environment.memory.options().run_fan_in.max(2);
        let step = u32::try_from(fan_in).unwrap_or(u32::MAX).ilog2().max(1);
        let size = |piece: &RunPiece| piece.run.meta.documents.max(1).ilog2() / step;
        let due = due_size(self.runs.iter().map(size), fan_in)?;
        let group: Vec<_> = self.runs.iter().filter(|piece| size(piece) == due).cloned().collect();
        let live: u64 = group.iter().map(RunPiece::live_count).sum();
        (live < u64::from(u32::MAX)).then_some(group)
    }

    /// Number of segments and runs.
    pub(crate) fn piece_count(&self) -> usize {
        self.segments.len() + self.runs.len()
    }

    /// Whether a job runs that [`IndexWriter::next_event`] waits for and that should end soon.
    pub(crate) fn is_busy(&self) -> bool {
        self.job_state.job().is_some() || self.merge_state.is_prompt()
    }

    /// Whether work would be lost if the index were dropped now.
    pub(crate) fn is_working(&self) -> bool {
        self.is_busy() || self.has_install() || !matches!(self.merge_state, MergeState::None)
    }

    /// Whether runs wait for their manifest.
    pub(crate) fn has_install(&self) -> bool {
        matches!(self.job_state, JobState::Installing(_))
    }

    /// Waits until there is something to do: a job has ended, or all indexes of the store use too much memory and this
    /// partition uses the most. A merge in memory is applied at once; runs wait for their manifest.
    pub(crate) async fn next_event(&mut self) -> IndexWriterEvent {
        tokio::select! {
            biased;
            () = self.damage_signal.notified() => return IndexWriterEvent::Damaged,
            result = self.job_state.ended() => self.on_job_ended(result).await,
            result = self.merge_state.ended() => self.on_merge_ended(result).await,
            () = self.share.flush_requested() => {
                self.flush_wanted = !self.segments.is_empty();
                self.begin_job();
            }
        }
        IndexWriterEvent::Changed
    }

    /// Replaces the inputs by `merged`. Documents that died in them since the job started are dead in it too.
    fn replace_inputs(&mut self, inputs: &[SegmentPiece], mut merged: SegmentPiece) {
        for number in self.died_since(inputs) {
            merged.mark_dead(number);
        }
        self.take_out(inputs);
        if merged.live_count() > 0 {
            self.segments.push(merged);
        }
    }

    fn take_out(&mut self, inputs: &[SegmentPiece]) {
        self.segments.retain(|piece| !inputs.iter().any(|input| Arc::ptr_eq(&piece.segment, &input.segment)));
    }

    /// Documents that died in segments since a job started.
    fn died_since(&self, inputs: &[SegmentPiece]) -> Vec<DocumentNumber> {
        let mut died = Vec::new();
        for input in inputs {
            match self.segments.iter().find(|piece| Arc::ptr_eq(&piece.segment, &input.segment)) {
                Some(now) => {
                    let ranks = now.dead.added_since(&input.dead);
                    died.extend(ranks.filter_map(|rank| now.segment.numbers().get(rank as usize)));
                }
                // All of it is dead and it was removed.
                None => died.extend(input.live_numbers()),
            }
        }
        died
    }

    /// The number of a run that this partition wrote. Runs of other partitions may still be in use by them.
    fn own_run(&self, piece: &RunPiece) -> Option<u64> {
        let meta = &piece.run.meta;
        (meta.owner == self.environment.partition.ordinal).then_some(meta.id)
    }

    /// The numbers of the runs that this partition wrote.
    pub(crate) fn own_runs(&self) -> impl Iterator<Item = u64> {
        self.runs.iter().filter_map(|piece| self.own_run(piece))
    }
}

impl Drop for IndexWriter {
    fn drop(&mut self) {
        for job in self.job_state.job().into_iter().chain(self.merge_state.job()) {
            job.task.abort();
        }
    }
}

/// The smallest size that enough pieces have. Sizes are logarithms of counts of documents.
fn due_size(sizes: impl Iterator<Item = u32>, enough: usize) -> Option<u32> {
    let mut counts = [0; u64::BITS as usize];
    for count in sizes.filter_map(|size| usize::try_from(size).ok()) {
        counts[count] += 1;
    }
    (0..).zip(counts).find(|(_, count)| *count >= enough).map(|(size, _)| size)
}

/// How many segments an idle merge takes, given their document counts in ascending order.
fn merged_when_idle(sizes: &[u64]) -> usize {
    let (mut count, mut documents) = (0, 0);
    for (index, size) in sizes.iter().enumerate() {
        if documents + size > SEGMENT_DOCUMENTS_MAX as u64 {
            break;
        }
        if documents * IDLE_MERGE_PART >= *size {
            count = index + 1;
        }
        documents += size;
    }
    count
}

/// The live documents of segments, if the terms of none of them are computed.
fn joined_pending(inputs: &[SegmentPiece]) -> Option<Segment> {
    let mut all = Vec::new();
    let mut common = None;
    for input in inputs {
        let (rules, versions) = input.segment.versions()?;
        let live = (0_u32..).zip(versions).filter(|(rank, _)| !input.dead.contains(*rank));
        all.extend(live.map(|(_, version)| version));
        common = Some(rules);
    }
    all.sort_by_key(|version| version.number);
    Some(Segment::pending(common?, all))
}

#[test]
fn an_idle_merge_is_worth_its_work() {
    for (sizes, count) in [
        (&[][..], 0),
        (&[7], 0),
        (&[7, 7], 2),
        (&[1, 40, 300, 300, 2500], 5),
        (&[1, 40, 300, 300, 2600], 4),
        (&[1, 2, 60_000], 2),
        (&[30_000, 40_000], 0),
        (&[20_000, 20_000, 30_000], 2),
    ] {
        assert_eq!(merged_when_idle(sizes), count, "{sizes:?}");
    }
}
