//! `POST …/operations/partitionkeydelete`: removes all items of one partition key.

use super::Call;
use super::document::required_key;
use crate::faults::Refusal;
use crate::route::ContainerPath;
use crate::wire::reply::Reply;
use engine::Action;
use http::StatusCode;

pub(super) async fn perform(call: &Call<'_>, path: ContainerPath<'_>) -> Result<Reply, Refusal> {
    let container = call.owner(path, Action::DeleteDocument)?.resource;
    let key = required_key(call, &container)?;
    let pass = call.engine.access().delete_logical_partition(&call.principal, &container, key)?;
    let charge = call.engine.delete_logical_partition(pass).await?;
    let mut reply = Reply::empty(StatusCode::OK, charge);
    reply.owner(&container);
    Ok(reply)
}
