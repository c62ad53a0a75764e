//! `POST /dbs/{database}/clientencryptionkeys`: a create, or a query over them.

use super::{CATALOG_WRITE, Call, list_encryption_keys, owned_reply};
use crate::faults::Refusal;
use crate::wire::reply::Reply;
use crate::wire::{definition, links, small_resources};
use engine::Action;
use http::StatusCode;

pub(super) async fn perform(call: &Call<'_>, database: &str) -> Result<Reply, Refusal> {
    if call.is_query()? {
        return list_encryption_keys::perform(call, database).await;
    }
    let database = call.owner_database(database, Action::ChangeMetadata)?;
    let pass = call.change_catalog(&*database)?;
    let definition = definition::encryption_key::read(&call.json_body()?)?;
    let key = call.engine.create_encryption_key(pass, definition).await?;
    let resource = small_resources::encryption_key(&database, &key);
    let owner = links::database_names(&database);
    Ok(owned_reply(StatusCode::CREATED, CATALOG_WRITE, &resource, key.etag(), &owner))
}
