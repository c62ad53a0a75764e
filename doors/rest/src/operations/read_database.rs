//! `GET /dbs/{database}`

use super::{CATALOG_READ, Call};
use crate::faults::Refusal;
use crate::wire::reply::Reply;
use crate::wire::resources;
use http::StatusCode;

pub(super) fn perform(call: &Call<'_>, database: &str) -> Result<Reply, Refusal> {
    call.engine.access().read_catalog(&call.principal)?;
    let database = call.engine.find_database(database)?.resource;
    let body = resources::text(&resources::database(&database));
    let mut reply = Reply::json(StatusCode::OK, CATALOG_READ, body);
    reply.etag(database.etag());
    Ok(reply)
}
