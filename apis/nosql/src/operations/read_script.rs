//! `GET …/sprocs/{id}`, `…/triggers/{id}`, `…/udfs/{id}`

use super::Call;
use crate::faults::Refusal;
use crate::route::ScriptPath;
use crate::wire::reply::Reply;
use crate::wire::{links, small_resources};
use engine::Action;

pub(super) fn perform(call: &Call<'_>, path: ScriptPath<'_>) -> Result<Reply, Refusal> {
    let container = call.owner(path.container, Action::ReadMetadata)?.resource;
    let pass = call.read_catalog(call.engine.named_script(&container, path.kind, path.script))?;
    let script = call.engine.find_script(&pass)?;
    let resource = small_resources::script(&container, path.kind, &script);
    let mut reply = call.read_reply(&resource, script.etag())?;
    reply.owner_path(&links::container_names(&container));
    Ok(reply)
}
