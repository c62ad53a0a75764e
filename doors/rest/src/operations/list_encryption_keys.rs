//! `GET /dbs/{database}/clientencryptionkeys`

use super::{Call, page_reply};
use crate::faults::Refusal;
use crate::wire::reply::Reply;
use crate::wire::small_resources;
use engine::{Action, Place};

pub(super) fn perform(call: &Call<'_>, database: &str) -> Result<Reply, Refusal> {
    let request = call.page_request()?;
    let database = call.owner_database(database, Action::ReadMetadata)?;
    let pass = call.read_catalog(Action::ReadMetadata, Place::Database(&database))?;
    let page = call.engine.list_encryption_keys(pass, &database, &request)?;
    let rid = database.rid().text();
    let resource = |key: &_| small_resources::encryption_key(&database, key);
    Ok(page_reply(rid.as_str(), "ClientEncryptionKeys", page, |key| resource(key)))
}
