//! Keeps the list of keyspaces and journals in the format file in sync with the engine.
//!
//! Knows nothing of what is committed. `inspect` explains the purpose of the list.

use std::io;
use std::sync::atomic::Ordering;

use fjall::Keyspace;

use super::engine::StorageEngine;
use super::format::JournalEntry;
use super::journal;
use crate::fault::{Cause, OpenFault};

impl StorageEngine {
    /// Fails if a keyspace that must exist is not among those of the engine.
    pub(super) fn check_inventory(&self) -> Result<(), OpenFault> {
        let format = self.folder.format();
        let known = format.spaces.iter().map(|space| space.keyspace).chain([format.own]);
        for (space, known) in self.all_spaces().iter().zip(known) {
            let found = space.keyspace.get().map(Keyspace::id);
            if known.is_some() && found != known {
                let cause = Cause::new(format_args!(
                    "keyspace \"{}\" has number {found:?}, expected {known:?}",
                    space.name
                ));
                return Err(OpenFault::Engine { path: self.folder.engine(), cause });
            }
        }
        Ok(())
    }

    /// Records which keyspaces exist and which journal is the newest.
    pub(super) fn record_inventory(&self) -> io::Result<()> {
        let newest = journal::newest(&self.folder.engine())?;
        let numbers: Vec<_> =
            self.all_spaces().iter().map(|space| space.keyspace.get().map(Keyspace::id)).collect();
        self.folder.record(|format| {
            format.own = numbers.last().copied().flatten();
            for (space, number) in format.spaces.iter_mut().zip(&numbers) {
                space.keyspace = *number;
            }
            format.journal = newest;
        })
    }

    /// Records the newest journal after a rotation, or when it holds its first commit. Called when everything in the
    /// journals is synced. A failure is not fatal: the next sync tries again.
    pub(super) fn record_journal(&self) {
        let count = self.database.journal_count();
        let is_due = self.journal_is_due.load(Ordering::Relaxed);
        if !is_due && count == self.journal_count.load(Ordering::Relaxed) {
            return;
        }
        let recorded = journal::newest(&self.folder.engine()).and_then(|newest| {
            let newest = newest.ok_or(io::ErrorKind::NotFound)?;
            self.folder.record_journal(newest).map(|()| newest)
        });
        match recorded {
            Ok(JournalEntry { number, first_commit }) => {
                let is_awaited = number < self.journal_awaited.load(Ordering::Relaxed);
                self.journal_count.store(count, Ordering::Relaxed);
                self.journal_is_due.store(first_commit.is_none() || is_awaited, Ordering::Relaxed);
            }
            Err(error) => {
                tracing::warn!(event = "inventory_failed", %error, "the newest journal could not be recorded")
            }
        }
    }
}
