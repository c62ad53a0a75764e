//! `PUT /dbs/{database}/users/{user}/permissions/{permission}`: revokes its old tokens.

use super::{CATALOG_WRITE, Call, owned_reply, owner_fault};
use crate::faults::Refusal;
use crate::route::PermissionPath;
use crate::wire::reply::Reply;
use crate::wire::{definition, headers, links, permission_link, small_resources};
use engine::{Action, Permissions};
use http::StatusCode;

pub(super) async fn perform(call: &Call<'_>, path: PermissionPath<'_>) -> Result<Reply, Refusal> {
    let condition = headers::write_condition(call.headers())?;
    let life = headers::token_life(call.headers())?;
    let database = call.owner_database(path.user.database, Action::ChangePermissions)?;
    let pass = call.change_catalog(Permissions { database: &database })?;
    let reading = pass.reading();
    let user = call.engine.find_user(&reading.users(), path.user.user).map_err(owner_fault)?;
    let permission = call.engine.find_permission(&reading, &user, path.permission)?;
    let definition = definition::permission::read(&call.json_body()?)?;
    let segments = permission_link::segments(&definition)?;
    let wanted = permission_link::wanted(&definition, &segments)?;
    let permission = call.engine.replace_permission(pass, &user, &permission, wanted, &condition).await?;
    let token = call.engine.permission_token(&reading, &permission, life)?;
    let resource = small_resources::permission(&database, &user, &permission, &token);
    let owner = links::user_names(&database, &user);
    Ok(owned_reply(StatusCode::OK, CATALOG_WRITE, &resource, permission.etag(), &owner))
}
