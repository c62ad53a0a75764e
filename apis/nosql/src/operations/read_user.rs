//! `GET /dbs/{database}/users/{user}`

use super::Call;
use crate::faults::Refusal;
use crate::route::UserPath;
use crate::wire::reply::Reply;
use crate::wire::{links, small_resources};
use engine::{Action, Users};

pub(super) fn perform(call: &Call<'_>, path: UserPath<'_>) -> Result<Reply, Refusal> {
    let database = call.owner_database(path.database, Action::ReadUsers)?;
    let pass = call.read_catalog(Users { database: &database })?;
    let user = call.engine.find_user(&pass, path.user)?;
    let resource = small_resources::user(&database, &user);
    let mut reply = call.read_reply(&resource, user.etag())?;
    reply.owner_path(&links::database_names(&database));
    Ok(reply)
}
