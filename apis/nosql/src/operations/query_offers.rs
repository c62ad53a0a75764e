//! `POST /offers`: a query over them. Offers are created and deleted with their owners, so clients cannot create one.

use super::{Call, list_offers, not_supported};
use crate::faults::Refusal;
use crate::wire::reply::Reply;
use engine::{Action, Resource};

pub(super) async fn perform(call: &Call<'_>) -> Result<Reply, Refusal> {
    call.authorise(Action::ReadMetadata, Resource::Account)?;
    if !call.is_query()? {
        return Err(not_supported("a POST to offers that is no query").into());
    }
    list_offers::perform(call).await
}
