//! `DELETE /dbs/{database}/users/{user}/permissions/{permission}`: revokes its tokens.

use super::{CATALOG_WRITE, Call, owner_fault};
use crate::faults::Refusal;
use crate::route::PermissionPath;
use crate::wire::headers;
use crate::wire::reply::Reply;
use engine::{Action, Permissions};
use http::StatusCode;

pub(super) async fn perform(call: &Call<'_>, path: PermissionPath<'_>) -> Result<Reply, Refusal> {
    let condition = headers::write_condition(call.headers())?;
    let database = call.owner_database(path.user.database, Action::ChangePermissions)?;
    let pass = call.change_catalog(Permissions { database: &database })?;
    let reading = pass.reading();
    let user = call.engine.find_user(&reading.users(), path.user.user).map_err(owner_fault)?;
    let permission = call.engine.find_permission(&reading, &user, path.permission)?;
    call.engine.delete_permission(pass, &permission, &condition).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT, CATALOG_WRITE))
}
