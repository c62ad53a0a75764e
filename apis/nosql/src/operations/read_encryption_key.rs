//! `GET /dbs/{database}/clientencryptionkeys/{key}`

use super::{CATALOG_READ, Call, resource_reply};
use crate::faults::Refusal;
use crate::route::EncryptionKeyPath;
use crate::wire::reply::Reply;
use crate::wire::small_resources;
use engine::Action;
use http::StatusCode;

pub(super) fn perform(call: &Call<'_>, path: EncryptionKeyPath<'_>) -> Result<Reply, Refusal> {
    let database = call.owner_database(path.database, Action::ReadMetadata)?;
    let pass = call.read_catalog(&*database)?;
    let key = call.engine.find_encryption_key(&pass, path.key)?;
    let resource = small_resources::encryption_key(&database, &key);
    Ok(resource_reply(StatusCode::OK, CATALOG_READ, &resource, key.etag()))
}
