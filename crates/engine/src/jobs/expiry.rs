//! Deletes expired documents.
//!
//! Nobody waits for this: an expired document is absent for all readers immediately. The writer checks each one again.
//! A container is examined only if a document may be due: its writers note the earliest expiry second that they commit.

use super::poison::Skipped;
use crate::catalog::{Container, PartitionMap};
use crate::engine::Engine;
use crate::join::join_all;
use bytes::Bytes;
use kv::{Direction, KeyRange, ScanLimit, View};
use model::limits::PAGE_BYTES_MAX;
use model::{ContainerNumber, EffectiveKey, Fault, PartitionOrdinal};
use partition::keyspace::{self, EXPIRY};
use partition::read_fault;
use plan::Mutation;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Expiry rows that one step reads.
const ROWS_AT_A_TIME: usize = 1024;
/// Documents of one transaction.
pub(super) const TRANSACTION_DOCUMENTS: usize = 256;
/// Seconds until documents that could not be deleted are tried again.
const POISON_PAUSE_SECONDS: u64 = 600;

/// The documents of one partition that are due.
struct Due {
    /// A key that the partition owns.
    place: EffectiveKey,
    mutations: Vec<Mutation>,
}

impl Engine {
    /// Sweeps a container once: everything that is due at the start of the sweep.
    pub(super) async fn sweep_expired(&self, number: ContainerNumber) -> Result<(), Fault> {
        let Some(container) = self.catalog.state().container(number) else { return Ok(()) };
        let now = self.ambient().now_seconds();
        container.shape.begin_sweep();
        let swept = self.sweep_until(&container, now).await;
        match &swept {
            Ok(Skipped(0)) => {}
            Ok(Skipped(_)) => container.shape.note_expiry(now + POISON_PAUSE_SECONDS),
            // In the next round.
            Err(_) => container.shape.note_expiry(now),
        }
        swept.map(drop)
    }

    async fn sweep_until(&self, container: &Container, now: u64) -> Result<Skipped, Fault> {
        let due = keyspace::expiry_range(container.number(), now);
        let mut rest = due.clone();
        let mut skipped = Skipped::default();
        let mut fault = None;
        loop {
            let step = self.housekeeping_step().await;
            let view = self.store().view().await.map_err(read_fault)?;
            let limit = ScanLimit { rows: ROWS_AT_A_TIME, bytes: PAGE_BYTES_MAX };
            let chunk =
                view.scan(EXPIRY, rest.clone(), Direction::Forward, limit).await.map_err(read_fault)?;
            drop(view);
            let map = Arc::clone(&container.map.load());
            let sweeping = by_partition(&map, &chunk.rows).into_values().map(|due| {
                let Due { place, mutations } = due;
                self.carry_out(container, place, mutations)
            });
            for done in join_all(sweeping.collect()).await {
                match done {
                    Ok(left) => skipped += left,
                    // The other partitions are swept nevertheless.
                    Err(failed) => fault = Some(failed),
                }
            }
            drop(step);
            match chunk.rows.last() {
                Some((last, _)) if chunk.more && !self.jobs.is_stopping() => {
                    rest = keyspace::after(&rest, last)
                }
                Some(_) | None => break,
            }
        }
        let view = self.store().view().await.map_err(read_fault)?;
        if let Some(second) = first_after(&view, container, due).await? {
            container.shape.note_expiry(second);
        }
        if self.jobs.is_stopping() {
            container.shape.note_expiry(now);
        }
        fault.map_or(Ok(skipped), Err)
    }
}

/// The rows of each partition.
fn by_partition(map: &Arc<PartitionMap>, rows: &[(Bytes, Bytes)]) -> BTreeMap<PartitionOrdinal, Due> {
    let mut due: BTreeMap<PartitionOrdinal, Due> = BTreeMap::new();
    for (key, row) in rows {
        let place = EffectiveKey::from_bytes(row);
        let Some((second, number)) = keyspace::parse_expiry_key(key) else { continue };
        let Some(slot) = map.owner(&place) else { continue };
        let of_slot = due.entry(slot.ordinal).or_insert_with(|| Due { place, mutations: Vec::new() });
        of_slot.mutations.push(Mutation::Expire { number, second });
    }
    due
}

/// The second of the first expiry row after those of `due`.
async fn first_after(view: &View, container: &Container, due: KeyRange) -> Result<Option<u64>, Fault> {
    let whole = keyspace::container_rows(container.number());
    let Some(start) = due.end else { return Ok(None) };
    let range = KeyRange { start, end: whole.end };
    let limit = ScanLimit { rows: 1, bytes: PAGE_BYTES_MAX };
    let chunk = view.scan(EXPIRY, range, Direction::Forward, limit).await.map_err(read_fault)?;
    Ok(chunk.rows.first().and_then(|(key, _)| keyspace::parse_expiry_key(key)).map(|(second, _)| second))
}
