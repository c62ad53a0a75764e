//! `GET /dbs/{database}/colls`, or a query over it.

use super::Call;
use super::asked::List;
use crate::faults::Refusal;
use crate::wire::reply::Reply;
use engine::Action;

pub(super) async fn perform(call: &Call<'_>, database: &str) -> Result<Reply, Refusal> {
    let asked = call.asked().await?;
    let database = call.owner_database(database, Action::ReadMetadata)?;
    let pass = call.read_catalog(&*database)?;
    let page = call.engine.list_containers(&pass, &asked.page())?;
    let rid = database.rid().text();
    let list = List { parent_rid: rid.as_str(), envelope: "DocumentCollections" };
    asked.answer(call, list, page, |container| call.container_json(container)).await
}
