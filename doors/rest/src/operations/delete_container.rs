//! `DELETE /dbs/{database}/colls/{container}`

use super::{CATALOG_WRITE, Call};
use crate::faults::Refusal;
use crate::route::ContainerPath;
use crate::wire::headers;
use crate::wire::reply::Reply;
use http::StatusCode;

pub(super) async fn perform(call: &Call<'_>, path: ContainerPath<'_>) -> Result<Reply, Refusal> {
    let pass = call.engine.access().change_catalog(&call.principal)?;
    let condition = headers::write_condition(call.headers())?;
    let container = call.engine.find_container(path.database, path.container)?.resource;
    call.engine.delete_container(pass, &container, &condition).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT, CATALOG_WRITE))
}
