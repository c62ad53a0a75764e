//! `GET …/docs`: the items of a container, a range or a key, page by page.

use super::{Call, read_change_feed, scope};
use crate::faults::Refusal;
use crate::route::ContainerPath;
use crate::wire::reply::Reply;
use crate::wire::resources::ItemWriter;
use crate::wire::{continuation, headers, json, names};
use engine::{Action, Container, FeedRequest, Scope};
use http::StatusCode;
use plan::StoredDocument;

pub(super) async fn perform(call: &Call<'_>, path: ContainerPath<'_>) -> Result<Reply, Refusal> {
    if let Some(mode) = headers::change_feed(call.headers())? {
        return Box::pin(read_change_feed::perform(call, path, mode)).await;
    }
    let container = call.owner(path, Action::ListDocuments)?.resource;
    let page = call.page_request()?;
    let scope = scope::of_headers(call, &container)?.unwrap_or(Scope::Container);
    let pass = call.engine.access().list_documents(&call.principal, &container, scope)?;
    let request = FeedRequest {
        items_max: page.items_max,
        continuation: page.continuation.map(continuation::token).transpose()?,
        session: headers::session(call.headers())?,
    };
    let page = call.engine.feed(pass, &request).await?;
    let mut reply = Reply::json(StatusCode::OK, page.charge, body(&container, &page.documents));
    reply.number(&names::ITEM_COUNT, page.documents.len());
    if let Some(continuation) = page.continuation {
        reply.text(&names::CONTINUATION, continuation::text(&continuation));
    }
    reply.sessions(&container, &page.session);
    Ok(reply)
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
