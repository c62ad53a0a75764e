//! `GET /dbs/{database}/clientencryptionkeys/{key}`

use super::Call;
use crate::faults::Refusal;
use crate::route::EncryptionKeyPath;
use crate::wire::reply::Reply;
use crate::wire::{links, small_resources};
use engine::Action;

pub(super) fn perform(call: &Call<'_>, path: EncryptionKeyPath<'_>) -> Result<Reply, Refusal> {
    let database = call.owner_database(path.database, Action::ReadMetadata)?;
    let pass = call.read_catalog(&*database)?;
    let key = call.engine.find_encryption_key(&pass, path.key)?;
    let resource = small_resources::encryption_key(&database, &key);
    let mut reply = call.read_reply(&resource, key.etag())?;
    reply.owner_path(&links::database_names(&database));
    Ok(reply)
}
