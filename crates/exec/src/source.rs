//! Where the documents of a part are read: a partition in its latest state, or one state of it.
//!
//! Only this file knows the difference; the rest of this crate reads [`PartitionView`]s. A part on another node would
//! be another source, which itself answers "the first rows after a position".

use model::{Fault, PartitionOrdinal};
use partition::keyspace::PartitionId;
use partition::{PartitionView, PhysicalPartition};
use std::sync::Arc;

/// Where the documents of a part are read.
#[derive(Clone, Debug)]
pub enum PartSource {
    /// A partition, in the latest state when the part is first read for a page.
    Live(Arc<PhysicalPartition>),
    /// One state of a partition, for all pages, at one time.
    Fixed(Arc<PartitionView>),
}

impl PartSource {
    pub(crate) fn id(&self) -> PartitionId {
        match self {
            PartSource::Live(partition) => partition.spec().id,
            PartSource::Fixed(view) => view.id(),
        }
    }

    /// The partition, if it is read in its latest state.
    pub fn live(&self) -> Option<&Arc<PhysicalPartition>> {
        match self {
            PartSource::Live(partition) => Some(partition),
            PartSource::Fixed(_) => None,
        }
    }

    pub(crate) fn ordinal(&self) -> PartitionOrdinal {
        self.id().ordinal
    }

    /// Number of documents of the partition, including expired ones that were not deleted yet.
    pub(crate) fn documents(&self) -> u64 {
        match self {
            PartSource::Live(partition) => partition.counts().documents,
            PartSource::Fixed(view) => view.counts().documents,
        }
    }

    /// The state to read.
    pub(crate) async fn view(&self) -> Result<PartitionView, Fault> {
        match self {
            PartSource::Live(partition) => partition.view().await,
            PartSource::Fixed(view) => Ok(PartitionView::clone(view)),
        }
    }
}
