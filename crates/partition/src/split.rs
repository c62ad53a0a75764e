//! A split: one partition becomes two that own the parts of its range before and after a cut.
//!
//! ```text
//! 1 count      the documents and bytes after the cut, in steps; the writer notes its changes (`tally`)
//! 2 flush      the index segments, so that the children have little to replay
//! 3 halves     of every index run: which of its documents are after the cut
//! 4 seal       the writer commits what it has begun and waits
//! 5 swap       one batch of the caller: the map of the container, and here the rows of both children
//! 6 end        the writer ends and returns the waiting transactions, which are routed to the children
//! ```
//!
//! Nothing is stored before the batch of step 5, so a split that is interrupted earlier has no effect. The batch requires
//! the owner and the head of the parent and deletes both. Documents, numbers, unique keys and expiry rows do not move;
//! log, history and index runs stay where they are until the children separate them (`lineage`, `writer/splitting`).

use crate::carryover::{Carryover, Inheritance};
use crate::checkpoint::{RescheduleCheckpoint, RescheduleProgress};
use crate::head::Head;
use crate::index::{Half, RunHalves, SealedIndex};
use crate::keyspace::{self, META, PartitionId};
use crate::owner::{Claim, Owner};
use crate::partition::PartitionCounts;
use bytes::Bytes;
use kv::Batch;
use model::{Ambient, EffectiveKey, Lsn};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::oneshot;

/// A cut, and what was determined for it while the partition served requests.
#[derive(Debug)]
pub struct PreparedSplit {
    pub(crate) cut: EffectiveKey,
    pub(crate) halves: Vec<RunHalves>,
}

/// A partition whose writer waits for the batch that replaces it.
#[derive(Debug)]
pub struct SealedPartition {
    pub(crate) id: PartitionId,
    pub(crate) cut: EffectiveKey,
    pub(crate) head: Head,
    pub(crate) head_row: Bytes,
    pub(crate) claim: Claim,
    pub(crate) consumers: BTreeMap<String, Lsn>,
    pub(crate) checkpoint: Option<RescheduleCheckpoint>,
    /// Counts of the documents after the cut.
    pub(crate) second: PartitionCounts,
    /// The index, if it has a manifest, and the halves of its runs.
    pub(crate) index: Option<(SealedIndex, Vec<RunHalves>)>,
    /// All rows of the partition in the meta space.
    pub(crate) meta_keys: Vec<Bytes>,
    /// The time of the partition.
    pub(crate) seconds: u64,
}

impl SealedPartition {
    /// The highest LSN that the partition has assigned.
    pub fn lsn_last(&self) -> Lsn {
        self.head.lsn
    }

    /// Adds the replacement of the partition by two children to a batch: their rows, and the deletion of its own. The
    /// batch applies only if the partition is as it was sealed.
    pub fn add_to(&self, children: [PartitionId; 2], batch: &mut Batch) {
        self.claim.require(batch);
        batch.require(META, keyspace::head_key(self.id), Some(self.head_row.clone()));
        self.meta_keys.iter().for_each(|key| batch.delete(META, key.clone()));
        let PartitionCounts { documents, bytes } = self.second;
        let first = (self.head.documents.saturating_sub(documents), self.head.bytes.saturating_sub(bytes));
        let [first_id, second_id] = children;
        self.put_child(first_id, Half::First, first, batch);
        self.put_child(second_id, Half::Second, (documents, bytes), batch);
    }

    fn put_child(&self, id: PartitionId, half: Half, (documents, bytes): (u64, u64), batch: &mut Batch) {
        batch.put(META, keyspace::owner_key(id), Owner::first().encode());
        batch.put(META, keyspace::head_key(id), self.head.of_child(documents, bytes).encode());
        for (name, lsn) in &self.consumers {
            let row = Bytes::copy_from_slice(&lsn.0.to_be_bytes());
            batch.put(META, keyspace::consumer_key(id, name), row);
        }
        if let Some(checkpoint) = self.checkpoint_of(half) {
            batch.put(META, keyspace::reschedule_key(id), checkpoint.encode());
        }
        if let Some((index, halves)) = &self.index {
            index.put_child(id, half, halves, batch);
        }
    }

    /// The progress of rewriting expiry rows in one half: the walk is in key order.
    fn checkpoint_of(&self, half: Half) -> Option<RescheduleCheckpoint> {
        let checkpoint = self.checkpoint.clone()?;
        let RescheduleProgress::After(key) = &checkpoint.progress else { return Some(checkpoint) };
        let is_after_cut = key.get(4..).is_some_and(|key| key >= self.cut.as_bytes());
        match (half, is_after_cut) {
            (Half::First, true) => {
                Some(RescheduleCheckpoint { progress: RescheduleProgress::Done, ..checkpoint })
            }
            (Half::First, false) | (Half::Second, true) => Some(checkpoint),
            (Half::Second, false) => None,
        }
    }

    /// What a child takes over when it is opened first, after the batch was committed.
    pub fn carryover(&self, child: PartitionId, ambient: Arc<dyn Ambient>) -> Carryover {
        let runs = self.index.as_ref().map_or_else(|| Arc::from([]), |(index, _)| index.runs());
        let inheritance = Inheritance { claim: Claim::of_new(child), runs };
        Carryover::of_child(child, ambient, self.seconds, inheritance)
    }
}

/// Holds the writer of a sealed partition. If it is dropped, it is unknown to the writer whether the batch was
/// committed: it ends, and the partition is opened again if it still exists.
#[derive(Debug)]
pub struct Seal {
    pub(crate) outcome: oneshot::Sender<SplitOutcome>,
}

impl Seal {
    /// The batch was committed: the writer ends and returns the waiting transactions.
    pub fn committed(self) {
        let _ = self.outcome.send(SplitOutcome::Committed);
    }

    /// The batch was not committed: the writer continues.
    pub fn refused(self) {
        let _ = self.outcome.send(SplitOutcome::Refused);
    }
}

/// What became of the batch that replaces a sealed partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SplitOutcome {
    Committed,
    Refused,
}
