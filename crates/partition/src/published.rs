//! The state that the writer publishes for readers after every commit.

use crate::head::{Head, SetBack};
use crate::index::{Fingerprint, IndexReader};
use crate::log::LogPosition;
use crate::partition::PartitionCounts;
use kv::{Lane, View};
use model::{Lsn, Ticks};
use std::sync::Arc;

/// The latest durable state of a partition, as readers load it.
#[derive(Debug)]
pub(crate) struct Published {
    /// `None` while the partition is idle.
    pub(crate) view: Option<View>,
    /// The index at the LSN of the view; `None` without a view or while the index is being built.
    pub(crate) index: Option<Arc<IndexReader>>,
    /// The fingerprint of the index, also while the partition is idle.
    pub(crate) policy: Option<Fingerprint>,
    /// Segments and runs of the index.
    pub(crate) index_pieces: usize,
    pub(crate) lsn: Lsn,
    pub(crate) counts: PartitionCounts,
    /// The time of the last change.
    pub(crate) time: Ticks,
    /// When the time was last set back.
    pub(crate) set_back: SetBack,
    /// The history has every change from this position on.
    pub(crate) history_from: LogPosition,
    /// The lane of the batches up to this state. If it is rewound, some of them may be lost.
    pub(crate) lane: Lane,
    /// Whether the writer has ended because it no longer owns the partition. Cached records may then be out of date.
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
        Published { view: Some(view), index, policy, index_pieces, ..Published::without_view(head, lane) }
    }

    pub(crate) fn without_view(head: &Head, lane: Lane) -> Published {
        let counts = PartitionCounts { documents: head.documents, bytes: head.bytes };
        Published {
            view: None,
            index: None,
            policy: None,
            index_pieces: 0,
            lsn: head.lsn,
            counts,
            time: head.time,
            set_back: head.set_back,
            history_from: head.history_from,
            lane,
            has_ended: false,
        }
    }
}
