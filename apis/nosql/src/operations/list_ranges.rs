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
    headers::change_feed(call.headers())?;
    let seen = headers::text(call.headers(), &names::IF_NONE_MATCH)?;
    let container = call.owner(path, Action::ReadMetadata)?.resource;
    let pass = call.read_catalog(&*container)?;
    let feed = call.engine.ranges(&pass);
    let mut reply = if seen == Some(feed.etag.as_str()) {
        Reply::empty(StatusCode::NOT_MODIFIED, CATALOG_READ)
    } else {
        // The map is small and clients need all of it: one page, whatever its size.
        let ranges: Vec<_> = feed.ranges.iter().map(|range| resources::range(&container, range)).collect();
        let count = ranges.len();
        let body = resources::feed(container.rid().text().as_str(), "PartitionKeyRanges", ranges);
        let mut reply = Reply::json(StatusCode::OK, CATALOG_READ, body);
        reply.number(&names::ITEM_COUNT, count);
        reply
    };
    reply.text(&names::ETAG, feed.etag);
    Ok(reply)
}
