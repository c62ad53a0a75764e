//! `POST /name`: inserts an entity that does not exist.

use super::entity::{entity_body, write};
use super::{Call, ETAG, LOCATION};
use crate::faults::TableFault;
use crate::wire::entity::{EntityKeys, MetadataLevel, Select, entity_address, read_entity};
use crate::wire::reply::Reply;
use crate::wire::{accept, etag, names};
use engine::{Action, Container};
use http::StatusCode;
use model::Fault;
use plan::{DocumentOperation, Item, Mutation, Outcome, StoredDocument};

/// What the client wants back from an insert.
#[derive(Clone, Copy, Debug)]
pub(super) struct InsertAnswer {
    prefers_content: Option<bool>,
    level: MetadataLevel,
}

impl InsertAnswer {
    /// Read before the entity is written: a malformed header must not hide that it was.
    pub(super) fn of(call: &Call<'_>) -> Result<InsertAnswer, TableFault> {
        Ok(InsertAnswer { prefers_content: call.prefers_content()?, level: call.level()? })
    }
}

pub(super) async fn perform(call: &Call<'_>, name: &str) -> Result<Reply, TableFault> {
    let table = call.table(name, Action::CreateDocument)?;
    let entity = read_entity(&call.body, EntityKeys::InBody, call.style().limits())?;
    let wanted = InsertAnswer::of(call)?;
    let item = Item::new(entity.document)?;
    let operation = DocumentOperation::Write(Mutation::Create { item });
    let receipt = write(call, &table, (None, &entity.row_key), operation).await?;
    let stored = match &receipt.outcome {
        Outcome::Created(stored) | Outcome::Replaced(stored) | Outcome::Read(stored) => stored,
        Outcome::Deleted | Outcome::NotModified(_) | Outcome::Nothing => {
            return Err(Fault::Internal("an insert has stored nothing".to_owned()).into());
        }
    };
    let address = entity_address(table.id(), &entity.partition_key, &entity.row_key);
    let mut reply = reply(call, &table, stored, (&call.base(), &address), wanted);
    reply.charge = receipt.charge;
    Ok(reply)
}

/// The answer with a new entity, or with its address only: `address` below the address of the service, `base`.
pub(super) fn reply(
    call: &Call<'_>,
    table: &Container,
    stored: &StoredDocument,
    (base, address): (&str, &str),
    wanted: InsertAnswer,
) -> Reply {
    let InsertAnswer { prefers_content, level } = wanted;
    let etag = etag::etag(stored.time);
    let location = format!("{base}/{address}");
    let charge = model::Charge::NONE;
    let mut reply = match prefers_content {
        Some(false) => {
            let mut reply = Reply::empty(StatusCode::NO_CONTENT, charge);
            reply.text(&names::DATA_SERVICE_ID, location.clone());
            reply.fixed(&names::PREFERENCE_APPLIED, "return-no-content");
            reply
        }
        Some(true) | None => {
            let select = Select::default();
            let frame = call.frame(level, base, table, &select);
            let body = entity_body(&frame, stored, &etag);
            let content_type = accept::content_type(level);
            let mut reply = Reply::with_body(StatusCode::CREATED, charge, content_type, body);
            if prefers_content.is_some() {
                reply.fixed(&names::PREFERENCE_APPLIED, "return-content");
            }
            reply
        }
    };
    reply.text(&LOCATION, location);
    reply.text(&ETAG, etag);
    reply
}
