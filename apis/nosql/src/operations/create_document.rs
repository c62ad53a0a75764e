//! `POST …/docs` with an item: create, or upsert by header.
//!
//! `If-None-Match: *` on a create of an existing id is an ordinary conflict (409), because a create implies it; on an
//! upsert it is a failed condition (412).

use super::document::{header_key, item, written};
use super::{Call, triggered};
use crate::faults::Refusal;
use crate::route::ContainerPath;
use crate::scripts::named_triggers;
use crate::wire::reply::Reply;
use crate::wire::{headers, names};
use engine::script::TriggerOperation;
use engine::{Action, Keyed};
use plan::{DocumentOperation, Mutation};

pub(super) async fn perform(call: &Call<'_>, path: ContainerPath<'_>) -> Result<Reply, Refusal> {
    let upserts = headers::flag(call.headers(), &names::IS_UPSERT)?;
    let action = if upserts { Action::UpsertDocument } else { Action::CreateDocument };
    let container = call.owner(path, action)?.resource;
    let write = if upserts { TriggerOperation::Upsert } else { TriggerOperation::Create };
    let triggers = named_triggers(call, &container, write)?;
    let condition = headers::write_condition(call.headers())?;
    let key = header_key(call, &container)?;
    let item = item(&call.body)?;
    let mutation = match upserts {
        true => Mutation::Upsert { item, condition },
        false => Mutation::Create { item },
    };
    let keyed = Keyed::new(&container, key, DocumentOperation::Write(mutation))?;
    let pass = call.write(keyed)?;
    if let Some(triggers) = triggers {
        return Box::pin(triggered::perform(call, &container, pass, triggers)).await;
    }
    let receipt = call.engine.write(pass).await?;
    written(call, &container, receipt)
}
