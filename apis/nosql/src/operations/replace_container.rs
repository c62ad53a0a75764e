//! `PUT /dbs/{database}/colls/{container}`

use super::{CATALOG_WRITE, Call};
use crate::faults::Refusal;
use crate::lower::first_fault;
use crate::route::ContainerPath;
use crate::wire::reply::Reply;
use crate::wire::{definition, headers, resources};
use engine::Action;
use http::StatusCode;

pub(super) async fn perform(call: &Call<'_>, path: ContainerPath<'_>) -> Result<Reply, Refusal> {
    let condition = headers::write_condition(call.headers())?;
    let container = call.container(path, Action::ChangeMetadata)?.resource;
    let pass = call.change_catalog(&*container)?;
    let body = call.json_body()?;
    let change = definition::container::read_change(container.definition(), &body)
        .map_err(|fault| first_fault(&body, fault))?;
    let container = call.engine.replace_container(pass, change, &condition).await?;
    let body = resources::text(&call.container_json(&container));
    let mut reply = Reply::json(StatusCode::OK, CATALOG_WRITE, body);
    reply.etag(container.etag());
    reply.owner_of_container(&container);
    Ok(reply)
}
