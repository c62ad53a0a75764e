//! Decides which batches of a group apply: shape, free space, lane state, requirements.
//!
//! Reads the store but never changes it; `group` writes the admitted batches.

use bytes::Bytes;

use super::block_on;
use super::required::RequiredRows;
use crate::backend::DiskSpace;
use crate::batch::{BATCH_BYTES_MAX, Batch, OWN_SPACE, RowChange, RowRequirement, Space, check_key};
use crate::fault::CommitFault;
use crate::ingest;
use crate::lane::Candidate;
use crate::rows::{AnyRows, RowStore, RowsPoint};

/// The state a batch of the group sees: the store at `point`, changed by the batches admitted before it.
pub(crate) struct BatchValidator<'a> {
    rows: &'a AnyRows,
    space_count: usize,
    /// Free space on the disk if it is short.
    shortage: Option<DiskSpace>,
    point: Option<RowsPoint>,
    /// What is known of the rows that some batch of the group requires.
    required: &'a mut RequiredRows,
}

impl<'a> BatchValidator<'a> {
    /// `required` may know rows from earlier groups if nobody else has written to the store since.
    pub(crate) fn new(
        rows: &'a AnyRows,
        space_count: usize,
        shortage: Option<DiskSpace>,
        required: &'a mut RequiredRows,
        group: &[Candidate],
    ) -> BatchValidator<'a> {
        required.begin_group();
        for batch in group.iter().map(|candidate| &candidate.batch) {
            for wanted in &batch.requirements {
                required.announce(wanted.space, &wanted.key);
            }
            for id in &batch.ingests {
                required.announce(OWN_SPACE, &ingest::pending_key(*id));
            }
        }
        BatchValidator { rows, space_count, shortage, point: None, required }
    }

    /// Returns the changes of a batch if it is admitted, or why not.
    pub(crate) fn admit(&mut self, candidate: &mut Candidate) -> Result<Vec<RowChange>, CommitFault> {
        if candidate.lanes.is_broken() {
            return Err(CommitFault::ChainBroken);
        }
        let batch = &mut candidate.batch;
        self.check_shape(batch)?;
        if let Some(DiskSpace { free_bytes, reserve_bytes }) = self.shortage
            && !batch.shrinking
            && !batch.changes.is_empty()
        {
            return Err(CommitFault::Full { free_bytes, reserve_bytes });
        }
        for requirement in &batch.requirements {
            self.check_requirement(requirement)?;
        }
        let mut changes = std::mem::take(&mut batch.changes);
        for id in &batch.ingests {
            let key = ingest::pending_key(*id);
            if self.current(OWN_SPACE, &key)?.is_none() {
                return Err(CommitFault::UnknownIngest { ingest: *id });
            }
            changes.push(RowChange { space: OWN_SPACE, key, value: None });
        }
        self.required.note(&changes);
        Ok(changes)
    }

    fn check_shape(&self, batch: &Batch) -> Result<(), CommitFault> {
        let size_bytes = batch.size_bytes();
        if size_bytes > BATCH_BYTES_MAX {
            return Err(CommitFault::TooLarge { size_bytes, limit_bytes: BATCH_BYTES_MAX });
        }
        let changes = batch.changes.iter().map(|change| (change.space, &change.key));
        let requirements = batch.requirements.iter().map(|wanted| (wanted.space, &wanted.key));
        for (space, key) in changes.chain(requirements) {
            if usize::from(space.0) >= self.space_count && !(batch.own && space == OWN_SPACE) {
                return Err(CommitFault::UnknownSpace { space });
            }
            check_key(space, key)?;
        }
        Ok(())
    }

    fn check_requirement(&mut self, requirement: &RowRequirement) -> Result<(), CommitFault> {
        let RowRequirement { space, key, expected } = requirement;
        if self.current(*space, key)? == *expected {
            return Ok(());
        }
        Err(CommitFault::PreconditionFailed { space: *space, key: key.clone() })
    }

    /// The value of a required row as seen by the next batch.
    fn current(&mut self, space: Space, key: &Bytes) -> Result<Option<Bytes>, CommitFault> {
        if let Some(value) = self.required.value(space, key) {
            return Ok(value.clone());
        }
        let point = match &mut self.point {
            Some(point) => point,
            none => none.insert(block_on(self.rows.point()).map_err(CommitFault::Unreadable)?),
        };
        let value = block_on(self.rows.get(point, space, key)).map_err(CommitFault::Unreadable)?;
        self.required.keep(space, key, value.as_ref());
        Ok(value)
    }
}
