//! `GET /dbs/{database}/users/{user}/permissions`: each with a token of its own.

use super::{Call, owner_fault, page_reply};
use crate::faults::Refusal;
use crate::route::UserPath;
use crate::wire::reply::Reply;
use crate::wire::{headers, small_resources};
use engine::{Action, Place};

pub(super) fn perform(call: &Call<'_>, path: UserPath<'_>) -> Result<Reply, Refusal> {
    let request = call.page_request()?;
    let life = headers::token_life(call.headers())?;
    let database = call.owner_database(path.database, Action::ReadPermissions)?;
    let pass = call.read_catalog(Action::ReadPermissions, Place::Database(&database))?;
    let user = call.engine.find_user(&database, path.user).map_err(owner_fault)?.resource;
    let page = call.engine.list_permissions(pass, &user, &request)?;
    let rid = user.rid().text();
    Ok(page_reply(rid.as_str(), "Permissions", page, |permission| {
        let token = call.engine.permission_token(permission, life);
        small_resources::permission(&database, &user, permission, &token)
    }))
}
