//! `GET …/sprocs`, `…/triggers`, `…/udfs`, or a query over them.

use super::Call;
use super::asked::List;
use crate::faults::Refusal;
use crate::route::ContainerPath;
use crate::wire::reply::Reply;
use crate::wire::small_resources;
use engine::{Action, Scripts};
use model::ScriptKind;

pub(super) async fn perform(
    call: &Call<'_>,
    path: ContainerPath<'_>,
    kind: ScriptKind,
) -> Result<Reply, Refusal> {
    let asked = call.asked().await?;
    let container = call.owner(path, Action::ReadMetadata)?.resource;
    let pass = call.read_catalog(Scripts { container: &container, kind })?;
    let page = call.engine.list_scripts(&pass, &asked.page())?;
    let rid = container.rid().text();
    let list = List { parent_rid: rid.as_str(), envelope: envelope(kind) };
    asked.answer(call, list, page, |script| small_resources::script(&container, kind, script)).await
}

fn envelope(kind: ScriptKind) -> &'static str {
    match kind {
        ScriptKind::StoredProcedure => "StoredProcedures",
        ScriptKind::Trigger => "Triggers",
        ScriptKind::UserDefinedFunction => "UserDefinedFunctions",
    }
}
