//! `POST …/sprocs/{id}`: not implemented. Only a caller who could execute an existing procedure gets this answer.

use super::{Call, not_supported};
use crate::faults::Refusal;
use crate::route::ScriptPath;
use crate::wire::reply::Reply;
use engine::Action;

pub(super) fn perform(call: &Call<'_>, path: ScriptPath<'_>) -> Result<Reply, Refusal> {
    let container = call.owner(path.container, Action::ExecuteProcedure)?.resource;
    let named = call.engine.named_script(&container, path.kind, path.script);
    let pass = call.engine.access().execute(&call.principal, named)?;
    call.engine.find_procedure(&pass)?;
    Err(not_supported("the execution of a stored procedure").into())
}
