//! `GET /dbs/{database}`

use super::{CATALOG_READ, Call};
use crate::faults::Refusal;
use crate::wire::reply::Reply;
use crate::wire::resources;
use engine::{Action, Resource};
use http::StatusCode;

pub(super) fn perform(call: &Call<'_>, database: &str) -> Result<Reply, Refusal> {
    let database = call.database(database, Action::ReadMetadata)?;
    call.authorise(Action::ReadMetadata, Resource::Database(&database))?;
    let body = resources::text(&resources::database(&database));
    let mut reply = Reply::json(StatusCode::OK, CATALOG_READ, body);
    reply.etag(database.etag());
    Ok(reply)
}
