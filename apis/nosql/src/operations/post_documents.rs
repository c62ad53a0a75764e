//! `POST …/docs`: five operations on one route, distinguished by headers.

use super::{Call, batch, bulk, create_document, query_documents, query_plan};
use crate::answers;
use crate::faults::Refusal;
use crate::route::ContainerPath;
use crate::wire::reply::Reply;
use crate::wire::{headers, names};

/// The order of these checks is that of the service. All futures but that of a create are boxed, because the future of
/// a request is moved often.
pub(super) async fn perform(call: &Call<'_>, path: ContainerPath<'_>) -> Result<Reply, Refusal> {
    let headers = call.headers();
    if headers::flag(headers, &names::IS_QUERY_PLAN)? {
        return Box::pin(query_plan::perform(call, path)).await;
    }
    if headers::flag(headers, &names::IS_BATCH)? {
        return match headers::flag(headers, &names::BATCH_ATOMIC)? {
            true => Box::pin(answers::perform_reserved(call, batch::perform(call, path))).await,
            false => Box::pin(answers::perform_reserved(call, bulk::perform(call, path))).await,
        };
    }
    if headers::is_query(headers)? {
        return Box::pin(query_documents::perform(call, path)).await;
    }
    create_document::perform(call, path).await
}
