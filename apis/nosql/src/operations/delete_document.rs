//! `DELETE …/docs/{id}`

use super::document::{required_key, target, written};
use super::{Call, triggered};
use crate::faults::Refusal;
use crate::route::DocumentPath;
use crate::scripts::named_triggers;
use crate::wire::headers;
use crate::wire::reply::Reply;
use engine::script::TriggerOperation;
use engine::{Action, Keyed};
use plan::{DocumentOperation, Mutation};

pub(super) async fn perform(call: &Call<'_>, path: DocumentPath<'_>) -> Result<Reply, Refusal> {
    let owner = call.owner(path.container, Action::DeleteDocument)?;
    let container = &owner.resource;
    let triggers = named_triggers(call, container, TriggerOperation::Delete)?;
    let condition = headers::write_condition(call.headers())?;
    let key = required_key(call, container)?;
    let target = target(&owner, path.document);
    let mutation = Mutation::Delete { target, condition };
    let keyed = Keyed::new(container, Some(key), DocumentOperation::Write(mutation))?;
    let pass = call.write(keyed)?;
    if let Some(triggers) = triggers {
        return triggered::perform(call, container, pass, triggers).await;
    }
    let receipt = call.engine.write(pass).await?;
    written(call, container, receipt)
}
