//! `GET /offers/{rid}`

use super::{CATALOG_READ, Call, resource_reply};
use crate::faults::Refusal;
use crate::wire::reply::Reply;
use crate::wire::{names, resources};
use engine::{Account, CatalogPass, Offer};
use http::StatusCode;
use model::Charge;

pub(super) fn perform(call: &Call<'_>, rid: &str) -> Result<Reply, Refusal> {
    let pass = call.read_catalog(Account)?;
    let offer = call.engine.find_offer(&pass, rid)?;
    Ok(offer_reply(call, &pass, &offer, CATALOG_READ))
}

/// The answer with one offer. A change of rate is never pending: it is complete when it is answered.
pub(super) fn offer_reply(
    call: &Call<'_>,
    pass: &CatalogPass<Account>,
    offer: &Offer,
    charge: Charge,
) -> Reply {
    let mut reply = resource_reply(StatusCode::OK, charge, &resources::offer(offer), offer.etag());
    reply.text(&names::OFFER_REPLACE_PENDING, "false".to_owned());
    reply.number(&names::MIN_THROUGHPUT, call.engine.offer_minimum(pass, offer));
    reply
}
