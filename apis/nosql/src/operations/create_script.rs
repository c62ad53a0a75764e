//! `POST …/sprocs`, `…/triggers`, `…/udfs`: a create, or a query over them.

use super::{CATALOG_WRITE, Call, list_scripts, owned_reply, written_status};
use crate::faults::Refusal;
use crate::route::ContainerPath;
use crate::scripts;
use crate::wire::reply::Reply;
use crate::wire::{definition, links, small_resources};
use engine::{Action, Scripts};
use model::ScriptKind;

pub(super) async fn perform(
    call: &Call<'_>,
    path: ContainerPath<'_>,
    kind: ScriptKind,
) -> Result<Reply, Refusal> {
    if call.is_query()? {
        return list_scripts::perform(call, path, kind).await;
    }
    let container = call.owner(path, Action::ChangeMetadata)?.resource;
    let pass = call.change_catalog(Scripts { container: &container, kind })?;
    let definition = definition::script::read(kind, &call.json_body()?)?;
    let creation = call.creation()?;
    scripts::check_text(call, &definition).await?;
    let written = call.engine.create_script(pass, definition, &creation).await?;
    let script = written.resource;
    let resource = small_resources::script(&container, kind, &script);
    let owner = links::container_names(&container);
    Ok(owned_reply(written_status(written.created), CATALOG_WRITE, &resource, script.etag(), &owner))
}
