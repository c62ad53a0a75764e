//! `GET /dbs/{database}/clientencryptionkeys`, or a query over it.

use super::Call;
use super::asked::List;
use crate::faults::Refusal;
use crate::wire::reply::Reply;
use crate::wire::small_resources;
use engine::Action;

pub(super) async fn perform(call: &Call<'_>, database: &str) -> Result<Reply, Refusal> {
    let asked = call.asked().await?;
    let database = call.owner_database(database, Action::ReadMetadata)?;
    let pass = call.read_catalog(&*database)?;
    let page = call.engine.list_encryption_keys(&pass, &asked.page())?;
    let rid = database.rid().text();
    let list = List { parent_rid: rid.as_str(), envelope: "ClientEncryptionKeys" };
    asked.answer(call, list, page, |key| small_resources::encryption_key(&database, key)).await
}
