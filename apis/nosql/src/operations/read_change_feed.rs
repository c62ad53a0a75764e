//! `GET …/docs` with `A-IM`: the changes of a container, a range or a key, page by page.
//!
//! The position of the reader is the ETag of the answer; the reader sends it back as `If-None-Match`. 304 means that
//! there is nothing new.

use super::{Call, scope};
use crate::faults::{NosqlFault, Refusal};
use crate::route::ContainerPath;
use crate::wire::change_rows::ChangeWriter;
use crate::wire::reply::Reply;
use crate::wire::request_headers::RequestHeaders;
use crate::wire::{change_position, headers, json, names};
use engine::{Action, ChangeMode, ChangeRequest, ChangeStart, Changes, Container, Scope};
use http::StatusCode;

pub(super) async fn perform(
    call: &Call<'_>,
    path: ContainerPath<'_>,
    mode: ChangeMode,
) -> Result<Reply, Refusal> {
    let container = call.owner(path, Action::ReadChangeFeed)?.resource;
    let scope = scope::of_headers(call, &container)?.unwrap_or(Scope::Container);
    let pass = call.engine.access().read_changes(&call.principal, &container, scope)?;
    // All versions always have metadata.
    let has_metadata = headers::wants_metadata(call.headers())?;
    let request = ChangeRequest {
        mode,
        start: start(call.headers())?,
        items_max: headers::page_items(call.headers())?,
        session: headers::session(call.headers())?,
    };
    let page = call.engine.changes(pass, &request).await?;
    let mut reply = if page.changes.is_empty() {
        Reply::empty(StatusCode::NOT_MODIFIED, page.charge)
    } else {
        let (body, count) = body(&container, &page.changes, has_metadata);
        let mut reply = Reply::json(StatusCode::OK, page.charge, body);
        reply.number(&names::ITEM_COUNT, count);
        reply
    };
    reply.text(&names::ETAG, change_position::text(&page.position));
    reply.sessions(&container, &page.session);
    Ok(reply)
}

/// Where the page starts. Clients repeat the time with every page; it counts only for the first.
fn start(headers: &RequestHeaders) -> Result<ChangeStart, NosqlFault> {
    let since = headers::modified_since(headers)?;
    match headers::text(headers, &names::IF_NONE_MATCH)? {
        Some("*") => Ok(ChangeStart::Now),
        Some(position) => Ok(ChangeStart::After(change_position::parse(position)?)),
        None => Ok(since.map_or(ChangeStart::Beginning, ChangeStart::Since)),
    }
}

/// The body, and the number of its rows.
fn body(container: &Container, changes: &Changes, has_metadata: bool) -> (Vec<u8>, usize) {
    let mut writer = ChangeWriter::new(container);
    match changes {
        Changes::Latest(documents) if has_metadata => {
            documents.iter().for_each(|stored| writer.push_latest_with_metadata(stored));
        }
        Changes::Latest(documents) => documents.iter().for_each(|stored| writer.push_latest(stored)),
        Changes::All(entries) => entries.iter().for_each(|(at, entry)| writer.push_change(at.lsn, entry)),
    }
    let (mut body, count) = writer.finish();
    body.extend_from_slice(b"],\"_count\":");
    json::push_integer(count, &mut body);
    body.push(b'}');
    (body, count)
}
