//! `DELETE /dbs/{database}/colls/{container}`

use super::{CATALOG_WRITE, Call};
use crate::faults::Refusal;
use crate::route::ContainerPath;
use crate::wire::headers;
use crate::wire::reply::Reply;
use engine::Action;
use http::StatusCode;

pub(super) async fn perform(call: &Call<'_>, path: ContainerPath<'_>) -> Result<Reply, Refusal> {
    let condition = headers::write_condition(call.headers())?;
    let container = call.container(path, Action::ChangeMetadata)?.resource;
    let pass = call.change_catalog(&*container)?;
    call.engine.delete_container(pass, &condition).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT, CATALOG_WRITE))
}
