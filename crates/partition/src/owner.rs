//! Who may write a partition: the row that every batch of the partition requires, byte for byte.
//!
//! ```text
//! format:1 = 1 · epoch:8 · node:16
//! ```
//!
//! Written when the partition is created and deleted in the batch that drops its container: from then on no batch of
//! a writer that is still at work, or of its index, can be applied. The head, which the writer's batches require too,
//! tells two writers of one owner apart.

use crate::keyspace::{self, META, PartitionId};
use crate::storage::{damaged, read_fault};
use bytes::{BufMut, Bytes, BytesMut};
use kv::{Batch, View};
use model::{Fault, StorageFault};

const FORMAT: u8 = 1;
const ROW_BYTES: usize = 25;
/// The epoch of a new partition.
const EPOCH_FIRST: u64 = 1;
/// The node of a store that belongs to no cluster.
const NODE_NONE: [u8; 16] = [0; 16];

/// See the file's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// Grows whenever the partition gets another owner.
    pub(crate) epoch: u64,
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
        bytes.put_u64(self.epoch);
        bytes.put_slice(&self.node);
        bytes.freeze()
    }

    pub(crate) fn decode(row: &[u8]) -> Result<Owner, Fault> {
        let bad = || damaged("owner of a partition");
        let Some((&FORMAT, fields)) = row.split_first() else { return Err(bad()) };
        let (epoch, node) = fields.split_first_chunk::<8>().ok_or_else(bad)?;
        let owner = Owner { epoch: u64::from_be_bytes(*epoch), node: node.try_into().map_err(|_| bad())? };
        if owner.epoch < EPOCH_FIRST { Err(bad()) } else { Ok(owner) }
    }
}

/// What a writer holds to show that it is the owner.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    key: Bytes,
    row: Bytes,
}

impl Claim {
    /// The claim of whoever opens the partition now. Without an owner its container was dropped.
    pub(crate) async fn load(view: &View, id: PartitionId) -> Result<Claim, Fault> {
        let key = keyspace::owner_key(id);
        let row = view.get(META, &key).await.map_err(read_fault)?;
        let cause = || StorageFault::Unavailable { cause: format!("nobody owns the partition {id:?}") };
        let row = row.ok_or_else(cause)?;
        Owner::decode(&row)?;
        // The row at hand shares the memory of a whole block of the store.
        Ok(Claim { key, row: Bytes::copy_from_slice(&row) })
    }

    /// Makes `batch` apply only while the claim holds.
    pub(crate) fn require(&self, batch: &mut Batch) {
        batch.require(META, self.key.clone(), Some(self.row.clone()));
    }
}

/// Makes `batch` apply only while the partition has the owner that `view` shows, or none.
pub(crate) async fn require_unchanged(view: &View, id: PartitionId, batch: &mut Batch) -> Result<(), Fault> {
    let key = keyspace::owner_key(id);
    let row = view.get(META, &key).await.map_err(read_fault)?;
    batch.require(META, key, row);
    Ok(())
}

#[test]
fn an_owner_round_trips_and_damage_is_told() {
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
