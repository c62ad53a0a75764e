//! `POST …/sprocs/{id}`: not built. Says so only to a caller who could execute a procedure that is there.

use super::script::NamedScript;
use super::{Call, not_supported};
use crate::faults::Refusal;
use crate::route::ScriptPath;
use crate::wire::reply::Reply;
use engine::Action;

pub(super) fn perform(call: &Call<'_>, path: ScriptPath<'_>) -> Result<Reply, Refusal> {
    let named = NamedScript::of(call, &path, Action::ExecuteProcedure)?;
    call.change_catalog(Action::ExecuteProcedure, named.place())?;
    named.script()?;
    Err(not_supported("the execution of a stored procedure").into())
}
