//! The writer's side of the index: takes committed changes, keeps the pieces few.
//!
//! Every batch becomes one small segment; eight segments of a size become one of the next size. Large merges run as
//! a task of their own, one at a time: their inputs stay in use meanwhile, and what dies in them is carried over
//! into the result. Knows nothing of batches, commits or how changes were decided.

use crate::index::merge::{FAN_IN, merge_all};
use crate::index::options::IndexOptions;
use crate::index::piece::{Piece, SegmentPiece};
use crate::index::rules::Rules;
use crate::index::segment::{SEGMENT_DOCUMENTS_MAX, Segment, build_segment};
use crate::index::terms::Version;
use model::{DocumentNumber, Lsn};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// The changes of one batch: each document as the batch leaves it.
pub(crate) type Changes = BTreeMap<DocumentNumber, Option<Version>>;

/// What a batch does to the index, computed while it is on its way to the disk.
#[derive(Debug)]
pub(crate) struct Prepared {
    segment: Option<SegmentPiece>,
    /// Documents whose older version, if any, is dead.
    touched: Vec<DocumentNumber>,
}

impl Prepared {
    pub(crate) fn new(rules: &Rules, changes: Changes) -> Prepared {
        let touched = changes.keys().copied().collect();
        let versions: Vec<Version> = changes.into_values().flatten().collect();
        let segment = (!versions.is_empty()).then(|| SegmentPiece::new(build_segment(rules, &versions)));
        Prepared { segment, touched }
    }
}

/// See the file's head.
#[derive(Debug)]
pub(crate) struct Keeper {
    options: IndexOptions,
    rules: Arc<Rules>,
    segments: Vec<SegmentPiece>,
    /// All changes up to here are in the pieces.
    pub(crate) lsn: Lsn,
    job: Option<Job>,
}

/// A merge under way.
#[derive(Debug)]
struct Job {
    /// As they were when it began.
    inputs: Vec<SegmentPiece>,
    task: JoinHandle<Segment>,
}

impl Keeper {
    pub(crate) fn new(options: IndexOptions, rules: Arc<Rules>, lsn: Lsn) -> Keeper {
        Keeper { options, rules, segments: Vec::new(), lsn, job: None }
    }

    pub(crate) fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    /// The pieces as they are now.
    pub(crate) fn pieces(&self) -> Arc<[Piece]> {
        self.segments.iter().cloned().map(Piece::Segment).collect()
    }

    /// Takes the changes of a committed batch.
    pub(crate) async fn apply(&mut self, prepared: Prepared, lsn: Lsn) {
        for number in prepared.touched {
            self.kill(number);
        }
        self.segments.extend(prepared.segment);
        self.lsn = lsn;
        self.tidy().await;
    }

    fn kill(&mut self, number: DocumentNumber) {
        // The newest first: what was written lately is written again more often.
        let _ = self.segments.iter_mut().rev().any(|piece| piece.kill(number));
    }

    /// Merges what is due; large merges are begun only.
    async fn tidy(&mut self) {
        self.segments.retain(|piece| piece.live_count() > 0);
        while let Some(group) = self.due_group() {
            let documents: usize =
                group.iter().map(|index| self.segments[*index].segment.numbers().len()).sum();
            let inputs: Vec<SegmentPiece> = group.iter().map(|index| self.segments[*index].clone()).collect();
            if documents < self.options.inline_documents_max {
                let merged = merge_all(inputs.clone()).await;
                self.exchange(&inputs, merged);
            } else if self.job.is_none() {
                let task = tokio::spawn(merge_all(inputs.clone()));
                self.job = Some(Job { inputs, task });
                return;
            } else {
                return;
            }
        }
    }

    /// Places of the oldest segments of the smallest size of which there are enough.
    fn due_group(&self) -> Option<Vec<usize>> {
        let mut sizes: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (index, piece) in self.segments.iter().enumerate() {
            sizes.entry(size_class(piece)).or_default().push(index);
        }
        let mut group = sizes.into_values().find(|group| group.len() >= FAN_IN)?;
        group.truncate(FAN_IN);
        let live: u64 = group.iter().map(|index| self.segments[*index].live_count()).sum();
        (live < SEGMENT_DOCUMENTS_MAX as u64).then_some(group)
    }

    /// Whether something is under way that [`Keeper::finish`] waits for.
    pub(crate) fn is_busy(&self) -> bool {
        self.job.is_some()
    }

    /// Waits for what is under way and takes its result.
    pub(crate) async fn finish(&mut self) {
        let Some(job) = &mut self.job else { return };
        let merged = (&mut job.task).await;
        let Some(job) = self.job.take() else { return };
        match merged {
            Ok(merged) => self.exchange(&job.inputs, merged),
            Err(error) => tracing::error!(%error, "a merge of the index ended early"),
        }
        self.tidy().await;
    }

    /// Puts `merged` in the place of its inputs. What died in them since they were given is dead in it too.
    fn exchange(&mut self, inputs: &[SegmentPiece], merged: Segment) {
        let mut merged = SegmentPiece::new(merged);
        for input in inputs {
            let Some(place) =
                self.segments.iter().position(|piece| Arc::ptr_eq(&piece.segment, &input.segment))
            else {
                // All of it died meanwhile.
                input.live_numbers().for_each(|number| {
                    merged.kill(number);
                });
                continue;
            };
            let now = self.segments.remove(place);
            for rank in (&*now.dead - &*input.dead).iter() {
                if let Some(number) = now.segment.numbers().get(rank as usize) {
                    merged.kill(*number);
                }
            }
        }
        if merged.live_count() > 0 {
            self.segments.push(merged);
        }
    }
}

/// Segments of one class differ in size by a factor of eight at most.
fn size_class(piece: &SegmentPiece) -> u32 {
    piece.segment.numbers().len().max(1).ilog2() / 3
}
