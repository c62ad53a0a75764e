//! `GET /dbs/{database}/users/{user}`

use super::{CATALOG_READ, Call, resource_reply};
use crate::faults::Refusal;
use crate::route::UserPath;
use crate::wire::reply::Reply;
use crate::wire::small_resources;
use engine::{Action, Users};
use http::StatusCode;

pub(super) fn perform(call: &Call<'_>, path: UserPath<'_>) -> Result<Reply, Refusal> {
    let database = call.owner_database(path.database, Action::ReadUsers)?;
    let pass = call.read_catalog(Users { database: &database })?;
    let user = call.engine.find_user(&pass, path.user)?;
    let resource = small_resources::user(&database, &user);
    Ok(resource_reply(StatusCode::OK, CATALOG_READ, &resource, user.etag()))
}
