//! What a draft was evaluated on: the writer commits it only if the same evaluation would give the same result now.

use crate::numbering::{Identity, OpenDraft};
use crate::shape::ContainerShape;
use crate::writer::LockId;
use model::{Lsn, Ticks};
use std::sync::Arc;

/// The state and time on which a draft is based, and what it has assigned.
#[derive(Debug)]
pub(crate) struct Basis {
    /// The state that it has read.
    pub(crate) lsn: Lsn,
    /// When it began, by the clock of the partition. Decides what has expired.
    pub(crate) begun: Ticks,
    pub(crate) shape: Arc<ContainerShape>,
    /// What was assigned to each operation.
    pub(crate) identities: Vec<Identity>,
    /// The lock on the logical partition that its owner holds.
    pub(crate) lock: Option<LockId>,
    /// Whether others will be committed soon: this one may wait for them.
    pub(crate) is_followed: bool,
    /// The opening of the partition in which it began.
    pub(crate) draft: OpenDraft,
}
