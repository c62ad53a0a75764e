//! `GET /dbs/{database}/users`, or a query over it.

use super::Call;
use super::asked::List;
use crate::faults::Refusal;
use crate::wire::reply::Reply;
use crate::wire::small_resources;
use engine::{Action, Users};

pub(super) async fn perform(call: &Call<'_>, database: &str) -> Result<Reply, Refusal> {
    let asked = call.asked().await?;
    let database = call.owner_database(database, Action::ReadUsers)?;
    let pass = call.read_catalog(Users { database: &database })?;
    let page = call.engine.list_users(&pass, &asked.page())?;
    let rid = database.rid().text();
    let list = List { parent_rid: rid.as_str(), envelope: "Users" };
    asked.answer(call, list, page, |user| small_resources::user(&database, user)).await
}
