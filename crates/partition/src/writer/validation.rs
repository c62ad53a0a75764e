//! Whether a draft may be committed: only if its logical partition is as the draft has seen it.

use super::Writer;
use crate::basis::Basis;
use crate::keyspace::{self, EXPIRY};
use crate::last_writes::LastWrites;
use crate::staging::Accepted;
use crate::storage::read_fault;
use bytes::Bytes;
use kv::{Direction, KeyRange, ScanLimit};
use model::{DefaultTtl, Fault, Ticks};
use plan::LogicalKey;
use std::sync::Arc;

/// Expiry rows that are read at a time.
const EXPIRY_STEP: ScanLimit = ScanLimit { rows: 1024, bytes: 1 << 20 };
/// Steps after which the logical partition counts as changed.
const EXPIRY_STEPS_MAX: usize = 16;

impl Writer {
    /// Whether the logical partition may have changed since the state of `basis`, or evaluates differently now.
    pub(super) async fn may_have_changed(&mut self, key: &LogicalKey, basis: &Basis) -> Result<bool, Fault> {
        #[cfg(feature = "planted-faults")]
        if crate::planted::is_planted(crate::planted::PlantedFault::DraftsAreNotValidated) {
            return Ok(false);
        }
        // Numbers and ETags of another opening may be assigned again, and its LSNs say nothing about this one.
        if !Arc::ptr_eq(basis.draft.numbering(), &self.numbering)
            || !Arc::ptr_eq(&basis.shape, &self.shape.load())
        {
            return Ok(true);
        }
        let prefix = keyspace::logical_prefix(self.id.container, key);
        let is_protected = basis.lock.and_then(|lock| self.locks.has_protected(lock));
        let is_written = match (is_protected, &self.last_writes) {
            (Some(is_protected), _) => !is_protected,
            (None, Some(last_writes)) => last_writes.may_have_changed(&prefix, basis.lsn),
            (None, None) => basis.lsn != self.state.head.lsn,
        };
        // Not the time of the batch, which may be older than the draft.
        let now = self.clock.now_ticks();
        if is_written || now.seconds() < basis.begun.seconds() {
            return Ok(true);
        }
        self.may_have_expired(key, basis, now).await
    }

    /// Whether a document of the logical partition may have expired since the draft began.
    async fn may_have_expired(&mut self, key: &LogicalKey, basis: &Basis, now: Ticks) -> Result<bool, Fault> {
        let (begun, now) = (basis.begun.seconds(), now.seconds());
        match basis.shape.default_ttl {
            DefaultTtl::Off => return Ok(false),
            DefaultTtl::OnDemand | DefaultTtl::Seconds(_) if begun == now => return Ok(false),
            DefaultTtl::OnDemand | DefaultTtl::Seconds(_) => {}
        }
        if basis.shape.is_expiry_pending {
            return Ok(true);
        }
        // Uncommitted rows are those of other logical partitions, otherwise this one would have been written.
        let view = self.store.view().await.map_err(read_fault)?;
        let start = keyspace::expiry_range(self.id.container, begun).end.unwrap_or_default();
        let mut range = KeyRange { start, ..keyspace::expiry_range(self.id.container, now) };
        for _ in 0..EXPIRY_STEPS_MAX {
            let chunk = view
                .scan(EXPIRY, range.clone(), Direction::Forward, EXPIRY_STEP)
                .await
                .map_err(read_fault)?;
            if chunk.rows.iter().any(|(_, effective)| effective == key.effective.as_bytes()) {
                return Ok(true);
            }
            match chunk.rows.last() {
                Some((last, _)) if chunk.more => range = keyspace::after(&range, last),
                Some(_) | None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Starts to remember the last writes if there are drafts.
    pub(super) fn track_writes(&mut self) {
        if self.last_writes.is_none() && self.numbering.has_drafts() {
            self.last_writes = Some(LastWrites::after(self.state.head.lsn));
        }
    }

    /// Remembers which logical partitions a transaction has changed.
    pub(super) fn note_writes(&mut self, accepted: &Accepted) {
        if accepted.head.lsn == self.state.head.lsn {
            return;
        }
        let prefixes = || std::iter::once(&accepted.logical_prefix).chain(&accepted.entered_prefixes);
        if let Some(last_writes) = &mut self.last_writes {
            prefixes().for_each(|prefix: &Bytes| last_writes.note(prefix, accepted.head.lsn));
        }
        if !self.locks.is_empty() {
            prefixes().for_each(|prefix| self.locks.note(prefix));
        }
    }

    /// Ends the locks that are due. The commands that waited for them come before all others.
    pub(super) fn end_locks(&mut self) {
        let commands = self.locks.end_due();
        commands.into_iter().rev().for_each(|command| self.backlog.push_front(command));
    }
}
