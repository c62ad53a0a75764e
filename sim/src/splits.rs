//! Splits in the simulated world, the partitions that they leave, and what housekeeping has still to do.

use crate::change_readers::ChangeReaders;
use crate::clients::{Lane, Record};
use crate::life::answered_within;
use crate::world::{CheckFailure, World, partition_key};
use engine::SplitAt;
use kv::{Direction, ScanLimit, Space};
use model::{Fault, PartitionOrdinal};
use partition::Remains;
use partition::keyspace::{self, HISTORY, LOG, RECORDS};
use std::sync::Arc;

/// Result of a split.
type Split = Result<engine::Children, Fault>;

/// What housekeeping has still to do in the container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remainder {
    /// Split partitions whose index runs their descendants may use.
    pub shared: usize,
    /// Split partitions that may have rows.
    pub split: usize,
    /// Log entries that tell of no document.
    pub removals: usize,
    /// Entries of the history.
    pub history: usize,
}

impl World {
    /// Splits the partition of a key, in its middle or by documents, while the lanes use it; with a `crash_after`, answers are awaited for that many
    /// turns only.
    pub(crate) fn split(
        &self,
        (key, in_middle): (usize, bool),
        lanes: Vec<Lane>,
        readers: &Arc<ChangeReaders>,
        crash_after: Option<u64>,
    ) -> Result<(Option<Split>, Vec<Record>), CheckFailure> {
        let ordinal = PartitionOrdinal(self.ordinal_of(key).ok_or("nobody owns a key")?);
        let at = if in_middle { SplitAt::Middle } else { SplitAt::Documents };
        let desk = self.desk();
        let at_work = Arc::clone(&desk);
        let reading = self.reading(readers);
        let split = self.run(answered_within(crash_after, async move {
            let split = Arc::clone(&at_work);
            let split = tokio::spawn(async move {
                tokio::task::yield_now().await;
                let pass = split.engine.access().change_catalog(&split.principal, &*split.container)?;
                split.engine.split_partition(&pass, ordinal, at).await
            });
            let reading = tokio::spawn(reading);
            at_work.play(lanes).await?;
            reading.await.map_err(|panic| format!("a reader panicked: {panic}"))?;
            split.await.map_err(|panic| format!("a split panicked: {panic}"))
        }))??;
        let records = desk.records().clone();
        Ok((split.transpose()?, records))
    }

    /// Reads the partitions of the container from the store.
    pub(crate) fn refresh_specs(&mut self) -> Result<(), CheckFailure> {
        if let Some(stored) = self.stored_container()? {
            self.specs = stored.partitions;
        }
        Ok(())
    }

    /// What housekeeping has still to do.
    pub(crate) fn remainder(&self) -> Result<Remainder, CheckFailure> {
        let stored = self.stored_container()?.ok_or("the container is gone")?;
        let mut ancestors: Vec<_> = stored.partitions.iter().flat_map(|spec| &spec.ancestors).collect();
        ancestors.sort_by_key(|ancestor| ancestor.ordinal);
        ancestors.dedup_by_key(|ancestor| ancestor.ordinal);
        let count =
            |has: fn(Remains) -> bool| ancestors.iter().filter(|ancestor| has(ancestor.remains)).count();
        Ok(Remainder {
            shared: count(Remains::has_runs),
            split: count(Remains::has_log),
            // Without consumers of the log, every document has one entry that tells of it.
            removals: self.row_count(LOG)?.saturating_sub(self.row_count(RECORDS)?),
            history: self.row_count(HISTORY)?,
        })
    }

    /// Number of rows that the container has in a space.
    fn row_count(&self, space: Space) -> Result<usize, CheckFailure> {
        let (store, range) = (self.store.clone(), keyspace::container_rows(self.container.number()));
        let rows = self.run(async move {
            let everything = ScanLimit { rows: usize::MAX, bytes: usize::MAX };
            store.view().await?.scan(space, range, Direction::Forward, everything).await
        })?;
        rows.map(|chunk| chunk.rows.len()).map_err(|fault| format!("rows cannot be read: {fault}"))
    }

    /// Whether a partition key is in a range, which may have been split.
    pub(crate) fn is_in_range(&self, key: usize, ordinal: u32) -> bool {
        let key = partition_key(&self.container, key);
        let effective = self.container.definition().partition_key.effective_key(&key);
        let range = self.container.range_of(PartitionOrdinal(ordinal));
        range.is_ok_and(|range| range.contains(&effective))
    }

    /// The partitions of the container and those that were split.
    pub(crate) fn ordinals(&self) -> impl Iterator<Item = u32> {
        let parents = self.specs.iter().flat_map(|spec| &spec.ancestors);
        let parents = parents.map(|ancestor| ancestor.ordinal.0);
        self.specs.iter().map(|spec| spec.id.ordinal.0).chain(parents)
    }

    /// The partitions from which one was split, the last one first.
    pub(crate) fn parents_of(&self, ordinal: u32) -> Vec<u32> {
        let spec = self.specs.iter().find(|spec| spec.id.ordinal.0 == ordinal);
        let ancestors = spec.into_iter().flat_map(|spec| spec.ancestors.iter().rev());
        ancestors.map(|ancestor| ancestor.ordinal.0).collect()
    }
}
