//! `POST /dbs/{database}/users`: a create, or a query over them.

use super::{CATALOG_WRITE, Call, list_users, owned_reply, written_status};
use crate::faults::Refusal;
use crate::wire::reply::Reply;
use crate::wire::{links, small_resources};
use engine::{Action, Users};

pub(super) async fn perform(call: &Call<'_>, database: &str) -> Result<Reply, Refusal> {
    if call.is_query()? {
        return list_users::perform(call, database).await;
    }
    let database = call.owner_database(database, Action::ChangePermissions)?;
    let pass = call.change_catalog(Users { database: &database })?;
    let creation = call.creation()?;
    let written = call.engine.create_user(pass, &call.name_in_body()?, &creation).await?;
    let user = written.resource;
    let resource = small_resources::user(&database, &user);
    let owner = links::database_names(&database);
    Ok(owned_reply(written_status(written.created), CATALOG_WRITE, &resource, user.etag(), &owner))
}
