//! `GET /dbs/{database}/users`

use super::{Call, page_reply};
use crate::faults::Refusal;
use crate::wire::reply::Reply;
use crate::wire::small_resources;
use engine::{Action, Place};

pub(super) fn perform(call: &Call<'_>, database: &str) -> Result<Reply, Refusal> {
    let request = call.page_request()?;
    let database = call.owner_database(database, Action::ReadMetadata)?;
    let pass = call.read_catalog(Action::ReadMetadata, Place::Database(&database))?;
    let page = call.engine.list_users(pass, &database, &request)?;
    let rid = database.rid().text();
    Ok(page_reply(rid.as_str(), "Users", page, |user| small_resources::user(&database, user)))
}
