//! `GET /offers/{rid}`

use super::{CATALOG_READ, Call};
use crate::faults::Refusal;
use crate::wire::reply::Reply;
use crate::wire::{names, resources};
use engine::{Action, Place};
use http::StatusCode;
use model::limits::THROUGHPUT_MIN;

pub(super) fn perform(call: &Call<'_>, rid: &str) -> Result<Reply, Refusal> {
    let pass = call.read_catalog(Action::ReadMetadata, Place::Account)?;
    let offer = call.engine.find_offer(pass, rid)?;
    let mut reply = Reply::json(StatusCode::OK, CATALOG_READ, resources::text(&resources::offer(&offer)));
    reply.etag(offer.etag());
    reply.text(&names::OFFER_REPLACE_PENDING, "false".to_owned());
    reply.number(&names::MIN_THROUGHPUT, THROUGHPUT_MIN);
    Ok(reply)
}
