//! `GET /offers`, or a query over it; clients use the query to find the offer of a container.

use super::Call;
use super::asked::List;
use crate::faults::Refusal;
use crate::wire::reply::Reply;
use crate::wire::resources;
use engine::{Account, Offer};
use std::sync::Arc;

pub(super) async fn perform(call: &Call<'_>) -> Result<Reply, Refusal> {
    let asked = call.asked().await?;
    let pass = call.read_catalog(Account)?;
    let page = call.engine.list_offers(&pass, &asked.page())?;
    let list = List { parent_rid: "", envelope: "Offers" };
    let resource = |offer: &Arc<Offer>| resources::offer(offer, call.engine.scaled_throughput(&pass, offer));
    asked.answer(call, list, page, resource).await
}
