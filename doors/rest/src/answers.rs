//! Memory of answers: room for an answer is reserved before it is made.
//!
//! A page is as large as the service allows, so that much is reserved and the rest given back when the page is made.
//! A single document is nearly always small; one that turns out too large for the room there is, is read again when
//! there is room. Writes cannot be done twice, so their answers count once they are made.

use crate::faults::Refusal;
use crate::operations::{self, Call};
use crate::route::Operation;
use crate::wire::headers;
use crate::wire::names;
use crate::wire::reply::Reply;
use engine::{MemoryHolder, MemoryKind};
use model::limits::REQUEST_BYTES_MAX;

/// Bytes of the largest page or batch answer.
const PAGE_BYTES: usize = REQUEST_BYTES_MAX;

/// Bytes of a usual document or resource with the texts of its headers.
const SMALL_BYTES: usize = 4 * 1024;

/// Performs an operation within the memory that its answer may take.
pub(crate) async fn perform(
    call: &Call<'_>,
    operation: Operation<'_>,
    holder: &MemoryHolder,
) -> Result<Reply, Refusal> {
    let memory = call.engine.request_memory();
    let bytes = bytes_expected(call, operation);
    let mut reservation = memory.reserve(MemoryKind::Answer, holder, bytes).await?;
    let mut reply = operations::perform(call, operation).await?;
    let size = reply.size();
    if !reservation.try_grow_to(size) && matches!(operation, Operation::ReadDocument(_)) {
        drop((reply, reservation));
        reservation = memory.reserve(MemoryKind::Answer, holder, size).await?;
        reply = operations::perform(call, operation).await?;
    }
    reply.reserve(reservation);
    Ok(reply)
}

/// Bytes that an answer may take, as far as the request tells.
fn bytes_expected(call: &Call<'_>, operation: Operation<'_>) -> usize {
    let headers = &call.parts.headers;
    let is_page = matches!(operation, Operation::ListDocuments(_))
        || matches!(operation, Operation::PostDocuments(_))
            && (headers.contains_key(&names::IS_BATCH) || headers::is_query(headers).unwrap_or(false));
    // What was written comes back.
    if is_page { PAGE_BYTES } else { SMALL_BYTES + call.body.len() }
}
