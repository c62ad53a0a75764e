//! `GET …/sprocs/{id}`, `…/triggers/{id}`, `…/udfs/{id}`

use super::script::NamedScript;
use super::{CATALOG_READ, Call, resource_reply};
use crate::faults::Refusal;
use crate::route::ScriptPath;
use crate::wire::reply::Reply;
use crate::wire::small_resources;
use engine::Action;
use http::StatusCode;

pub(super) fn perform(call: &Call<'_>, path: ScriptPath<'_>) -> Result<Reply, Refusal> {
    let named = NamedScript::of(call, &path, Action::ReadMetadata)?;
    call.read_catalog(Action::ReadMetadata, named.place())?;
    let script = named.script()?;
    let resource = small_resources::script(&named.container, named.kind, &script);
    Ok(resource_reply(StatusCode::OK, CATALOG_READ, &resource, script.etag()))
}
