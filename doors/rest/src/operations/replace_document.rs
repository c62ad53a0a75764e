//! `PUT …/docs/{id}`

use super::Call;
use super::document::{item, refuse_triggers, required_key, target, written};
use crate::faults::Refusal;
use crate::route::DocumentPath;
use crate::wire::headers;
use crate::wire::reply::Reply;
use engine::{Action, Keyed, Reach};
use plan::{Mutation, Operation, Target};

pub(super) async fn perform(call: &Call<'_>, path: DocumentPath<'_>) -> Result<Reply, Refusal> {
    let owner = call.owner(path.container, Action::ReplaceDocument)?;
    let container = &owner.resource;
    refuse_triggers(call)?;
    let condition = headers::write_condition(call.headers())?;
    let key = required_key(call, container)?;
    let target = target(&owner, path.document);
    let reach = Reach::Document { key: Some(&key), target: &target };
    let pass = call.write(&[Action::ReplaceDocument], container, reach)?;
    let item = item(&call.body)?;
    if let Target::Id(id) = &target
        && item.id() != id
    {
        // The item gets another id: who may reach one item by its id alone must not put it elsewhere.
        let moved = Target::Id(item.id().to_owned());
        call.write(
            &[Action::ReplaceDocument],
            container,
            Reach::Document { key: Some(&key), target: &moved },
        )?;
    }
    let mutation = Mutation::Replace { target, item, condition };
    let keyed = Keyed::new(container, Some(key), Operation::Write(mutation))?;
    let receipt = call.engine.write(pass, keyed).await?;
    written(call, container, receipt)
}
