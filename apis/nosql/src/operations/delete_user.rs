//! `DELETE /dbs/{database}/users/{user}`

use super::{CATALOG_WRITE, Call};
use crate::faults::Refusal;
use crate::route::UserPath;
use crate::wire::headers;
use crate::wire::reply::Reply;
use engine::{Action, Users};
use http::StatusCode;

pub(super) async fn perform(call: &Call<'_>, path: UserPath<'_>) -> Result<Reply, Refusal> {
    let condition = headers::write_condition(call.headers())?;
    let database = call.owner_database(path.database, Action::ChangePermissions)?;
    let pass = call.change_catalog(Users { database: &database })?;
    let user = call.engine.find_user(&pass.reading(), path.user)?;
    call.engine.delete_user(pass, &user, &condition).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT, CATALOG_WRITE))
}
