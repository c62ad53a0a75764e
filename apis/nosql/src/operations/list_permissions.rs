//! `GET /dbs/{database}/users/{user}/permissions`, each with its own token, or a query over them.

use super::asked::List;
use super::{Call, owner_fault};
use crate::faults::Refusal;
use crate::route::UserPath;
use crate::wire::reply::Reply;
use crate::wire::{headers, small_resources};
use engine::{Action, ListPage, Permission, Permissions};
use model::Fault;
use std::sync::Arc;

pub(super) async fn perform(call: &Call<'_>, path: UserPath<'_>) -> Result<Reply, Refusal> {
    let asked = call.asked().await?;
    let life = headers::token_life(call.headers())?;
    let database = call.owner_database(path.database, Action::ReadPermissions)?;
    let pass = call.read_catalog(Permissions { database: &database })?;
    let user = call.engine.find_user(&pass.users(), path.user).map_err(owner_fault)?;
    let ListPage { items, continuation } = call.engine.list_permissions(&pass, &user, &asked.page())?;
    let with_token = |permission: Arc<Permission>| {
        call.engine.permission_token(&pass, &permission, life).map(|token| (permission, token))
    };
    let items = items.into_iter().map(with_token).collect::<Result<_, Fault>>()?;
    let page = ListPage { items, continuation };
    let rid = user.rid().text();
    let list = List { parent_rid: rid.as_str(), envelope: "Permissions" };
    let resource = |(permission, token): &(Arc<Permission>, String)| {
        small_resources::permission(&database, &user, permission, token)
    };
    asked.answer(call, list, page, resource).await
}
