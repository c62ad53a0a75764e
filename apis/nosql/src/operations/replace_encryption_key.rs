//! `PUT /dbs/{database}/clientencryptionkeys/{key}`: clients do this when they wrap a key again.

use super::{CATALOG_WRITE, Call, owned_reply};
use crate::faults::Refusal;
use crate::route::EncryptionKeyPath;
use crate::wire::reply::Reply;
use crate::wire::{definition, headers, links, small_resources};
use engine::Action;
use http::StatusCode;

pub(super) async fn perform(call: &Call<'_>, path: EncryptionKeyPath<'_>) -> Result<Reply, Refusal> {
    let condition = headers::write_condition(call.headers())?;
    let database = call.owner_database(path.database, Action::ChangeMetadata)?;
    let pass = call.change_catalog(&*database)?;
    let key = call.engine.find_encryption_key(&pass.reading(), path.key)?;
    let definition = definition::encryption_key::read(&call.json_body()?)?;
    let key = call.engine.replace_encryption_key(pass, &key, definition, &condition).await?;
    let resource = small_resources::encryption_key(&database, &key);
    let owner = links::database_names(&database);
    Ok(owned_reply(StatusCode::OK, CATALOG_WRITE, &resource, key.etag(), &owner))
}
