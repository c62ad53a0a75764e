//! `GET …/sprocs`, `…/triggers`, `…/udfs`

use super::{Call, page_reply};
use crate::faults::Refusal;
use crate::route::ContainerPath;
use crate::wire::reply::Reply;
use crate::wire::small_resources;
use engine::{Action, Place, Reach};
use model::ScriptKind;

pub(super) fn perform(call: &Call<'_>, path: ContainerPath<'_>, kind: ScriptKind) -> Result<Reply, Refusal> {
    let request = call.page_request()?;
    let container = call.owner(path, Action::ReadMetadata)?.resource;
    let pass = call.read_catalog(Action::ReadMetadata, Place::Container(&container, Reach::Scripts(kind)))?;
    let page = call.engine.list_scripts(pass, &container, kind, &request)?;
    let rid = container.rid().text();
    Ok(page_reply(rid.as_str(), envelope(kind), page, |script| {
        small_resources::script(&container, kind, script)
    }))
}

fn envelope(kind: ScriptKind) -> &'static str {
    match kind {
        ScriptKind::StoredProcedure => "StoredProcedures",
        ScriptKind::Trigger => "Triggers",
        ScriptKind::UserDefinedFunction => "UserDefinedFunctions",
    }
}
