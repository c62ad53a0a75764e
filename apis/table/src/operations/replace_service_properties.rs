//! `PUT /?restype=service&comp=properties`: sections that are absent stay as they are.

use super::{CATALOG_WRITE, Call, tables};
use crate::faults::TableFault;
use crate::service_properties::{self, ANNOTATION, CORS_ANNOTATION};
use crate::wire::reply::Reply;
use http::StatusCode;

pub(super) async fn perform(call: &Call<'_>) -> Result<Reply, TableFault> {
    call.require_storage("changes of service properties")?;
    let change = service_properties::read(call.text_body()?)?;
    let database = tables::database(call).await?;
    let access = call.engine.access();
    let pass = access.change_catalog(&call.principal, &*database)?;
    let stored = call.engine.database_annotation(&pass.reading(), ANNOTATION);
    let text = change.applied(stored.as_ref().map(|stored| stored.definition().text.as_str()));
    call.engine.annotate_database(pass, ANNOTATION, text).await?;
    if let Some(rules) = &change.cors {
        let pass = access.change_catalog(&call.principal, &*database)?;
        let text = service_properties::write_cors(rules);
        call.engine.annotate_database(pass, CORS_ANNOTATION, text).await?;
    }
    Ok(Reply::empty(StatusCode::ACCEPTED, CATALOG_WRITE))
}
