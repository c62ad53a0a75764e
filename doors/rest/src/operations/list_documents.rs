//! `GET …/docs`: the items of a container, a range or a key, page by page.

use super::document::header_key;
use super::{Call, not_supported};
use crate::faults::Refusal;
use crate::route::ContainerPath;
use crate::wire::reply::Reply;
use crate::wire::resources::ItemWriter;
use crate::wire::{headers, json, names};
use engine::{Action, Container, FeedRequest, Reach, Scope};
use http::{HeaderMap, StatusCode};
use model::{EffectiveKey, EffectiveRange, PartitionOrdinal, RequestFault};
use plan::StoredDocument;

pub(super) async fn perform(call: &Call<'_>, path: ContainerPath<'_>) -> Result<Reply, Refusal> {
    if headers::is_change_feed(call.headers())? {
        return Err(not_supported("the change feed of documents").into());
    }
    list(call, path, Action::ListDocuments).await
}

/// The page that the request's headers describe.
pub(super) async fn list(call: &Call<'_>, path: ContainerPath<'_>, action: Action) -> Result<Reply, Refusal> {
    let container = call.owner(path, action)?.resource;
    let page = call.page_request()?;
    let scope = scope(call, &container)?;
    let reach = match &scope {
        Scope::Key(key) => Reach::LogicalPartition(key),
        Scope::Container | Scope::Range(..) | Scope::Hashes(_) => Reach::Whole,
    };
    let pass = call.read(action, &container, reach)?;
    let request = FeedRequest {
        scope,
        items_max: page.items_max,
        continuation: page.continuation,
        session: headers::session(call.headers())?,
    };
    let page = call.engine.feed(pass, &request).await?;
    let mut reply = Reply::json(StatusCode::OK, page.charge, body(&container, &page.documents));
    reply.number(&names::ITEM_COUNT, page.documents.len());
    if let Some(continuation) = page.continuation {
        reply.text(&names::CONTINUATION, continuation);
    }
    reply.sessions(&container, &page.session);
    Ok(reply)
}

/// Which items: those of the key, else of the range or a part of it, else all.
fn scope(call: &Call<'_>, container: &Container) -> Result<Scope, RequestFault> {
    if let Some(key) = header_key(call, container)? {
        return Ok(Scope::Key(key));
    }
    let part = part_of_range(call.headers())?;
    match (range_id(call.headers())?, part) {
        (Some(ordinal), part) => Ok(Scope::Range(ordinal, part)),
        (None, None) => Ok(Scope::Container),
        (None, Some(_)) => Err(headers::bad(&names::START_EPK, "", "it needs the id of a range beside it")),
    }
}

/// The range that the request is addressed to.
pub(super) fn range_id(headers: &HeaderMap) -> Result<Option<PartitionOrdinal>, RequestFault> {
    let Some(text) = headers::text(headers, &names::PARTITION_KEY_RANGE_ID)? else {
        return Ok(None);
    };
    match text.parse() {
        Ok(ordinal) => Ok(Some(PartitionOrdinal(ordinal))),
        Err(_) => Err(headers::bad(&names::PARTITION_KEY_RANGE_ID, text, "it must be a whole number")),
    }
}

fn part_of_range(headers: &HeaderMap) -> Result<Option<EffectiveRange>, RequestFault> {
    let [start, end] = [&names::START_EPK, &names::END_EPK];
    let bound = |name| {
        let Some(text) = headers::text(headers, name)? else {
            return Ok(None);
        };
        EffectiveKey::from_hex(text).map(Some).ok_or_else(|| headers::bad(name, text, "it is not hex"))
    };
    Ok(match (bound(start)?, bound(end)?) {
        (None, None) => None,
        (min, max) => Some(EffectiveRange {
            min: min.unwrap_or(EffectiveKey::MIN),
            max: max.unwrap_or_else(EffectiveKey::max),
        }),
    })
}

fn body(container: &Container, documents: &[StoredDocument]) -> Vec<u8> {
    let size = documents.iter().map(|stored| stored.document.bytes().len() * 5 / 4 + 256).sum::<usize>();
    let mut body = Vec::with_capacity(size + 64);
    body.extend_from_slice(b"{\"_rid\":\"");
    body.extend_from_slice(container.rid().text().as_bytes());
    body.extend_from_slice(b"\",\"Documents\":[");
    let writer = ItemWriter::new(container);
    for (index, stored) in documents.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        writer.push(stored, &mut body);
    }
    body.extend_from_slice(b"],\"_count\":");
    json::push_integer(documents.len(), &mut body);
    body.push(b'}');
    body
}
