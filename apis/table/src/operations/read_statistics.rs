//! `GET /?restype=service&comp=stats`: the state of the second region, which there is none of.

use super::{CATALOG_READ, Call, XML};
use crate::faults::TableFault;
use crate::wire::reply::Reply;
use crate::wire::xml;
use http::StatusCode;

pub(super) fn perform(call: &Call<'_>) -> Result<Reply, TableFault> {
    let access = call.engine.access();
    access.check_action(&call.principal, engine::Action::ReadMetadata, None)?;
    let body = format!(
        "{}<StorageServiceStats><GeoReplication><Status>unavailable</Status><LastSyncTime/></GeoReplication>\
         </StorageServiceStats>",
        xml::DECLARATION
    );
    Ok(Reply::with_body(StatusCode::OK, CATALOG_READ, XML, body.into_bytes()))
}
