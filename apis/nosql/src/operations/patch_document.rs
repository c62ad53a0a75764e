//! `PATCH …/docs/{id}`

use super::Call;
use super::document::{Patch, patch, required_key, target, written};
use crate::faults::Refusal;
use crate::route::DocumentPath;
use crate::scripts::refuse_triggers;
use crate::wire::headers;
use crate::wire::reply::Reply;
use engine::{Action, Keyed, Reach, Resource};
use plan::{DocumentOperation, Mutation};

pub(super) async fn perform(call: &Call<'_>, path: DocumentPath<'_>) -> Result<Reply, Refusal> {
    let owner = call.owner(path.container, Action::ReplaceDocument)?;
    let container = &owner.resource;
    refuse_triggers(call, "a patch")?;
    let condition = headers::write_condition(call.headers())?;
    let key = required_key(call, container)?;
    let target = target(&owner, path.document);
    let reach = Reach::Document { key: Some(&key), target: &target };
    call.authorise(Action::ReplaceDocument, Resource::Container(container, reach))?;
    let Patch { operations, filter } = patch(container, &call.body)?;
    let mutation = Mutation::Patch { target, operations, condition, filter };
    let keyed = Keyed::new(container, Some(key), DocumentOperation::Write(mutation))?;
    let receipt = call.engine.write(call.write(keyed)?).await?;
    written(call, container, receipt)
}
