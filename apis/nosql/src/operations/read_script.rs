//! `GET …/sprocs/{id}`, `…/triggers/{id}`, `…/udfs/{id}`

use super::{CATALOG_READ, Call, resource_reply};
use crate::faults::Refusal;
use crate::route::ScriptPath;
use crate::wire::reply::Reply;
use crate::wire::small_resources;
use engine::Action;
use http::StatusCode;

pub(super) fn perform(call: &Call<'_>, path: ScriptPath<'_>) -> Result<Reply, Refusal> {
    let container = call.owner(path.container, Action::ReadMetadata)?.resource;
    let pass = call.read_catalog(call.engine.named_script(&container, path.kind, path.script))?;
    let script = call.engine.find_script(&pass)?;
    let resource = small_resources::script(&container, path.kind, &script);
    Ok(resource_reply(StatusCode::OK, CATALOG_READ, &resource, script.etag()))
}
