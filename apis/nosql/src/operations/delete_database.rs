//! `DELETE /dbs/{database}`

use super::{CATALOG_WRITE, Call};
use crate::faults::Refusal;
use crate::wire::headers;
use crate::wire::reply::Reply;
use engine::Action;
use http::StatusCode;

pub(super) async fn perform(call: &Call<'_>, database: &str) -> Result<Reply, Refusal> {
    let condition = headers::write_condition(call.headers())?;
    let database = call.database(database, Action::ChangeMetadata)?;
    let pass = call.change_catalog(&*database)?;
    call.engine.delete_database(pass, &condition).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT, CATALOG_WRITE))
}
