//! The owner row of a partition, which every batch of the partition requires, byte for byte.
//!
//! ```text
//! format:1 = 1 · epoch:4 · node:16
//! ```
//!
//! Written when the partition is created. Every opening claims the partition: it raises the epoch, and no batch of the
//! previous opening, or of its index, can be applied after that. The batch that drops the container deletes the row.

use crate::keyspace::{self, META, PartitionId};
use crate::storage::{damaged, read_fault};
use bytes::{BufMut, Bytes, BytesMut};
use kv::{Batch, Durability, Store, View};
use model::{Fault, StorageFault};

const FORMAT: u8 = 1;
const ROW_BYTES: usize = 21;
/// The epoch of a new partition.
const EPOCH_FIRST: u32 = 1;
/// The node of a store that belongs to no cluster.
const NODE_NONE: [u8; 16] = [0; 16];

/// The owner row: who owns a partition, and since which opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// Raised whenever the partition is opened.
    pub(crate) epoch: u32,
    /// The process that owns it.
    pub(crate) node: [u8; 16],
}

impl Owner {
    /// The owner of a new partition.
    pub(crate) fn first() -> Owner {
        Owner { epoch: EPOCH_FIRST, node: NODE_NONE }
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(ROW_BYTES);
        bytes.put_u8(FORMAT);
        bytes.put_u32(self.epoch);
        bytes.put_slice(&self.node);
        bytes.freeze()
    }

    pub(crate) fn decode(row: &[u8]) -> Result<Owner, Fault> {
        let bad = || damaged("owner of a partition");
        let Some((&FORMAT, fields)) = row.split_first() else { return Err(bad()) };
        let (epoch, node) = fields.split_first_chunk::<4>().ok_or_else(bad)?;
        let owner = Owner { epoch: u32::from_be_bytes(*epoch), node: node.try_into().map_err(|_| bad())? };
        if owner.epoch < EPOCH_FIRST { Err(bad()) } else { Ok(owner) }
    }
}

/// Whether the container of a partition was dropped: the batch that drops it deletes the owner row.
pub(crate) async fn is_without_owner(store: &Store, id: PartitionId) -> Result<bool, Fault> {
    let view = store.view().await.map_err(read_fault)?;
    Ok(view.get(META, &keyspace::owner_key(id)).await.map_err(read_fault)?.is_none())
}

/// The proof that a writer owns the partition.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    key: Bytes,
    row: Bytes,
    epoch: u32,
}

impl Claim {
    /// Makes the caller the owner of the partition and returns the state from then on. Without an owner row the
    /// container was dropped.
    pub(crate) async fn take(store: &Store, id: PartitionId) -> Result<(Claim, View), Fault> {
        let key = keyspace::owner_key(id);
        let unavailable = |cause: String| Fault::from(StorageFault::Unavailable { cause });
        let view = store.view().await.map_err(read_fault)?;
        let before = view.get(META, &key).await.map_err(read_fault)?;
        let before = before.ok_or_else(|| unavailable(format!("the partition {id:?} has no owner")))?;
        let owner = Owner::decode(&before)?;
        let epoch = owner.epoch.checked_add(1);
        let epoch = epoch.ok_or_else(|| Fault::Internal(format!("{id:?} was opened too often")))?;
        let row = Owner { epoch, ..owner }.encode();
        let mut batch = Batch::default();
        // Claims are allowed on a full disk, so that reads and deletes continue.
        batch.mark_shrinking();
        batch.require(META, key.clone(), Some(before));
        batch.put(META, key.clone(), row.clone());
        // The caller has no batch with an unknown outcome: the next opening reads the row again.
        let claimed = store.submit(&store.lane(), batch, Durability::Sync).await;
        let view = claimed.map_err(|fault| unavailable(format!("{id:?} was not claimed: {fault}")))?;
        Ok((Claim { key, row, epoch }, view))
    }

    /// The claim on a new partition whose owner row is [`Owner::first`]. It is valid until the partition is opened in
    /// another way.
    pub(crate) fn of_new(id: PartitionId) -> Claim {
        let owner = Owner::first();
        Claim { key: keyspace::owner_key(id), row: owner.encode(), epoch: owner.epoch }
    }

    /// The epoch of this opening, which no other opening has.
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Makes `batch` apply only while the claim is valid.
    pub(crate) fn require(&self, batch: &mut Batch) {
        batch.require(META, self.key.clone(), Some(self.row.clone()));
    }
}

/// Makes `batch` apply only while the partition has the owner in `view`, or none.
pub(crate) async fn require_unchanged(view: &View, id: PartitionId, batch: &mut Batch) -> Result<(), Fault> {
    let key = keyspace::owner_key(id);
    let row = view.get(META, &key).await.map_err(read_fault)?;
    batch.require(META, key, row);
    Ok(())
}

#[test]
fn an_owner_round_trips_and_damage_is_reported() {
    let owner = Owner { epoch: 3, node: [7; 16] };
    let row = owner.encode();
    assert_eq!(Owner::decode(&row).unwrap(), owner);
    assert_eq!(Owner::decode(&Owner::first().encode()).unwrap(), Owner::first());
    assert!((0..row.len()).all(|length| Owner::decode(&row[..length]).is_err()));
    assert!(Owner::decode(&[&row[..], &[0]].concat()).is_err());
    assert!(Owner::decode(&Owner { epoch: 0, ..owner }.encode()).is_err());
    let mut unknown = row.to_vec();
    unknown[0] = 9;
    assert!(Owner::decode(&unknown).is_err());
}
