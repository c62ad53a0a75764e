//! `GET /Tables('name')`.

use super::{CATALOG_READ, Call, tables};
use crate::faults::TableFault;
use crate::wire::accept;
use crate::wire::reply::Reply;
use engine::Action;
use http::StatusCode;
use model::{Fault, MissingFault};

pub(super) fn perform(call: &Call<'_>, name: &str) -> Result<Reply, TableFault> {
    let level = call.level()?;
    let table = call.table(name, Action::ReadMetadata).map_err(as_resource)?;
    let _pass = call.engine.access().read_catalog(&call.principal, &*table)?;
    let body = tables::table_body(level, &call.base(), &call.account.name, table.id());
    Ok(Reply::with_body(StatusCode::OK, CATALOG_READ, accept::content_type(level), body))
}

/// An absent table that is itself addressed is an absent resource.
pub(super) fn as_resource(fault: TableFault) -> TableFault {
    if let TableFault::Core(Fault::Missing(MissingFault::Owner), subject) = fault {
        return TableFault::Core(MissingFault::Resource.into(), subject);
    }
    fault
}
