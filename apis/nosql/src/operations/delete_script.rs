//! `DELETE …/sprocs/{id}`, `…/triggers/{id}`, `…/udfs/{id}`

use super::script::NamedScript;
use super::{CATALOG_WRITE, Call};
use crate::faults::Refusal;
use crate::route::ScriptPath;
use crate::wire::headers;
use crate::wire::reply::Reply;
use engine::Action;
use http::StatusCode;

pub(super) async fn perform(call: &Call<'_>, path: ScriptPath<'_>) -> Result<Reply, Refusal> {
    let condition = headers::write_condition(call.headers())?;
    let named = NamedScript::of(call, &path, Action::ChangeMetadata)?;
    let pass = call.change_catalog(Action::ChangeMetadata, named.place())?;
    call.engine.delete_script(pass, named.kind, &*named.script()?, &condition).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT, CATALOG_WRITE))
}
