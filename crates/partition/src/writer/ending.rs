//! How a writer ends: closed in order, or dropped in the middle of its work because it panicked.

use super::{Command, Writer};
use crate::partition::{IdleClose, Unexecuted};
use crate::storage::commit_fault;
use kv::Batch;
use model::{Fault, StorageFault, Work};
use plan::StepFault;
use tokio::sync::mpsc;

/// Documents in memory that an idle partition may leave to be replayed from the log at its next opening.
const IDLE_REPLAY_DOCUMENTS_MAX: usize = 4096;

impl Writer {
    /// Writes the head with its reserved ranges given back. The index is not flushed: the next opening replays the log.
    pub(super) async fn close(&mut self) -> Result<(), Fault> {
        self.drain().await;
        self.wake().await?;
        let mut batch = Batch::default();
        batch.mark_shrinking();
        let closed = self.state.head.clone().closed();
        self.commit_alone(batch, Some(closed)).await.map_err(commit_fault)?;
        self.carryover.set_closed(true);
        Ok(())
    }

    /// Closes unless work of the index would be lost, or the next opening would have too much to replay.
    pub(super) async fn close_idle(&mut self) -> Result<IdleClose, Fault> {
        if self.index.is_working() {
            return Ok(IdleClose::Busy);
        }
        if let Some(keeper) = self.index.keeper_mut()
            && keeper.documents_in_memory() > IDLE_REPLAY_DOCUMENTS_MAX
        {
            keeper.flush().await;
            return Ok(IdleClose::Busy);
        }
        self.close().await.map(|()| IdleClose::Closed)
    }

    /// Takes no more commands and gives back those that wait: none of them was begun.
    pub(super) async fn give_back_rest(&mut self, queue: &mut mpsc::Receiver<Command>) {
        queue.close();
        for command in self.backlog.drain(..) {
            command.give_back();
        }
        while let Some(command) = queue.recv().await {
            command.give_back();
        }
    }
}

impl Command {
    /// Tells who waits that the partition has stopped. Others see that nobody answers.
    fn give_back(self) {
        match self {
            Command::Execute { transaction, reply } => {
                let _ = reply.send(Err(Unexecuted::Stopped(Box::new(transaction))));
            }
            Command::Wake { .. }
            | Command::SetConsumer { .. }
            | Command::Trim { .. }
            | Command::Checkpoint { .. }
            | Command::Reshape
            | Command::Close { .. }
            | Command::CloseIdle { .. } => {}
        }
    }

    /// What a command that was never taken means for who sent it.
    pub(crate) fn into_unexecuted(self) -> Unexecuted {
        match self {
            Command::Execute { transaction, .. } => Unexecuted::Stopped(Box::new(transaction)),
            Command::Wake { .. }
            | Command::SetConsumer { .. }
            | Command::Trim { .. }
            | Command::Checkpoint { .. }
            | Command::Reshape
            | Command::Close { .. }
            | Command::CloseIdle { .. } => {
                let fault = StorageFault::Unavailable { cause: "the partition has stopped".to_owned() };
                StepFault { index: 0, fault: fault.into(), work: Work::Free }.into()
            }
        }
    }
}

impl Drop for Writer {
    /// Also runs when the writer panics. Batches that are under way may still be committed.
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(event = "writer_panicked", partition = ?self.id, "the writer of a partition panicked; the next request opens the partition again");
        }
        let in_flight = self.in_flight.drain(..).flat_map(|batch| batch.records).map(|(key, _)| key);
        self.carryover.leave_shut(in_flight.chain(self.unsettled.drain(..)));
        // An open view would stop version cleanup of the whole store.
        self.has_ended = true;
        self.rest_published();
    }
}
