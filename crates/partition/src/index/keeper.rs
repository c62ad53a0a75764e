//! The writer's side of the index: takes committed changes, keeps the pieces few.
//!
//! Every batch becomes one small segment; eight segments of a size become one of the next size, all of them become a
//! run, and runs of a size become one. Large merges are jobs beside the writer. The terms of small segments are worked
//! out when somebody asks or when enough documents are together. Knows nothing of how changes were decided and commits
//! nothing: what must be durable is handed to the writer as a batch.

mod install;
mod work;

pub(crate) use self::install::InstallBatch;
use self::install::manifest;
use self::work::Work;
use crate::index::jobs::{Inputs, Install, Job, Output, flush, flush_job, merge_job, run_merge_job};
use crate::index::manifest::{Manifest, put_dead};
use crate::index::memory::{IndexMemory, Share};
use crate::index::merge::{FAN_IN, merge_all};
use crate::index::piece::{Piece, RunPiece, SegmentPiece};
use crate::index::rules::Rules;
use crate::index::run_numbers::RunNumbers;
use crate::index::segment::{SEGMENT_DOCUMENTS_MAX, Segment};
use crate::index::terms::Version;
use crate::index::unnamed::UnnamedRun;
use crate::keyspace::PartitionId;
use crate::metrics::PartitionMetrics;
use kv::{Batch, Store};
use model::{DocumentNumber, Fault, Lsn};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::task::JoinError;

/// Flushes' worth of documents in memory beyond which the writer waits for the one under way.
const BACKLOG_MAX: usize = 4;

/// After a failed job the next one waits for this part of a flush.
const RETRY_PART: usize = 8;

/// Documents of a segment whose terms are worked out without being asked for: so many are the most that a reader may
/// have to wait for, and enough to make good use of what documents have in common.
const DRAFTED_MAX: usize = 64;

/// A segment is merged at rest with smaller ones that have at least this part of its documents together.
const REST_PART: u64 = 4;

/// The changes of one batch: each document as the batch leaves it.
pub(crate) type Changes = BTreeMap<DocumentNumber, Option<Version>>;

/// What a batch does to the index, computed while it is on its way to the disk.
#[derive(Debug)]
pub(crate) struct Prepared {
    segments: Vec<SegmentPiece>,
    /// Documents whose older version, if any, is dead.
    touched: Vec<DocumentNumber>,
}

impl Prepared {
    pub(crate) fn new(rules: &Arc<Rules>, changes: Changes) -> Prepared {
        let touched = changes.keys().copied().collect();
        let mut versions: Vec<Version> = changes.into_values().flatten().collect();
        let mut segments = Vec::with_capacity(versions.len().div_ceil(SEGMENT_DOCUMENTS_MAX));
        while !versions.is_empty() {
            let rest = versions.split_off(versions.len().min(SEGMENT_DOCUMENTS_MAX));
            let some = std::mem::replace(&mut versions, rest);
            segments.push(SegmentPiece::new(Segment::drafted(Arc::clone(rules), some)));
        }
        Prepared { segments, touched }
    }
}

/// Where an index lives.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    pub(crate) store: Store,
    pub(crate) partition: PartitionId,
    pub(crate) memory: Arc<IndexMemory>,
    pub(crate) run_numbers: Arc<RunNumbers>,
    pub(crate) metrics: PartitionMetrics,
}

/// See the file's head.
#[derive(Debug)]
pub(crate) struct Keeper {
    home: Home,
    share: Share,
    rules: Arc<Rules>,
    segments: Vec<SegmentPiece>,
    runs: Vec<RunPiece>,
    /// Runs that no manifest names yet.
    unnamed: Vec<UnnamedRun>,
    /// Rung by readers that meet damage.
    alarm: Arc<Notify>,
    /// All changes up to here are in the pieces.
    pub(crate) lsn: Lsn,
    /// The position of the manifest on disk, if there is one.
    lsn_saved: Option<Lsn>,
    /// Changes since the last flush began.
    changes: usize,
    /// Whether all segments are to become a run as soon as nothing else is under way.
    flush_wanted: bool,
    /// Changes to wait for after a failed job.
    pause: usize,
    work: Work,
}

/// What an index has to tell its writer.
#[derive(Debug)]
pub(crate) enum Event {
    /// The pieces may have changed, but not what they say; or runs wait for their manifest.
    Changed,
    /// A reader met damage: the index must be made anew.
    Damaged,
}

impl Keeper {
    /// An index without documents.
    pub(crate) fn new(home: Home, rules: Arc<Rules>, lsn: Lsn) -> Keeper {
        Keeper {
            share: Share::new(Arc::clone(&home.memory)),
            home,
            rules,
            segments: Vec::new(),
            runs: Vec::new(),
            unnamed: Vec::new(),
            alarm: Arc::new(Notify::new()),
            lsn,
            lsn_saved: None,
            changes: 0,
            flush_wanted: false,
            pause: 0,
            work: Work::Incomplete,
        }
    }

    /// The index that a manifest describes, at its position.
    pub(crate) fn saved(home: Home, rules: Arc<Rules>, manifest: &Manifest, runs: Vec<RunPiece>) -> Keeper {
        let mut keeper = Keeper::new(home, rules, manifest.lsn);
        keeper.lsn_saved = Some(manifest.lsn);
        keeper.runs = runs;
        keeper
    }

    #[cfg(test)]
    pub(crate) fn partition(&self) -> PartitionId {
        self.home.partition
    }

    #[cfg(test)]
    pub(crate) fn runs(&self) -> &[RunPiece] {
        &self.runs
    }

    pub(crate) fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    /// The pieces as they are now.
    pub(crate) fn pieces(&self) -> Arc<[Piece]> {
        let runs = self.runs.iter().cloned().map(Piece::Run);
        runs.chain(self.segments.iter().cloned().map(Piece::Segment)).collect()
    }

    /// Entries of the log behind this position may be needed to make the index anew.
    pub(crate) fn lsn_needed(&self) -> Option<Lsn> {
        let job = self.work.job().map(|job| job.lsn);
        self.lsn_saved.into_iter().chain(job).min()
    }

    /// Adds what makes an index durable that was made beside the writer. Returns the runs that the batch names.
    pub(crate) fn save(&mut self, batch: &mut Batch) -> Vec<UnnamedRun> {
        let Some(lsn) = self.lsn_saved else { return Vec::new() };
        self.unnamed.iter().for_each(|run| run.name_in(batch));
        self.put_manifest(lsn, batch);
        std::mem::take(&mut self.unnamed)
    }

    /// Writes the manifest and what has changed of the dead sets.
    fn put_manifest(&mut self, lsn: Lsn, batch: &mut Batch) {
        for piece in &mut self.runs {
            put_dead(self.home.partition, piece, batch);
            piece.saved = Arc::clone(&piece.dead);
        }
        manifest(self, lsn, &self.runs).put(self.home.partition, batch);
    }

    pub(crate) fn memory(&self) -> &Arc<IndexMemory> {
        &self.home.memory
    }

    /// What readers ring when they meet damage.
    pub(crate) fn alarm(&self) -> &Arc<Notify> {
        &self.alarm
    }

    /// Writes what is in memory as runs at once, if it is enough for that. For an index in the making, which has no
    /// manifest yet and no reader.
    pub(crate) async fn spill(&mut self) -> Result<(), Fault> {
        if self.is_flush_due() { self.spill_all().await } else { Ok(()) }
    }

    /// Has all changes so far in runs, if any are: then a manifest can be written for this position.
    pub(crate) async fn spill_rest(&mut self) -> Result<(), Fault> {
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
        for new in flush(&self.home, &segments).await? {
            self.unnamed.push(new.unnamed);
            self.runs.push(RunPiece::new(new.run));
        }
        self.tidy().await;
        Ok(())
    }

    /// Takes the changes of a committed batch.
    pub(crate) async fn apply(&mut self, prepared: Prepared, lsn: Lsn) {
        self.changes += prepared.touched.len();
        // Documents that are new have no older version: most have greater numbers than all before.
        let last = self.last_number();
        for number in prepared.touched.into_iter().take_while(|number| Some(*number) <= last) {
            self.kill(number);
        }
        self.segments.extend(prepared.segments);
        self.lsn = lsn;
        self.tidy().await;
    }

    /// The greatest number of a document in any piece.
    fn last_number(&self) -> Option<DocumentNumber> {
        let in_memory = self.segments.iter().filter_map(|piece| piece.segment.numbers().last().copied());
        let in_runs = self.runs.iter().filter_map(|piece| piece.run.numbers.last());
        in_memory.chain(in_runs.filter_map(DocumentNumber::from_raw)).max()
    }

    fn kill(&mut self, number: DocumentNumber) {
        // The newest first: what was written lately is written again more often.
        let in_memory = self.segments.iter_mut().rev().any(|piece| piece.kill(number));
        let _ = in_memory || self.runs.iter_mut().rev().any(|piece| piece.kill(number));
    }

    /// Merges what is due; large merges are begun only.
    async fn tidy(&mut self) {
        self.segments.retain(|piece| piece.live_count() > 0);
        while let Some(inputs) = self.due_segments() {
            let documents: usize = inputs.iter().map(|piece| piece.segment.numbers().len()).sum();
            if documents < self.home.memory.options().inline_documents_max {
                let merged = match joined_drafts(&inputs) {
                    Some(joined) => joined,
                    None => merge_all(inputs.clone()).await,
                };
                self.exchange(&inputs, SegmentPiece::new(merged));
            } else {
                if self.may_begin() && !self.is_flush_due() {
                    self.work = Work::Busy(merge_job(inputs, self.lsn));
                }
                break;
            }
        }
        self.share.set(self.segments.iter().map(|piece| piece.segment.size_bytes()).sum());
        self.flush_wanted |= self.home.memory.is_tight() && !self.segments.is_empty();
        self.begin_job();
    }

    /// Begins to merge segments that stayed apart because there were too few of a size: every lookup asks each of
    /// them. A large segment is merged only with others that have a good part of its documents, so a partition that
    /// is written to now and then is not merged as a whole every time.
    pub(crate) fn merge_at_rest(&mut self) {
        if !self.may_begin() || self.is_flush_due() {
            return;
        }
        let mut segments: Vec<&SegmentPiece> = self.segments.iter().collect();
        segments.sort_by_key(|piece| piece.live_count());
        let sizes: Vec<u64> = segments.iter().map(|piece| piece.live_count()).collect();
        let count = merged_at_rest(&sizes);
        if count > 1 {
            let inputs = segments.into_iter().take(count).cloned().collect();
            self.work = Work::Busy(merge_job(inputs, self.lsn));
        }
    }

    /// Works out terms that are due; called while the disk is busy with a batch.
    pub(crate) fn settle(&self) {
        let is_due = |piece: &&SegmentPiece| piece.segment.numbers().len() >= DRAFTED_MAX;
        self.segments.iter().filter(is_due).for_each(|piece| piece.segment.settle());
    }

    /// Everything that is stored was taken: from now on the index may be saved.
    pub(crate) async fn complete(&mut self) {
        self.work = Work::Idle;
        self.tidy().await;
    }

    fn may_begin(&self) -> bool {
        matches!(self.work, Work::Idle) && self.changes >= self.pause
    }

    fn begin_job(&mut self) {
        if !self.may_begin() {
            return;
        }
        if self.is_flush_due() {
            self.begin_flush();
        } else if let Some(inputs) = self.due_runs() {
            self.work = Work::Busy(run_merge_job(self.home.clone(), inputs, self.lsn));
        }
    }

    /// Begins to write what is in memory to runs, however little it is.
    pub(crate) async fn flush(&mut self) {
        self.flush_wanted = true;
        self.tidy().await;
    }

    fn begin_flush(&mut self) {
        self.flush_wanted = false;
        self.changes = 0;
        let inputs = self.segments.clone();
        self.work = Work::Busy(flush_job(self.home.clone(), inputs, self.lsn));
    }

    fn is_flush_due(&self) -> bool {
        let options = self.home.memory.options();
        let bytes: usize = self.segments.iter().map(|piece| piece.segment.size_bytes()).sum();
        // Removals leave no documents, but they make the log longer from which the index would be made again.
        self.flush_wanted
            || self.documents_in_memory() >= options.flush_documents
            || bytes >= options.flush_bytes
            || self.changes >= options.flush_documents.saturating_mul(2)
    }

    /// Documents that are not in a run yet.
    pub(crate) fn documents_in_memory(&self) -> usize {
        self.segments.iter().map(|piece| piece.segment.numbers().len()).sum()
    }

    /// Whether so much is in memory that the writer should wait for the job under way.
    pub(crate) fn is_overfull(&self) -> bool {
        let most = self.home.memory.options().flush_documents.saturating_mul(BACKLOG_MAX);
        let job = self.work.job();
        let is_flushing = job.is_some_and(|job| matches!(job.inputs, Inputs::Flushed(_)));
        job.is_some() && self.documents_in_memory() >= most || is_flushing && self.home.memory.is_tight()
    }

    /// The oldest segments of the smallest size of which there are enough.
    fn due_segments(&self) -> Option<Vec<SegmentPiece>> {
        let mut sizes: BTreeMap<u32, Vec<&SegmentPiece>> = BTreeMap::new();
        let frozen = self.work.frozen();
        let is_free =
            |piece: &&SegmentPiece| !frozen.iter().any(|frozen| Arc::ptr_eq(&frozen.segment, &piece.segment));
        for piece in self.segments.iter().filter(is_free) {
            sizes
                .entry(piece.segment.numbers().len().max(1).ilog2() / FAN_IN.ilog2())
                .or_default()
                .push(piece);
        }
        let mut group = sizes.into_values().find(|group| group.len() >= FAN_IN)?;
        group.truncate(FAN_IN);
        let live: u64 = group.iter().map(|piece| piece.live_count()).sum();
        (live <= SEGMENT_DOCUMENTS_MAX as u64).then(|| group.into_iter().cloned().collect())
    }

    /// Runs of one size of which there are enough.
    fn due_runs(&self) -> Option<Vec<RunPiece>> {
        let fan_in = self.home.memory.options().run_fan_in.max(2);
        let step = u32::try_from(fan_in).unwrap_or(u32::MAX).ilog2().max(1);
        let mut sizes: BTreeMap<u32, Vec<&RunPiece>> = BTreeMap::new();
        for piece in &self.runs {
            sizes.entry(piece.run.meta.documents.max(1).ilog2() / step).or_default().push(piece);
        }
        // Before the first manifest only a flush can tell the position.
        self.lsn_saved?;
        let group = sizes.into_values().find(|group| group.len() >= fan_in)?;
        let live: u64 = group.iter().map(|piece| piece.live_count()).sum();
        (live < u64::from(u32::MAX)).then(|| group.into_iter().cloned().collect())
    }

    /// Segments and runs.
    pub(crate) fn piece_count(&self) -> usize {
        self.segments.len() + self.runs.len()
    }

    /// Whether a job is under way that [`Keeper::event`] waits for.
    pub(crate) fn is_busy(&self) -> bool {
        self.work.job().is_some()
    }

    /// Whether runs wait for their manifest.
    pub(crate) fn has_install(&self) -> bool {
        matches!(self.work, Work::Installing(_))
    }

    /// Waits until there is something to do: a job has ended, or the store as a whole holds too much in memory and
    /// this partition the most of it. A merge in memory is taken over at once; runs wait for their manifest.
    pub(crate) async fn event(&mut self) -> Event {
        let result = tokio::select! {
            biased;
            () = self.alarm.notified() => return Event::Damaged,
            result = self.work.ended() => result,
            () = self.share.asked() => {
                self.flush_wanted = !self.segments.is_empty();
                self.begin_job();
                return Event::Changed;
            }
        };
        match std::mem::replace(&mut self.work, Work::Idle) {
            Work::Busy(Job { inputs, lsn, .. }) => self.job_ended(inputs, lsn, result).await,
            other @ (Work::Incomplete | Work::Idle | Work::Installing(_)) => self.work = other,
        }
        Event::Changed
    }

    async fn job_ended(
        &mut self,
        inputs: Inputs,
        lsn: Lsn,
        result: Result<Result<Output, Fault>, JoinError>,
    ) {
        match (result, inputs) {
            (Ok(Ok(Output::Segment(merged))), Inputs::Merged(inputs)) => {
                self.exchange(&inputs, SegmentPiece::new(merged));
                self.tidy().await;
            }
            (Ok(Ok(Output::Runs(runs))), inputs) => {
                self.work = Work::Installing(Install { inputs, runs, lsn })
            }
            (Ok(Ok(Output::Segment(_))), Inputs::Flushed(_) | Inputs::Runs(_)) => {}
            (Ok(Err(fault)), _) => {
                self.share.failed();
                self.pause = self.home.memory.options().flush_documents / RETRY_PART;
                tracing::warn!(event = "index_flush_failed", partition = ?self.home.partition, cause = %fault, "an index run could not be written; it is tried again");
            }
            (Err(error), _) => {
                self.share.failed();
                tracing::error!(event = "index_job_panicked", partition = ?self.home.partition, %error, "a merge or flush of the index panicked");
            }
        }
    }

    /// Puts `merged` in the place of its inputs. What died in them since they were given is dead in it too.
    fn exchange(&mut self, inputs: &[SegmentPiece], mut merged: SegmentPiece) {
        for number in self.died_since(inputs) {
            merged.kill(number);
        }
        self.take_out(inputs);
        if merged.live_count() > 0 {
            self.segments.push(merged);
        }
    }

    fn take_out(&mut self, inputs: &[SegmentPiece]) {
        self.segments.retain(|piece| !inputs.iter().any(|input| Arc::ptr_eq(&piece.segment, &input.segment)));
    }

    /// What died in segments since they were given to a job.
    fn died_since(&self, inputs: &[SegmentPiece]) -> Vec<DocumentNumber> {
        let mut died = Vec::new();
        for input in inputs {
            match self.segments.iter().find(|piece| Arc::ptr_eq(&piece.segment, &input.segment)) {
                Some(now) => {
                    let ranks = now.dead.added_since(&input.dead);
                    died.extend(ranks.filter_map(|rank| now.segment.numbers().get(rank as usize)));
                }
                // All of it died and it was put away.
                None => died.extend(input.live_numbers()),
            }
        }
        died
    }

    /// The number of a run that this partition wrote; others may use those that it did not.
    fn own_run(&self, piece: &RunPiece) -> Option<u64> {
        let meta = &piece.run.meta;
        (meta.owner == self.home.partition.ordinal).then_some(meta.id)
    }

    /// The numbers of the runs that this partition wrote.
    pub(crate) fn own_runs(&self) -> impl Iterator<Item = u64> {
        self.runs.iter().filter_map(|piece| self.own_run(piece))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if let Some(job) = self.work.job() {
            job.task.abort();
        }
    }
}

/// How many of some segments, given by the number of their documents in ascending order, become one at rest.
fn merged_at_rest(sizes: &[u64]) -> usize {
    let (mut count, mut documents) = (0, 0);
    for (index, size) in sizes.iter().enumerate() {
        if documents + size > SEGMENT_DOCUMENTS_MAX as u64 {
            break;
        }
        if documents * REST_PART >= *size {
            count = index + 1;
        }
        documents += size;
    }
    count
}

/// The live documents of segments, if no terms were worked out for any of them.
fn joined_drafts(inputs: &[SegmentPiece]) -> Option<Segment> {
    let mut all = Vec::new();
    let mut common = None;
    for input in inputs {
        let (rules, versions) = input.segment.versions()?;
        let live = (0_u32..).zip(versions).filter(|(rank, _)| !input.dead.contains(*rank));
        all.extend(live.map(|(_, version)| version));
        common = Some(rules);
    }
    all.sort_by_key(|version| version.number);
    Some(Segment::drafted(common?, all))
}

#[test]
fn what_is_merged_at_rest_is_worth_its_work() {
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
        assert_eq!(merged_at_rest(sizes), count, "{sizes:?}");
    }
}
