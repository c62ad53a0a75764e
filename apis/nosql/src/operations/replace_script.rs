//! `PUT …/sprocs/{id}`, `…/triggers/{id}`, `…/udfs/{id}`

use super::script::NamedScript;
use super::{CATALOG_WRITE, Call, resource_reply};
use crate::faults::Refusal;
use crate::route::ScriptPath;
use crate::wire::reply::Reply;
use crate::wire::{definition, headers, small_resources};
use engine::Action;
use http::StatusCode;

pub(super) async fn perform(call: &Call<'_>, path: ScriptPath<'_>) -> Result<Reply, Refusal> {
    let condition = headers::write_condition(call.headers())?;
    let named = NamedScript::of(call, &path, Action::ChangeMetadata)?;
    let pass = call.change_catalog(Action::ChangeMetadata, named.place())?;
    let script = named.script()?;
    let definition = definition::script::read(named.kind, &call.json_body()?)?;
    let script = call.engine.replace_script(pass, named.kind, &script, definition, &condition).await?;
    let resource = small_resources::script(&named.container, named.kind, &script);
    Ok(resource_reply(StatusCode::OK, CATALOG_WRITE, &resource, script.etag()))
}
