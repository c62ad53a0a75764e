//! Splits in the simulated world, and the partitions that they leave.

use crate::clients::{Lane, Record};
use crate::life::answered_within;
use crate::world::{CheckFailure, World, partition_key};
use engine::SplitAt;
use model::{Fault, PartitionOrdinal};
use std::sync::Arc;

/// Result of a split.
type Split = Result<engine::Children, Fault>;

impl World {
    /// Splits the partition of a key while the lanes use it; with a `crash_after`, answers are awaited for that many
    /// turns only.
    pub(crate) fn split(
        &self,
        key: usize,
        in_middle: bool,
        lanes: Vec<Lane>,
        crash_after: Option<u64>,
    ) -> Result<(Option<Split>, Vec<Record>), CheckFailure> {
        let ordinal = PartitionOrdinal(self.ordinal_of(key).ok_or("nobody owns a key")?);
        let at = if in_middle { SplitAt::Middle } else { SplitAt::Documents };
        let desk = self.desk();
        let at_work = Arc::clone(&desk);
        let split = self.run(answered_within(crash_after, async move {
            let split = Arc::clone(&at_work);
            let split = tokio::spawn(async move {
                tokio::task::yield_now().await;
                let pass = split.engine.access().change_catalog(&split.principal, &*split.container)?;
                split.engine.split_partition(&pass, ordinal, at).await
            });
            at_work.play(lanes).await?;
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
