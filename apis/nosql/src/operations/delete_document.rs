//! `DELETE …/docs/{id}`

use super::Call;
use super::document::{refuse_triggers, required_key, target, written};
use crate::faults::Refusal;
use crate::route::DocumentPath;
use crate::wire::headers;
use crate::wire::reply::Reply;
use engine::{Action, Keyed};
use plan::{DocumentOperation, Mutation};

pub(super) async fn perform(call: &Call<'_>, path: DocumentPath<'_>) -> Result<Reply, Refusal> {
    let owner = call.owner(path.container, Action::DeleteDocument)?;
    let container = &owner.resource;
    refuse_triggers(call)?;
    let condition = headers::write_condition(call.headers())?;
    let key = required_key(call, container)?;
    let target = target(&owner, path.document);
    let mutation = Mutation::Delete { target, condition };
    let keyed = Keyed::new(container, Some(key), DocumentOperation::Write(mutation))?;
    let receipt = call.engine.write(call.write(keyed)?).await?;
    written(call, container, receipt)
}
