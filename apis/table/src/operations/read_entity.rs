//! `GET /name(PartitionKey='p',RowKey='r')`: the hot path of most applications.

use super::entity::{address, entity_body, has_row_key};
use super::{Call, ETAG, query_entities};
use crate::faults::TableFault;
use crate::route::EntityPath;
use crate::wire::reply::Reply;
use crate::wire::{accept, etag};
use engine::{Action, ReadOptions};
use http::StatusCode;
use model::MissingFault;
use plan::Outcome;

pub(super) async fn perform(call: &Call<'_>, path: &EntityPath) -> Result<Reply, TableFault> {
    let table = call.table(&path.table, Action::ReadDocument)?;
    let select = query_entities::select(call)?;
    let level = call.level()?;
    let address = address(call.style(), &table, path)?;
    let pass = call.engine.access().read_row(&call.principal, &table, address, &path.row_key)?;
    let receipt = call.engine.read(pass, &ReadOptions::default()).await?;
    let stored = match &receipt.outcome {
        Outcome::Read(stored) | Outcome::Created(stored) | Outcome::Replaced(stored) => stored,
        Outcome::Deleted | Outcome::NotModified(_) | Outcome::Nothing => {
            return Err(MissingFault::Resource.into());
        }
    };
    if !has_row_key(stored, &path.row_key) {
        return Err(MissingFault::Resource.into());
    }
    let etag = etag::etag(stored.time);
    let base = call.base();
    let body = entity_body(&call.frame(level, &base, &table, &select), stored, &etag);
    let mut reply = Reply::with_body(StatusCode::OK, receipt.charge, accept::content_type(level), body);
    reply.text(&ETAG, etag);
    Ok(reply)
}
