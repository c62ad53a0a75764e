//! `PUT …/sprocs/{id}`, `…/triggers/{id}`, `…/udfs/{id}`

use super::{CATALOG_WRITE, Call, owned_reply};
use crate::faults::Refusal;
use crate::route::ScriptPath;
use crate::scripts;
use crate::wire::reply::Reply;
use crate::wire::{definition, headers, links, small_resources};
use engine::Action;
use http::StatusCode;

pub(super) async fn perform(call: &Call<'_>, path: ScriptPath<'_>) -> Result<Reply, Refusal> {
    let condition = headers::write_condition(call.headers())?;
    let container = call.owner(path.container, Action::ChangeMetadata)?.resource;
    let pass = call.change_catalog(call.engine.named_script(&container, path.kind, path.script))?;
    // Its absence is reported before faults of the body.
    call.engine.find_script(&pass.reading())?;
    let definition = definition::script::read(path.kind, &call.json_body()?)?;
    scripts::check_text(call, &definition).await?;
    let script = call.engine.replace_script(pass, definition, &condition).await?;
    let resource = small_resources::script(&container, path.kind, &script);
    let owner = links::container_names(&container);
    Ok(owned_reply(StatusCode::OK, CATALOG_WRITE, &resource, script.etag(), &owner))
}
