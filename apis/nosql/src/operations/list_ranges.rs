//! `GET /dbs/{database}/colls/{container}/pkranges`: the map that clients use to route requests to ranges.
//!
//! The feed is its own change feed: clients repeat the request with the tag of the last answer until they get 304;
//! without it they would never stop.

use super::{CATALOG_READ, Call};
use crate::faults::Refusal;
use crate::route::ContainerPath;
use crate::wire::reply::Reply;
use crate::wire::{headers, names, resources};
use engine::Action;
use http::StatusCode;

pub(super) fn perform(call: &Call<'_>, path: ContainerPath<'_>) -> Result<Reply, Refusal> {
    headers::page_items(call.headers())?;
    let is_incremental = headers::change_feed(call.headers())?.is_some();
    let seen = headers::text(call.headers(), &names::IF_NONE_MATCH)?;
    let container = call.owner(path, Action::ReadMetadata)?.resource;
    let pass = call.read_catalog(&*container)?;
    let feed = call.engine.ranges(&pass);
    let etag = format!("\"{}\"", feed.change);
    let mut reply = if seen == Some(etag.as_str()) {
        Reply::empty(StatusCode::NOT_MODIFIED, CATALOG_READ)
    } else {
        // The map is small and clients need all of it: one page, whatever its size. A client that knows an older map
        // gets what has changed since; the ranges name those that they replace as their parents.
        let since = seen.filter(|_| is_incremental).and_then(change_of).filter(|seen| *seen < feed.change);
        let ranges = feed.since(since.unwrap_or(0)).map(|range| resources::range(&container, range));
        let ranges: Vec<_> = ranges.collect();
        let count = ranges.len();
        let body = resources::feed(container.rid().text().as_str(), "PartitionKeyRanges", ranges);
        let mut reply = Reply::json(StatusCode::OK, CATALOG_READ, body);
        reply.number(&names::ITEM_COUNT, count);
        reply
    };
    reply.text(&names::ETAG, etag);
    Ok(reply)
}

/// The change in a tag of this feed.
fn change_of(tag: &str) -> Option<u64> {
    tag.strip_prefix('"')?.strip_suffix('"')?.parse().ok()
}
