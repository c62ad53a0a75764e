//! `PUT /offers/{rid}`: another rate, or a change between autoscale and manual.

use super::read_offer::with_rates;
use super::{CATALOG_WRITE, Call, resource_reply};
use crate::faults::{NosqlFault, Refusal, WireFault};
use crate::wire::reply::Reply;
use crate::wire::{definition, headers, links, names, resources};
use engine::{Account, Offer};
use http::StatusCode;
use model::{RequestFault, ThroughputChange};
use serde_json::Value as Json;

pub(super) async fn perform(call: &Call<'_>, rid: &str) -> Result<Reply, Refusal> {
    let condition = headers::write_condition(call.headers())?;
    let admin = call.change_catalog(Account)?;
    let pass = call.read_catalog(Account)?;
    let offer = call.engine.find_offer(&pass, rid)?;
    let body = call.json_body()?;
    check_identity(&offer, &body)?;
    let wanted = wanted(call, &body)?;
    let offer = call.engine.replace_offer(admin, &offer, wanted, &condition).await?;
    let resource = resources::offer(&offer, call.engine.scaled_throughput(&pass, &offer));
    let reply = resource_reply(StatusCode::OK, CATALOG_WRITE, &resource, offer.etag());
    with_rates(reply, call, &pass, &offer).await
}

/// Clients send the offer that they have read; it must be this one.
fn check_identity(offer: &Offer, body: &Json) -> Result<(), NosqlFault> {
    let Json::Object(members) = body else {
        return Err(WireFault::Body { reason: "an offer is a JSON object".to_owned() }.into());
    };
    let rid = offer.rid().to_string();
    let (owner, link) = (offer.owner().rid.to_string(), links::offer_owner(offer.owner().rid));
    for (name, fixed) in [("id", &rid), ("_rid", &rid), ("offerResourceId", &owner), ("resource", &link)] {
        let sent = members.get(name).filter(|sent| !sent.is_null());
        let same =
            |sent: &Json| sent.as_str().is_some_and(|sent| sent.trim_matches('/') == fixed.trim_matches('/'));
        if !sent.is_none_or(same) {
            return Err(RequestFault::ImmutableProperty { property: name.to_owned() }.into());
        }
    }
    Ok(())
}

fn wanted(call: &Call<'_>, body: &Json) -> Result<ThroughputChange, NosqlFault> {
    let autoscale = headers::flag(call.headers(), &names::MIGRATE_TO_AUTOSCALE)?;
    let manual = headers::flag(call.headers(), &names::MIGRATE_TO_MANUAL)?;
    match (autoscale, manual) {
        (false, false) => Ok(definition::throughput::read(body)?),
        (true, false) => Ok(ThroughputChange::MigrateToAutoscale),
        (false, true) => Ok(ThroughputChange::MigrateToManual),
        (true, true) => {
            Err(headers::bad(&names::MIGRATE_TO_MANUAL, "true", "throughput is either manual or autoscale")
                .into())
        }
    }
}
