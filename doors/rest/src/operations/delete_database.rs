//! `DELETE /dbs/{database}`

use super::{CATALOG_WRITE, Call};
use crate::faults::Refusal;
use crate::wire::headers;
use crate::wire::reply::Reply;
use http::StatusCode;

pub(super) async fn perform(call: &Call<'_>, database: &str) -> Result<Reply, Refusal> {
    let pass = call.engine.access().change_catalog(&call.principal)?;
    let condition = headers::write_condition(call.headers())?;
    let database = call.engine.find_database(database)?.resource;
    call.engine.delete_database(pass, &database, &condition).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT, CATALOG_WRITE))
}
