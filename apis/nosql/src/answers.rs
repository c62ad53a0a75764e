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
use crate::wire::reply::Reply;
use engine::MemoryKind;
use model::limits::BATCH_ANSWER_BYTES_MAX;

/// Bytes of the largest answer of a batch.
const BATCH_BYTES: usize = BATCH_ANSWER_BYTES_MAX;

/// Bytes of an answer that is not counted on a connection with one request at a time: the bound of connections bounds
/// it, as it does their buffers.
const SMALL_BYTES: usize = 4 * 1024;

/// Performs an operation within the memory that its answer may take.
pub(crate) async fn perform(call: &Call<'_>, operation: Operation<'_>) -> Result<Reply, Refusal> {
    let mut reply = operations::perform(call, operation).await?;
    let size = reply.size();
    if reply.is_reserved() || size <= SMALL_BYTES && call.connection.memory.is_none() {
        return Ok(reply);
    }
    let (memory, holder) = (call.engine.request_memory(), call.memory_holder());
    match memory.try_reserve(MemoryKind::Answer, &holder, size) {
        Some(reservation) => reply.reserve(reservation),
        None if is_repeatable(call, operation) => {
            drop(reply);
            return Box::pin(perform_again(call, operation, size)).await;
        }
        // It is made and cannot be made again: later ones wait.
        None => reply.reserve(memory.reserve_anyway(MemoryKind::Answer, &holder, size)),
    }
    Ok(reply)
}

/// Performs an operation again when there is room for an answer of this size.
async fn perform_again(call: &Call<'_>, operation: Operation<'_>, size: usize) -> Result<Reply, Refusal> {
    let memory = call.engine.request_memory();
    let reservation = memory.reserve(MemoryKind::Answer, &call.memory_holder(), size).await?;
    let mut reply = operations::perform(call, operation).await?;
    reply.reserve(reservation);
    Ok(reply)
}

/// Performs an operation that cannot be performed twice when there is room for the largest answer.
pub(crate) async fn perform_reserved(
    call: &Call<'_>,
    operation: impl Future<Output = Result<Reply, Refusal>>,
) -> Result<Reply, Refusal> {
    let memory = call.engine.request_memory();
    let reservation = memory.reserve(MemoryKind::Answer, &call.memory_holder(), BATCH_BYTES).await?;
    let mut reply = operation.await?;
    reply.reserve(reservation);
    Ok(reply)
}

/// Whether an operation changes nothing, so that it can be performed again.
fn is_repeatable(call: &Call<'_>, operation: Operation<'_>) -> bool {
    let is_read = matches!(operation, Operation::ReadDocument(_) | Operation::ListDocuments(_));
    is_read
        || matches!(operation, Operation::PostDocuments(_))
            && headers::is_query(&call.parts.headers).unwrap_or(false)
}
