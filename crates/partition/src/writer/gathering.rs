//! Gathers the waiting transactions into a batch: evaluates each one and submits their rows.

use super::{BATCH_BYTES_MAX, Command, InFlight, Reply, Writer};
use crate::evaluate::evaluate;
use crate::index::{Changes, IndexWriter, Prepared};
use crate::keyspace::{self, EXPIRY, RECORDS};
use crate::staging::StagingContext;
use crate::state::{BatchNumber, Rows};
use crate::verdicts::{Decided, answer, full_fault, is_shrinking};
use kv::{Batch, Durability};
use model::{Ticks, Work};
use plan::{StepFault, Transaction};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Limit of the transactions of one batch.
const BATCH_TRANSACTIONS_MAX: usize = 256;

impl Writer {
    /// Evaluates `transaction` and the waiting ones after it, and submits the batch.
    pub(super) async fn gather(
        &mut self,
        transaction: Transaction,
        reply: Reply,
        queue: &mut mpsc::Receiver<Command>,
    ) {
        if let Err(fault) = self.ensure_view().await {
            if self.has_ended {
                // Returned unexecuted, for the current owner of the partition.
                self.backlog.push_front(Command::Execute { transaction, reply });
                return;
            }
            let _ = reply.send(Err(StepFault { index: 0, fault, work: Work::Free }.into()));
            return;
        }
        self.check_policy();
        let number = self.batch_last + 1;
        let now = self.clock.now_ticks();
        if self.state.head.time.seconds() > now.seconds() {
            // The partition was written under a wrong clock and has returned to the right one.
            self.state.head.time = Ticks::from_seconds(now.seconds());
        }
        let full = full_fault(&self.store);
        let mut batch_rows = Rows::new();
        let mut batch_bytes = 0;
        let mut changes = Changes::new();
        let mut decided = Vec::new();
        let transactions_max = if self.alone > 0 { 1 } else { BATCH_TRANSACTIONS_MAX };
        self.alone = self.alone.saturating_sub(1);
        let mut next = Some((transaction, reply));
        while let Some((transaction, reply)) = next {
            let verdict = match &full {
                Some(fault) if !is_shrinking(&transaction) => {
                    Err(StepFault { index: 0, fault: fault.clone(), work: Work::Free })
                }
                Some(_) | None => {
                    // Loaded for each transaction: after a replaced definition was acknowledged, the old one must not
                    // be used.
                    let shape = Arc::clone(&self.shape.load());
                    let weighed = self.weighed_place(&transaction);
                    let context = StagingContext {
                        partition: self.id,
                        lineage: &self.lineage,
                        counted: [
                            self.tally.as_ref().map(|tally| &tally.counted),
                            weighed.map(|place| &self.weighed[place].tally.counted),
                        ],
                        shape: &shape,
                        now,
                        lsn_consumed: self.lsn_consumed(),
                        ambient: &*self.ambient,
                    };
                    let evaluated = evaluate(context, &self.state, &transaction).await;
                    let evaluated = evaluated.and_then(|(accepted, outcomes)| {
                        match weighed.map(|place| self.weighed[place].check(accepted.counted[1])) {
                            Some(Err(fault)) => {
                                Err(StepFault { index: 0, fault: fault.into(), work: Work::Lookup })
                            }
                            Some(Ok(())) | None => Ok((accepted, outcomes)),
                        }
                    });
                    evaluated.map(|(accepted, outcomes)| {
                        batch_bytes += accepted.bytes;
                        self.state.head = accepted.head;
                        if let Some(tally) = &mut self.tally {
                            tally.counts.change(accepted.counted[0]);
                        }
                        if let Some(place) = weighed {
                            self.weighed[place].tally.counts.change(accepted.counted[1]);
                        }
                        self.state.submitted(number, &accepted.rows);
                        batch_rows.extend(accepted.rows);
                        changes.extend(accepted.changes);
                        outcomes
                    })
                }
            };
            decided.push(Decided { transaction, verdict, reply });
            let room = decided.len() < transactions_max && batch_bytes < BATCH_BYTES_MAX;
            next = if room { self.next_waiting(queue) } else { None };
        }
        self.clock.reach(self.state.head.time.seconds());
        self.submit(number, batch_rows, changes, decided);
    }

    /// The next waiting transaction, unless another command comes before it.
    fn next_waiting(&mut self, queue: &mut mpsc::Receiver<Command>) -> Option<(Transaction, Reply)> {
        let command = match self.backlog.pop_front() {
            Some(command) => command,
            None => queue.try_recv().ok()?,
        };
        if let Command::Execute { transaction, reply } = command {
            return Some((transaction, reply));
        }
        self.backlog.push_front(command);
        None
    }

    /// Submits the batch. Refusals without rows are answered with the previous batch, whose state they are based on.
    fn submit(&mut self, number: BatchNumber, rows: Rows, changes: Changes, decided: Vec<Decided>) {
        if rows.is_empty() {
            match self.in_flight.back_mut() {
                Some(before) => before.decided.extend(decided),
                None => answer(decided, self.state.head.lsn),
            }
            return;
        }
        self.batch_last = number;
        let reserved = self.state.head.reserve();
        let mut batch = Batch::default();
        let mut grows = false;
        let mut records = Vec::new();
        let mut expiry: Option<u64> = None;
        for ((space, key), row) in rows {
            if space == EXPIRY && row.is_some() {
                let second = keyspace::parse_expiry_key(&key).map(|(second, _)| second);
                expiry = expiry.into_iter().chain(second).min();
            }
            if space == RECORDS {
                self.cache.begin_write(&key);
                records.push((key.clone(), row.clone()));
            }
            match row {
                Some(row) => batch.put(space, key, row),
                None => batch.delete(space, key),
            }
        }
        for one in &decided {
            grows |= one.verdict.is_ok() && !is_shrinking(&one.transaction);
        }
        if !grows {
            batch.mark_shrinking();
        }
        self.put_head(self.state.head.encode(), &mut batch);
        let durability = if reserved { Durability::Sync } else { self.durability };
        let commit = Box::pin(self.store.submit(&self.lane, batch, durability));
        self.index.environment().metrics.batch_transactions.observe(decided.len() as f64);
        // The disk is busy with the batch meanwhile.
        self.index.index_writer().into_iter().for_each(IndexWriter::compute_due_terms);
        let indexed =
            self.index.index_writer().map(|index_writer| Prepared::new(index_writer.rules(), changes));
        self.in_flight.push_back(InFlight {
            number,
            commit,
            head: self.state.head.clone(),
            decided,
            records,
            indexed,
            expiry,
        });
    }
}
