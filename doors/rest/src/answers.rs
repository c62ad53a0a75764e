//! Memory of answers: what is made for a client that does not take it has a bound.
//!
//! Reads, pages and queries are nearly always small. One that turns out too large for the room there is, is dropped and
//! made again when there is room: who waits holds nothing, neither here nor while a query waits for its turn. Batches
//! cannot be done twice, so room for the largest answer is reserved before; a single write brings back about what was
//! sent.

use crate::faults::Refusal;
use crate::operations::{self, Call};
use crate::route::Operation;
use crate::wire::headers;
use crate::wire::names;
use crate::wire::reply::Reply;
use engine::{MemoryHolder, MemoryKind};
use model::limits::BATCH_ANSWER_BYTES_MAX;

/// Bytes of the largest answer of a batch.
const BATCH_BYTES: usize = BATCH_ANSWER_BYTES_MAX;

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
    if !reservation.try_grow_to(size) && is_repeatable(call, operation) {
        drop((reply, reservation));
        reservation = memory.reserve(MemoryKind::Answer, holder, size).await?;
        reply = operations::perform(call, operation).await?;
    }
    reply.reserve(reservation);
    Ok(reply)
}

/// Bytes that an answer may take, as far as the request tells.
fn bytes_expected(call: &Call<'_>, operation: Operation<'_>) -> usize {
    let is_batch =
        matches!(operation, Operation::PostDocuments(_)) && call.parts.headers.contains_key(&names::IS_BATCH);
    if is_batch { BATCH_BYTES } else { SMALL_BYTES }
}

/// Whether an operation changes nothing, so that it can be performed again.
fn is_repeatable(call: &Call<'_>, operation: Operation<'_>) -> bool {
    let is_read = matches!(operation, Operation::ReadDocument(_) | Operation::ListDocuments(_));
    is_read
        || matches!(operation, Operation::PostDocuments(_))
            && headers::is_query(&call.parts.headers).unwrap_or(false)
}
