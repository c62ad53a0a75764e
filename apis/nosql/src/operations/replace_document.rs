//! `PUT …/docs/{id}`

use super::document::{item, required_key, target, written};
use super::{Call, triggered};
use crate::faults::Refusal;
use crate::route::DocumentPath;
use crate::scripts::named_triggers;
use crate::wire::headers;
use crate::wire::reply::Reply;
use engine::script::TriggerOperation;
use engine::{Action, Container, Keyed, Reach, Resource};
use model::PartitionKey;
use plan::{DocumentOperation, Item, Mutation, Rename, Target};

pub(super) async fn perform(call: &Call<'_>, path: DocumentPath<'_>) -> Result<Reply, Refusal> {
    let owner = call.owner(path.container, Action::ReplaceDocument)?;
    let container = &owner.resource;
    let triggers = named_triggers(call, container, TriggerOperation::Replace)?;
    let condition = headers::write_condition(call.headers())?;
    let key = required_key(call, container)?;
    let target = target(&owner, path.document);
    let reach = Reach::Document { key: Some(&key), target: &target };
    call.authorise(Action::ReplaceDocument, Resource::Container(container, reach))?;
    let item = item(&call.body)?;
    let rename = rename(call, container, &key, &target, &item);
    let mutation = Mutation::Replace { target, item, condition, rename };
    let keyed = Keyed::new(container, Some(key), DocumentOperation::Write(mutation))?;
    let pass = call.write(keyed)?;
    if let Some(triggers) = triggers {
        return triggered::perform(call, container, pass, triggers).await;
    }
    let receipt = call.engine.write(pass).await?;
    written(call, container, receipt)
}

/// Whether the caller may change the id of the stored version to that of the item.
///
/// Permission for one item does not include moving it to another id: a caller that may access an item only by its
/// number or its id must keep that id. Only the partition knows whether the id differs from the stored one.
pub(super) fn rename(
    call: &Call<'_>,
    container: &Container,
    key: &PartitionKey,
    target: &Target,
    item: &Item,
) -> Rename {
    let moved = Target::Id(item.id().to_owned());
    if *target == moved {
        return Rename::Refused;
    }
    let reach = Reach::Document { key: Some(key), target: &moved };
    match call.authorise(Action::ReplaceDocument, Resource::Container(container, reach)) {
        Ok(()) => Rename::Allowed,
        Err(_) => Rename::Refused,
    }
}
