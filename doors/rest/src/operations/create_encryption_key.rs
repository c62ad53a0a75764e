//! `POST /dbs/{database}/clientencryptionkeys`

use super::{CATALOG_WRITE, Call, resource_reply};
use crate::faults::Refusal;
use crate::wire::reply::Reply;
use crate::wire::small_resources;
use engine::{Action, Place};
use http::StatusCode;
use model::ClientEncryptionKeyDefinition;

pub(super) async fn perform(call: &Call<'_>, database: &str) -> Result<Reply, Refusal> {
    call.refuse_query()?;
    let database = call.owner_database(database, Action::ChangeMetadata)?;
    let pass = call.change_catalog(Action::ChangeMetadata, Place::Database(&database))?;
    let definition = ClientEncryptionKeyDefinition::from_json(&call.json_body()?)?;
    let key = call.engine.create_encryption_key(pass, &database, definition).await?;
    let resource = small_resources::encryption_key(&database, &key);
    Ok(resource_reply(StatusCode::CREATED, CATALOG_WRITE, &resource, key.etag()))
}
