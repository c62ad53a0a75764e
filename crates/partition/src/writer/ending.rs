//! The end of a writer: closed, or dropped because it panicked.

use super::{Command, Writer};
use crate::partition::IdleClose;
use crate::storage::commit_fault;
use kv::Batch;
use model::Fault;
use tokio::sync::mpsc;

/// Documents in memory that an idle partition may leave to be replayed from the log by the next opening.
const IDLE_REPLAY_DOCUMENTS_MAX: usize = 4096;

impl Writer {
    /// Writes the head without reserved ranges. The index is not flushed: the next opening replays the log.
    pub(super) async fn close(&mut self) -> Result<(), Fault> {
        self.drain().await;
        self.ensure_view().await?;
        let mut batch = Batch::default();
        batch.mark_shrinking();
        self.numbering.store_in(&mut self.state.head);
        let closed = self.state.head.clone().closed();
        self.commit_alone(batch, Some(closed)).await.map_err(commit_fault)?;
        self.carryover.set_closed(true);
        Ok(())
    }

    /// Closes unless a running job of the index would be lost or the next opening would have too much to replay.
    pub(super) async fn close_idle(&mut self) -> Result<IdleClose, Fault> {
        if self.index.is_working() {
            return Ok(IdleClose::Busy);
        }
        if let Some(index_writer) = self.index.index_writer_mut()
            && index_writer.documents_in_memory() > IDLE_REPLAY_DOCUMENTS_MAX
        {
            index_writer.flush().await;
            return Ok(IdleClose::Busy);
        }
        self.close().await.map(|()| IdleClose::Closed)
    }

    /// Closes the queue and returns the waiting commands unexecuted.
    pub(super) async fn return_waiting(&mut self, queue: &mut mpsc::Receiver<Command>) {
        queue.close();
        for command in self.locks.clear().into_iter().chain(self.backlog.drain(..)) {
            command.return_unexecuted();
        }
        while let Some(command) = queue.recv().await {
            command.return_unexecuted();
        }
    }
}

impl Drop for Writer {
    /// Also runs when the writer panics. Batches in flight may still be committed.
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(event = "writer_panicked", partition = ?self.id, "the writer of a partition panicked; the next request opens the partition again");
        }
        let in_flight = self.in_flight.drain(..).flat_map(|batch| batch.records).map(|(key, _)| key);
        self.carryover.keep_unresolved(in_flight.chain(self.unresolved_keys.drain(..)));
        // An open view would stop version cleanup of the whole store.
        self.has_ended = true;
        self.publish_without_view();
    }
}
