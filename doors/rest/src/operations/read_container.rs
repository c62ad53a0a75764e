//! `GET /dbs/{database}/colls/{container}`

use super::{CATALOG_READ, Call};
use crate::faults::Refusal;
use crate::route::ContainerPath;
use crate::wire::reply::Reply;
use crate::wire::resources;
use engine::{Action, Place, Reach};
use http::StatusCode;

pub(super) fn perform(call: &Call<'_>, path: ContainerPath<'_>) -> Result<Reply, Refusal> {
    let container = call.container(path)?.resource;
    call.read_catalog(Action::ReadMetadata, Place::Container(&container, Reach::Whole))?;
    let body = resources::text(&resources::container(&container));
    let mut reply = Reply::json(StatusCode::OK, CATALOG_READ, body);
    reply.etag(container.etag());
    reply.owner(&container);
    Ok(reply)
}
