//! `DELETE …/sprocs/{id}`, `…/triggers/{id}`, `…/udfs/{id}`

use super::{CATALOG_WRITE, Call};
use crate::faults::Refusal;
use crate::route::ScriptPath;
use crate::wire::headers;
use crate::wire::reply::Reply;
use engine::Action;
use http::StatusCode;

pub(super) async fn perform(call: &Call<'_>, path: ScriptPath<'_>) -> Result<Reply, Refusal> {
    let condition = headers::write_condition(call.headers())?;
    let container = call.owner(path.container, Action::ChangeMetadata)?.resource;
    let pass = call.change_catalog(call.engine.named_script(&container, path.kind, path.script))?;
    call.engine.delete_script(pass, &condition).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT, CATALOG_WRITE))
}
