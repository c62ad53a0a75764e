//! `POST /dbs/{database}/users/{user}/permissions`: a create, or a query over them.

use super::{CATALOG_WRITE, Call, list_permissions, owned_reply, owner_fault, written_status};
use crate::faults::Refusal;
use crate::route::UserPath;
use crate::wire::reply::Reply;
use crate::wire::{definition, headers, links, permission_link, small_resources};
use engine::{Action, Permissions};

pub(super) async fn perform(call: &Call<'_>, path: UserPath<'_>) -> Result<Reply, Refusal> {
    if call.is_query()? {
        return list_permissions::perform(call, path).await;
    }
    let life = headers::token_life(call.headers())?;
    let database = call.owner_database(path.database, Action::ChangePermissions)?;
    let pass = call.change_catalog(Permissions { database: &database })?;
    let reading = pass.reading();
    let user = call.engine.find_user(&reading.users(), path.user).map_err(owner_fault)?;
    let definition = definition::permission::read(&call.json_body()?)?;
    let segments = permission_link::segments(&definition)?;
    let wanted = permission_link::wanted(&definition, &segments)?;
    let creation = call.creation()?;
    let written = call.engine.create_permission(pass, &user, wanted, &creation).await?;
    let permission = written.resource;
    let token = call.engine.permission_token(&reading, &permission, life)?;
    let resource = small_resources::permission(&database, &user, &permission, &token);
    let owner = links::user_names(&database, &user);
    Ok(owned_reply(written_status(written.created), CATALOG_WRITE, &resource, permission.etag(), &owner))
}
