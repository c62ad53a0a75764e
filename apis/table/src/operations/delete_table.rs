//! `DELETE /Tables('name')`.

use super::read_table::as_resource;
use super::{CATALOG_WRITE, Call};
use crate::faults::TableFault;
use crate::wire::reply::Reply;
use engine::Action;
use http::StatusCode;
use plan::Condition;

pub(super) async fn perform(call: &Call<'_>, name: &str) -> Result<Reply, TableFault> {
    let table = call.table(name, Action::ChangeMetadata).map_err(as_resource)?;
    let pass = call.engine.access().change_catalog(&call.principal, &*table)?;
    call.engine.delete_container(pass, &Condition::None).await.map_err(TableFault::of_table)?;
    Ok(Reply::empty(StatusCode::NO_CONTENT, CATALOG_WRITE))
}
