//! `PUT /name?comp=acl`: replaces the stored access policies of a table.

use super::{CATALOG_WRITE, Call};
use crate::faults::TableFault;
use crate::policies;
use crate::wire::reply::Reply;
use engine::Action;
use http::StatusCode;

pub(super) async fn perform(call: &Call<'_>, name: &str) -> Result<Reply, TableFault> {
    call.require_storage("stored access policies")?;
    let table = call.table(name, Action::ChangeMetadata)?;
    let pass = call.engine.access().change_catalog(&call.principal, &*table)?;
    let policies = policies::read(call.text_body()?)?;
    call.engine.annotate_container(pass, policies::ANNOTATION, policies::write(&policies)).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT, CATALOG_WRITE))
}
