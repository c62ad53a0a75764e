//! The state that readers take: what the writer publishes after every commit.

use crate::head::Head;
use crate::index::{Fingerprint, IndexReader};
use crate::partition::PartitionCounts;
use kv::{Lane, View};
use model::Lsn;
use std::sync::Arc;

/// See the file's head.
#[derive(Debug)]
pub(crate) struct Published {
    /// `None` while the partition rests.
    pub(crate) view: Option<View>,
    /// The index at the position of the view; `None` without a view or while the index is being made.
    pub(crate) index: Option<Arc<IndexReader>>,
    /// Of which policy the index is, also while the partition rests.
    pub(crate) policy: Option<Fingerprint>,
    /// Segments and runs of the index.
    pub(crate) index_pieces: usize,
    pub(crate) lsn: Lsn,
    pub(crate) counts: PartitionCounts,
    /// The lane of the batches that led here: if it is rewound, some of them may be gone.
    pub(crate) lane: Lane,
    /// Whether the writer has ended because the partition is not its own any more: what is cached may be out of date.
    pub(crate) has_ended: bool,
}

impl Published {
    pub(crate) fn new(
        view: View,
        index: Option<IndexReader>,
        policy: Option<Fingerprint>,
        index_pieces: usize,
        head: &Head,
        lane: Lane,
    ) -> Published {
        let index = index.map(Arc::new);
        Published { view: Some(view), index, policy, index_pieces, ..Published::resting(head, lane) }
    }

    pub(crate) fn resting(head: &Head, lane: Lane) -> Published {
        let counts = PartitionCounts { documents: head.documents, bytes: head.bytes };
        Published {
            view: None,
            index: None,
            policy: None,
            index_pieces: 0,
            lsn: head.lsn,
            counts,
            lane,
            has_ended: false,
        }
    }
}
