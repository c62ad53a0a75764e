//! Memory of answers: limits the bytes held for clients that do not read them.
//!
//! Answers to reads, pages and queries are nearly always small. An answer that is larger than the free memory is
//! dropped and produced again when there is room, so that a waiting request holds nothing, neither here nor while a
//! query waits for admission. Batches cannot be executed twice, so room for the largest answer is reserved in advance;
//! a single write returns about as much as was sent.

use crate::faults::Refusal;
use crate::operations::{self, Call};
use crate::route::Operation;
use crate::wire::headers;
use crate::wire::reply::Reply;
use engine::MemoryKind;
use model::limits::BATCH_ANSWER_BYTES_MAX;

/// Bytes of the largest answer of a batch.
const BATCH_BYTES: usize = BATCH_ANSWER_BYTES_MAX;

/// Answers up to this size are not counted on a connection with one request at a time: the limit on connections limits
/// them too, like the buffers of the connections.
const SMALL_BYTES: usize = 4 * 1024;

/// Performs an operation within the memory limit for its answer.
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
        // It exists and cannot be produced again: later ones wait.
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

/// Performs an operation that cannot be repeated, once there is room for the largest answer.
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

/// Whether an operation changes nothing, so that it can be repeated.
fn is_repeatable(call: &Call<'_>, operation: Operation<'_>) -> bool {
    let is_read = matches!(operation, Operation::ReadDocument(_) | Operation::ListDocuments(_));
    is_read
        || matches!(operation, Operation::PostDocuments(_))
            && headers::is_query(call.headers).unwrap_or(false)
}
