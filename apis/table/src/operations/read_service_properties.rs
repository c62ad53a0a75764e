//! `GET /?restype=service&comp=properties`.

use super::{CATALOG_READ, Call, XML};
use crate::faults::TableFault;
use crate::service::DATABASE;
use crate::service_properties::{self, ANNOTATION, CORS_ANNOTATION};
use crate::wire::reply::Reply;
use engine::{Account, Action};
use http::StatusCode;
use model::Fault;

pub(super) fn perform(call: &Call<'_>) -> Result<Reply, TableFault> {
    let access = call.engine.access();
    let stored = match call.engine.find_database(&call.principal, Action::ReadMetadata, DATABASE) {
        Ok(database) => {
            let pass = access.read_catalog(&call.principal, &*database)?;
            call.engine.database_annotation(&pass, ANNOTATION)
        }
        // Without a table there is no database, and nothing was set.
        Err(Fault::Missing(_)) => {
            let _pass = access.read_catalog(&call.signer, Account)?;
            None
        }
        Err(fault) => return Err(TableFault::of_table(fault)),
    };
    let cors = call.engine.published_annotation(DATABASE, CORS_ANNOTATION);
    let cors = cors.map(|cors| service_properties::read_cors(&cors.definition().text)).unwrap_or_default();
    let stored = stored.as_ref().map(|stored| stored.definition().text.as_str());
    let body = service_properties::write(stored, &cors).into_bytes();
    Ok(Reply::with_body(StatusCode::OK, CATALOG_READ, XML, body))
}
