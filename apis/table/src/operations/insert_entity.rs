//! `POST /name`: inserts an entity that does not exist.

use super::entity::{entity_body, write};
use super::{Call, ETAG, LOCATION};
use crate::faults::TableFault;
use crate::wire::entity::{EntityKeys, Select, entity_address, read_entity};
use crate::wire::reply::Reply;
use crate::wire::{accept, etag, names};
use engine::{Action, Container, DocumentReceipt};
use http::StatusCode;
use model::Fault;
use plan::{DocumentOperation, Item, Mutation, Outcome, StoredDocument};

pub(super) async fn perform(call: &Call<'_>, name: &str) -> Result<Reply, TableFault> {
    let table = call.table(name, Action::CreateDocument)?;
    let entity = read_entity(&call.body, EntityKeys::InBody, call.style().limits())?;
    let prefers_content = call.prefers_content()?;
    call.level()?;
    let item = Item::new(entity.document)?;
    let operation = DocumentOperation::Write(Mutation::Create { item });
    let receipt = write(call, &table, (None, &entity.row_key), operation).await?;
    let address = entity_address(table.id(), &entity.partition_key, &entity.row_key);
    inserted(call, &table, &receipt, &address, prefers_content)
}

/// The answer to an insert.
fn inserted(
    call: &Call<'_>,
    table: &Container,
    receipt: &DocumentReceipt,
    address: &str,
    prefers_content: Option<bool>,
) -> Result<Reply, TableFault> {
    let stored = match &receipt.outcome {
        Outcome::Created(stored) | Outcome::Replaced(stored) | Outcome::Read(stored) => stored,
        Outcome::Deleted | Outcome::NotModified(_) | Outcome::Nothing => {
            return Err(Fault::Internal("an insert has stored nothing".to_owned()).into());
        }
    };
    let mut reply = reply(call, table, stored, address, prefers_content)?;
    reply.charge = receipt.charge;
    Ok(reply)
}

/// The answer with a new entity, or with its address only.
pub(super) fn reply(
    call: &Call<'_>,
    table: &Container,
    stored: &StoredDocument,
    address: &str,
    prefers_content: Option<bool>,
) -> Result<Reply, TableFault> {
    let etag = etag::etag(stored.time);
    let location = format!("{}/{address}", call.base());
    let charge = model::Charge::NONE;
    let mut reply = match prefers_content {
        Some(false) => {
            let mut reply = Reply::empty(StatusCode::NO_CONTENT, charge);
            reply.text(&names::DATA_SERVICE_ID, location.clone());
            reply.fixed(&names::PREFERENCE_APPLIED, "return-no-content");
            reply
        }
        Some(true) | None => {
            let body = entity_body(call, table, stored, &etag, &Select::default())?;
            let content_type = accept::content_type(call.level()?);
            let mut reply = Reply::with_body(StatusCode::CREATED, charge, content_type, body);
            if prefers_content.is_some() {
                reply.fixed(&names::PREFERENCE_APPLIED, "return-content");
            }
            reply
        }
    };
    reply.text(&LOCATION, location);
    reply.text(&ETAG, etag);
    Ok(reply)
}
