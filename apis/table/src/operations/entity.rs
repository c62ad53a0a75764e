//! Shared by the operations on entities: addresses, conditions, limits, answers.

use super::{Call, ETAG, IF_MATCH};
use crate::account::AccountStyle;
use crate::edm::{
    ENTITY_BYTES_MAX, ENTITY_BYTES_MAX_COSMOS, PARTITION_KEY, PROPERTIES_MAX, ROW_KEY, document_id,
    entity_bytes, properties_count,
};
use crate::faults::{Code, TableFault, request};
use crate::route::EntityPath;
use crate::wire::entity::{EntityFrame, EntityRow, check_key, write_entity};
use crate::wire::etag;
use crate::wire::reply::Reply;
use engine::{Action, Container, DocumentAddress, DocumentReceipt, Keyed};
use http::StatusCode;
use model::{
    Fault, KeyComponent, LimitFault, MissingFault, PartitionKey, PreconditionFault, RequestFault, Ticks,
};
use plan::{
    Condition, DocumentOperation, Mutation, Outcome, ResultCheck, StoredDocument, Target, WhenAbsent,
};
use value::{Document, ValueRef};

/// Bytes of an answer in addition to those of the document.
const FRAME_BYTES_USUAL: usize = 384;

/// The partition key of a PartitionKey.
pub(super) fn partition_key(table: &Container, partition_key: &str) -> Result<PartitionKey, RequestFault> {
    table.definition().partition_key.key(vec![KeyComponent::String(partition_key.to_owned())])
}

/// The document of a RowKey.
pub(super) fn target(row_key: &str) -> Target {
    Target::Id(document_id(row_key).into_owned())
}

/// Whether a document is the entity of this RowKey: one that another API has stored may have an id that its RowKey does
/// not yield.
pub(super) fn has_row_key(stored: &StoredDocument, row_key: &str) -> bool {
    stored.document.root().member(ROW_KEY).and_then(ValueRef::as_str) == Some(row_key)
}

/// Whether a document is an entity: its keys are texts, and its id belongs to its RowKey, so that it is found by its
/// keys. Other APIs may have stored documents that are none; this API does not see them.
pub(super) fn is_entity(document: ValueRef<'_>) -> bool {
    let text = |name: &str| document.member(name).and_then(ValueRef::as_str);
    match (text(PARTITION_KEY), text(ROW_KEY), text("id")) {
        (Some(_), Some(row_key), Some(id)) => document_id(row_key) == id,
        (None, _, _) | (_, None, _) | (_, _, None) => false,
    }
}

/// A condition that also requires that the document is the entity of this RowKey.
pub(super) fn of_row(row_key: &str, and: Condition) -> Condition {
    Condition::IfText { member: ROW_KEY, text: row_key.to_owned(), and: Box::new(and) }
}

/// The address of an entity. Keys that no entity can have are refused.
pub(super) fn address(
    style: AccountStyle,
    table: &Container,
    path: &EntityPath,
) -> Result<DocumentAddress, TableFault> {
    let units_max = style.limits().key_units_max;
    check_key(PARTITION_KEY, &path.partition_key, units_max)?;
    check_key(ROW_KEY, &path.row_key, units_max)?;
    Ok(DocumentAddress { key: partition_key(table, &path.partition_key)?, target: target(&path.row_key) })
}

/// The condition of a write; `None` without a header.
pub(super) fn condition(call: &Call<'_>) -> Result<Option<Condition>, TableFault> {
    call.header(&IF_MATCH)?.map(etag::condition).transpose()
}

/// Checks the result of a merge.
pub(super) fn result_check(style: AccountStyle) -> ResultCheck {
    match style {
        AccountStyle::Storage => |document| check_size(document, ENTITY_BYTES_MAX),
        AccountStyle::Cosmos => |document| check_size(document, ENTITY_BYTES_MAX_COSMOS),
    }
}

fn check_size(document: &Document, limit: usize) -> Result<(), LimitFault> {
    let given = properties_count(document);
    if given > PROPERTIES_MAX {
        return Err(LimitFault::TooManyMembers { given, limit: PROPERTIES_MAX });
    }
    let bytes = entity_bytes(document);
    if bytes > limit { Err(LimitFault::TooLarge { bytes, limit }) } else { Ok(()) }
}

/// Performs one write.
pub(super) async fn write(
    call: &Call<'_>,
    table: &Container,
    (key, row): (Option<PartitionKey>, &str),
    operation: DocumentOperation,
) -> Result<DocumentReceipt, TableFault> {
    let may_insert = may_insert(&operation);
    let keyed = Keyed::new(table, key, operation)?;
    let pass = call.engine.access().write_row(&call.principal, keyed, row)?;
    call.engine.write(pass).await.map_err(|refused| refusal(refused.fault, may_insert))
}

/// Whether an operation inserts the entity if it does not exist.
pub(super) fn may_insert(operation: &DocumentOperation) -> bool {
    match operation {
        DocumentOperation::Write(
            Mutation::Create { .. }
            | Mutation::Upsert { .. }
            | Mutation::Merge { absent: WhenAbsent::Create, .. },
        ) => true,
        DocumentOperation::Write(
            Mutation::Merge { absent: WhenAbsent::Refuse, .. }
            | Mutation::Replace { .. }
            | Mutation::Patch { .. }
            | Mutation::Delete { .. }
            | Mutation::Expire { .. }
            | Mutation::Reschedule { .. },
        )
        | DocumentOperation::Read { .. } => false,
    }
}

/// The fault of a refused write. If another API has stored a document under the id of the entity, the entity does not
/// exist and cannot be inserted.
pub(super) fn refusal(fault: Fault, may_insert: bool) -> TableFault {
    match (&fault, may_insert) {
        (Fault::Precondition(PreconditionFault::OtherText { .. }), true) => request(
            Code::EntityAlreadyExists,
            "The specified entity already exists: another API has stored a document with its id.",
        ),
        (Fault::Precondition(PreconditionFault::OtherText { .. }), false) => MissingFault::Resource.into(),
        (_, _) => fault.into(),
    }
}

/// Reads the change that a request means: which entity, and under which condition.
pub(super) type ReadChange =
    fn(&Call<'_>, &EntityPath, Option<Condition>) -> Result<DocumentOperation, TableFault>;

/// Replaces or merges an entity; without `If-Match` it is inserted if it does not exist.
pub(super) async fn update(
    call: &Call<'_>,
    path: &EntityPath,
    change: ReadChange,
) -> Result<Reply, TableFault> {
    let condition = condition(call)?;
    let action = if condition.is_some() { Action::ReplaceDocument } else { Action::UpsertDocument };
    let table = call.table(&path.table, action)?;
    let address = address(call.style(), &table, path)?;
    let operation = change(call, path, condition)?;
    let receipt = write(call, &table, (Some(address.key), &path.row_key), operation).await?;
    Ok(written(&receipt))
}

/// The time of the version that a write has stored.
pub(super) fn written_time(outcome: &Outcome) -> Option<Ticks> {
    match outcome {
        Outcome::Created(stored) | Outcome::Replaced(stored) | Outcome::Read(stored) => Some(stored.time),
        Outcome::Deleted | Outcome::NotModified(_) | Outcome::Nothing => None,
    }
}

/// The answer to a write without a body.
pub(super) fn written(receipt: &DocumentReceipt) -> Reply {
    let mut reply = Reply::empty(StatusCode::NO_CONTENT, receipt.charge);
    if let Some(time) = written_time(&receipt.outcome) {
        reply.text(&ETAG, etag::etag(time));
    }
    reply
}

/// The JSON text of one entity.
pub(super) fn entity_body(frame: &EntityFrame<'_>, stored: &StoredDocument, etag: &str) -> Vec<u8> {
    let row = EntityRow { document: stored.document.root(), timestamp: stored.time, etag };
    let mut body = Vec::with_capacity(stored.document.bytes().len() * 5 / 4 + FRAME_BYTES_USUAL);
    write_entity(frame, &row, &mut body);
    body
}
