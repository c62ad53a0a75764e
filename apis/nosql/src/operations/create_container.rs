//! `POST /dbs/{database}/colls`: a create, or a query over them.

use super::{CATALOG_WRITE, Call, list_containers};
use crate::faults::Refusal;
use crate::lower::first_fault;
use crate::wire::reply::Reply;
use crate::wire::{definition, headers, resources};
use engine::Action;
use http::StatusCode;

pub(super) async fn perform(call: &Call<'_>, database: &str) -> Result<Reply, Refusal> {
    if call.is_query()? {
        return list_containers::perform(call, database).await;
    }
    let database = call.owner_database(database, Action::ChangeMetadata)?;
    let pass = call.change_catalog(&*database)?;
    let body = call.json_body()?;
    let read = || Ok((definition::container::read(&body)?, headers::throughput(call.headers())?));
    let (definition, throughput) = read().map_err(|fault| first_fault(&body, fault))?;
    let container = call.engine.create_container(pass, definition, throughput).await?;
    let body = resources::text(&call.container_json(&container));
    let mut reply = Reply::json(StatusCode::CREATED, CATALOG_WRITE, body);
    reply.etag(container.etag());
    reply.owner_of_container(&container);
    Ok(reply)
}
