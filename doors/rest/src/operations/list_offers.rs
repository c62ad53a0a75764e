//! `GET /offers`

use super::{Call, page_reply};
use crate::faults::Refusal;
use crate::wire::reply::Reply;
use crate::wire::resources;
use engine::{Action, Place};

pub(super) fn perform(call: &Call<'_>) -> Result<Reply, Refusal> {
    let pass = call.read_catalog(Action::ReadMetadata, Place::Account)?;
    let page = call.engine.list_offers(pass, &call.page_request()?)?;
    Ok(page_reply("", "Offers", page, |offer| resources::offer(offer)))
}
