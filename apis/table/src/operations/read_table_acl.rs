//! `GET /name?comp=acl`: the stored access policies of a table.

use super::{CATALOG_READ, Call, XML};
use crate::faults::TableFault;
use crate::policies;
use crate::wire::reply::Reply;
use engine::Action;
use http::StatusCode;

pub(super) fn perform(call: &Call<'_>, name: &str) -> Result<Reply, TableFault> {
    call.require_storage("stored access policies")?;
    let table = call.table(name, Action::ReadMetadata)?;
    let pass = call.engine.access().read_catalog(&call.principal, &*table)?;
    let body = policies::write(&policies::stored(call.engine, &pass)).into_bytes();
    Ok(Reply::with_body(StatusCode::OK, CATALOG_READ, XML, body))
}
