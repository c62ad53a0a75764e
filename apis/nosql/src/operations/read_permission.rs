//! `GET /dbs/{database}/users/{user}/permissions/{permission}`: with a new token.

use super::{Call, owner_fault};
use crate::faults::Refusal;
use crate::route::PermissionPath;
use crate::wire::reply::Reply;
use crate::wire::{headers, links, small_resources};
use engine::{Action, Permissions};

pub(super) fn perform(call: &Call<'_>, path: PermissionPath<'_>) -> Result<Reply, Refusal> {
    let life = headers::token_life(call.headers())?;
    let database = call.owner_database(path.user.database, Action::ReadPermissions)?;
    let pass = call.read_catalog(Permissions { database: &database })?;
    let user = call.engine.find_user(&pass.users(), path.user.user).map_err(owner_fault)?;
    let permission = call.engine.find_permission(&pass, &user, path.permission)?;
    let token = call.engine.permission_token(&pass, &permission, life)?;
    let resource = small_resources::permission(&database, &user, &permission, &token);
    let mut reply = call.read_reply(&resource, permission.etag())?;
    reply.owner_path(&links::user_names(&database, &user));
    Ok(reply)
}
