//! `MERGE` and `PATCH /name(PartitionKey='p',RowKey='r')`: merges properties into an entity; without `If-Match`,
//! inserts or merges them.

use super::Call;
use super::entity::{of_row, result_check};
use crate::faults::TableFault;
use crate::route::EntityPath;
use crate::wire::entity::{EntityKeys, read_entity};
use plan::{Condition, DocumentOperation, Item, Mutation, WhenAbsent};

/// The change that the request means.
pub(super) fn operation(
    call: &Call<'_>,
    path: &EntityPath,
    condition: Option<Condition>,
) -> Result<DocumentOperation, TableFault> {
    let keys = EntityKeys::InAddress { partition_key: &path.partition_key, row_key: &path.row_key };
    let entity = read_entity(&call.body, keys, call.style().limits())?;
    let item = Item::new(entity.document)?;
    let (condition, absent) = match condition {
        Some(condition) => (condition, WhenAbsent::Refuse),
        None => (Condition::None, WhenAbsent::Create),
    };
    let condition = of_row(&path.row_key, condition);
    let check = Some(result_check(call.style()));
    Ok(DocumentOperation::Write(Mutation::Merge { item, condition, absent, check }))
}
