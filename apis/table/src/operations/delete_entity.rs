//! `DELETE /name(PartitionKey='p',RowKey='r')`.

use super::Call;
use super::entity::{address, condition, of_row, target, write, written};
use crate::faults::{Code, TableFault, request};
use crate::route::EntityPath;
use crate::wire::reply::Reply;
use engine::Action;
use plan::{Condition, DocumentOperation, Mutation};

pub(super) async fn perform(call: &Call<'_>, path: &EntityPath) -> Result<Reply, TableFault> {
    let condition = condition(call)?;
    let table = call.table(&path.table, Action::DeleteDocument)?;
    let address = address(call.style(), &table, path)?;
    let operation = operation(path, condition)?;
    let receipt = write(call, &table, (Some(address.key), &path.row_key), operation).await?;
    Ok(written(&receipt))
}

/// The change that the request means. It must have a condition.
pub(super) fn operation(
    path: &EntityPath,
    condition: Option<Condition>,
) -> Result<DocumentOperation, TableFault> {
    let missing = || {
        request(
            Code::MissingRequiredHeader,
            "An HTTP header that's mandatory for this request is not specified: If-Match.",
        )
    };
    let condition = of_row(&path.row_key, condition.ok_or_else(missing)?);
    Ok(DocumentOperation::Write(Mutation::Delete { target: target(&path.row_key), condition }))
}
