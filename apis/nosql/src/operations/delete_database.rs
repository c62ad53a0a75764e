//! `DELETE /dbs/{database}`

use super::{CATALOG_WRITE, Call};
use crate::faults::Refusal;
use crate::wire::headers;
use crate::wire::reply::Reply;
use engine::{Action, Place};
use http::StatusCode;

pub(super) async fn perform(call: &Call<'_>, database: &str) -> Result<Reply, Refusal> {
    let condition = headers::write_condition(call.headers())?;
    let database = call.database(database, Action::ChangeMetadata)?;
    let pass = call.change_catalog(Action::ChangeMetadata, Place::Database(&database))?;
    call.engine.delete_database(pass, &database, &condition).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT, CATALOG_WRITE))
}
