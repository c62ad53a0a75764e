//! `GET /offers/{rid}`

use super::Call;
use crate::faults::Refusal;
use crate::wire::reply::Reply;
use crate::wire::{names, resources};
use engine::{Account, CatalogPass, Offer};

pub(super) async fn perform(call: &Call<'_>, rid: &str) -> Result<Reply, Refusal> {
    let pass = call.read_catalog(Account)?;
    let offer = call.engine.find_offer(&pass, rid)?;
    let reply = call
        .read_reply(&resources::offer(&offer, call.engine.scaled_throughput(&pass, &offer)), offer.etag())?;
    with_rates(reply, call, &pass, &offer).await
}

/// Adds the rates of an offer, and whether a change waits for splits of partitions.
pub(super) async fn with_rates(
    mut reply: Reply,
    call: &Call<'_>,
    pass: &CatalogPass<Account>,
    offer: &Offer,
) -> Result<Reply, Refusal> {
    let is_pending = call.engine.is_offer_pending(pass, offer);
    reply.text(&names::OFFER_REPLACE_PENDING, is_pending.to_string());
    reply.number(&names::MIN_THROUGHPUT, call.engine.offer_minimum(pass, offer).await?);
    Ok(reply)
}
