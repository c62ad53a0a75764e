//! `PUT /name(PartitionKey='p',RowKey='r')`: replaces an entity; without `If-Match`, inserts or replaces it.

use super::Call;
use super::entity::{of_row, target};
use crate::faults::TableFault;
use crate::route::EntityPath;
use crate::wire::entity::{EntityKeys, read_entity};
use plan::{Condition, DocumentOperation, Item, Mutation, Rename};

/// The change that the request means.
pub(super) fn operation(
    call: &Call<'_>,
    path: &EntityPath,
    condition: Option<Condition>,
) -> Result<DocumentOperation, TableFault> {
    let keys = EntityKeys::InAddress { partition_key: &path.partition_key, row_key: &path.row_key };
    let entity = read_entity(&call.body, keys, call.style().limits())?;
    let item = Item::new(entity.document)?;
    Ok(DocumentOperation::Write(match condition {
        Some(condition) => {
            let condition = of_row(&path.row_key, condition);
            Mutation::Replace { target: target(&path.row_key), item, condition, rename: Rename::Refused }
        }
        None => Mutation::Upsert { item, condition: of_row(&path.row_key, Condition::None) },
    }))
}
