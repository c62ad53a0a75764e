//! `POST /dbs`: a create, or a query over them.

use super::{CATALOG_WRITE, Call, list_databases};
use crate::faults::Refusal;
use crate::wire::reply::Reply;
use crate::wire::{headers, resources};
use engine::Account;
use http::StatusCode;

pub(super) async fn perform(call: &Call<'_>) -> Result<Reply, Refusal> {
    if call.is_query()? {
        return list_databases::perform(call).await;
    }
    let pass = call.change_catalog(Account)?;
    let id = call.name_in_body()?;
    let throughput = headers::throughput(call.headers())?;
    let database = call.engine.create_database(pass, &id, throughput).await?;
    let body = resources::text(&resources::database(&database));
    let mut reply = Reply::json(StatusCode::CREATED, CATALOG_WRITE, body);
    reply.etag(database.etag());
    Ok(reply)
}
