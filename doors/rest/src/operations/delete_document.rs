//! `DELETE …/docs/{id}`

use super::Call;
use super::document::{refuse_triggers, required_key, target, written};
use crate::faults::Refusal;
use crate::route::DocumentPath;
use crate::wire::headers;
use crate::wire::reply::Reply;
use plan::Mutation;

pub(super) async fn perform(call: &Call<'_>, path: DocumentPath<'_>) -> Result<Reply, Refusal> {
    let owner = call.owner(path.container)?;
    let container = &owner.resource;
    let pass = call.engine.access().write(&call.principal, container)?;
    refuse_triggers(call)?;
    let condition = headers::write_condition(call.headers())?;
    let key = required_key(call, container)?;
    let mutation = Mutation::Delete { target: target(&owner, path.document), condition };
    let receipt = call.engine.write(pass, Some(key), mutation).await?;
    written(call, container, receipt)
}
