//! `PUT /dbs/{database}/users/{user}`: renames a user.

use super::{CATALOG_WRITE, Call, owned_reply};
use crate::faults::Refusal;
use crate::route::UserPath;
use crate::wire::reply::Reply;
use crate::wire::{headers, links, small_resources};
use engine::{Action, Users};
use http::StatusCode;

pub(super) async fn perform(call: &Call<'_>, path: UserPath<'_>) -> Result<Reply, Refusal> {
    let condition = headers::write_condition(call.headers())?;
    let database = call.owner_database(path.database, Action::ChangePermissions)?;
    let pass = call.change_catalog(Users { database: &database })?;
    let user = call.engine.find_user(&pass.reading(), path.user)?;
    let user = call.engine.replace_user(pass, &user, &call.name_in_body()?, &condition).await?;
    let resource = small_resources::user(&database, &user);
    let owner = links::database_names(&database);
    Ok(owned_reply(StatusCode::OK, CATALOG_WRITE, &resource, user.etag(), &owner))
}
