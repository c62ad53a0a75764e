//! Shared by the operations on documents: parsing key and item of a request, answering with an item.

use super::Call;
use crate::faults::{NosqlFault, Refusal, WireFault};
use crate::lower::condition;
use crate::wire::reply::{HEADER_BYTES_USUAL, Reply};
use crate::wire::resources::ItemWriter;
use crate::wire::{headers, key_header, names};
use engine::{Addressed, Container, DocumentReceipt};
use http::StatusCode;
use model::limits::ITEM_BYTES_MAX;
use model::{Charge, LimitFault, PartitionKey, RequestFault, Rid};
use plan::{Filter, Item, Outcome, SYSTEM_PROPERTIES, StoredDocument, Target};
use std::sync::Arc;
use value::{BINARY_JSON_MARK, Document, JsonError, PATCH_OPERATIONS_MAX, PatchOperation, Value};

/// The partition key of the header; `None` if it is absent.
pub(super) fn header_key(call: &Call<'_>, container: &Container) -> Result<Option<PartitionKey>, NosqlFault> {
    let text = headers::text(call.headers(), &names::PARTITION_KEY)?;
    text.map(|text| key_header::parse(&container.definition().partition_key, text)).transpose()
}

/// The partition key of the header, which is required to find a stored document.
///
/// Containers of old clients have no key of their own, and those clients send none.
pub(super) fn required_key(call: &Call<'_>, container: &Container) -> Result<PartitionKey, NosqlFault> {
    let key = header_key(call, container)?;
    match key {
        Some(key) => Ok(key),
        None => Ok(implied_key(container).ok_or(RequestFault::PartitionKeyRequired)?),
    }
}

/// The key of all documents of a container that was created without one.
pub(super) fn implied_key(container: &Container) -> Option<PartitionKey> {
    container.definition().partition_key.implied_key()
}

/// The item in `text`, which may be JSON in the service's binary form. Clients send back the system properties that
/// they have read; these are dropped.
pub(crate) fn item(text: &[u8]) -> Result<Item, NosqlFault> {
    if text.len() > ITEM_BYTES_MAX {
        return Err(LimitFault::TooLarge { bytes: text.len(), limit: ITEM_BYTES_MAX }.into());
    }
    let document = match text.first() {
        Some(&BINARY_JSON_MARK) => Document::from_binary_json_without(text, &SYSTEM_PROPERTIES),
        Some(_) | None => Document::from_json_without(text, &SYSTEM_PROPERTIES),
    };
    let document = document.map_err(bad_json)?;
    // A few bytes of the binary form can represent many.
    let size = document.bytes().len();
    if text.first() == Some(&BINARY_JSON_MARK) && size > ITEM_BYTES_MAX {
        return Err(LimitFault::TooLarge { bytes: size, limit: ITEM_BYTES_MAX }.into());
    }
    Ok(Item::new(document)?)
}

fn bad_json(error: JsonError) -> WireFault {
    WireFault::Json { reason: error.to_string() }
}

/// The document of the last path segment: below a container given by RID it is a RID, otherwise an id.
pub(super) fn target(owner: &Addressed<Arc<Container>>, segment: &str) -> Target {
    let here = |rid: &Rid| rid.parent() == Some(owner.resource.rid());
    let rid = if owner.by_rid { Rid::parse(segment).filter(here) } else { None };
    match rid {
        Some(Rid::Document(_, _, number)) => Target::Number(number),
        Some(_) | None => Target::Id(segment.to_owned()),
    }
}

/// The contents of a patch body.
pub(crate) struct Patch {
    /// The changes, at least one.
    pub(crate) operations: Vec<PatchOperation>,
    /// The condition on the item.
    pub(crate) filter: Option<Filter>,
}

/// Parses a patch body: an object with `operations` and an optional `condition`, or the bare array of operations.
pub(crate) fn patch(container: &Container, text: &[u8]) -> Result<Patch, NosqlFault> {
    let body = Value::from_json(text).map_err(bad_json)?;
    let body = body.as_ref();
    let list = match body.member("operations") {
        Some(list) => list,
        None => body,
    };
    let bad = |reason: String| WireFault::Body { reason };
    let filter = match body.member("condition").filter(|condition| !condition.is_null()) {
        None => None,
        Some(text) => {
            let text = text.as_str().ok_or_else(|| bad("the condition of a patch is a string".to_owned()))?;
            Some(condition(container, text)?)
        }
    };
    let operations = PatchOperation::list_from_json(list).map_err(|error| bad(error.to_string()))?;
    if operations.is_empty() {
        return Err(bad("a patch has at least one operation".to_owned()).into());
    }
    if operations.len() > PATCH_OPERATIONS_MAX {
        return Err(
            LimitFault::TooManyOperations { given: operations.len(), limit: PATCH_OPERATIONS_MAX }.into()
        );
    }
    Ok(Patch { operations, filter })
}

/// The answer to a write of one document.
pub(super) fn written(
    call: &Call<'_>,
    container: &Container,
    receipt: DocumentReceipt,
) -> Result<Reply, Refusal> {
    let DocumentReceipt { outcome, charge, session } = receipt;
    let mut reply = match outcome {
        Outcome::Created(stored) => stored_reply(call, container, StatusCode::CREATED, &stored, charge)?,
        Outcome::Replaced(stored) => stored_reply(call, container, StatusCode::OK, &stored, charge)?,
        Outcome::Deleted | Outcome::Read(_) | Outcome::NotModified(_) | Outcome::Nothing => {
            Reply::empty(StatusCode::NO_CONTENT, charge)
        }
    };
    reply.session(container, session);
    Ok(reply)
}

/// The item and its version; a client that prefers a minimal answer gets only the version.
fn stored_reply(
    call: &Call<'_>,
    container: &Container,
    status: StatusCode,
    stored: &StoredDocument,
    charge: Charge,
) -> Result<Reply, Refusal> {
    if headers::prefers_minimal(call.headers())? {
        let mut reply = Reply::empty(status, charge);
        reply.etag(stored.etag);
        return Ok(reply);
    }
    Ok(item_reply(container, status, stored, charge))
}

/// The answer with one item.
pub(super) fn item_reply(
    container: &Container,
    status: StatusCode,
    stored: &StoredDocument,
    charge: Charge,
) -> Reply {
    // JSON is slightly longer than the encoding; the system properties take about 220 bytes.
    let mut body = Vec::with_capacity(stored.document.bytes().len() * 5 / 4 + 256 + HEADER_BYTES_USUAL);
    ItemWriter::new(container).push(stored, &mut body);
    let mut reply = Reply::json(status, charge, body);
    reply.etag(stored.etag);
    reply.number(&names::ITEM_LSN, stored.lsn.0);
    reply
}
