//! Gathers the waiting transactions into a batch: evaluates each one and submits their rows.

use super::{BATCH_BYTES_MAX, CONCURRENT_BATCH_MIN, Command, Execution, InFlight, Writer};
use crate::evaluate::{Outcomes, evaluate};
use crate::index::{Changes, IndexWriter, Prepared};
use crate::keyspace::{self, EXPIRY, RECORDS};
use crate::numbering::Identity;
use crate::partition::Unexecuted;
use crate::staging::StagingContext;
use crate::state::{BatchNumber, Rows};
use crate::verdicts::{Decided, answer, full_fault, is_shrinking};
use kv::{Batch, Durability};
use model::{Ticks, Work};
use plan::StepFault;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Limit of the transactions of one batch.
const BATCH_TRANSACTIONS_MAX: usize = 256;

/// A batch that is being gathered.
struct Gathered {
    number: BatchNumber,
    rows: Rows,
    /// Bytes of the rows, keys included.
    bytes: usize,
    changes: Changes,
    decided: Vec<Decided>,
}

impl Gathered {
    fn new(number: BatchNumber) -> Gathered {
        Gathered { number, rows: Rows::new(), bytes: 0, changes: Changes::new(), decided: Vec::new() }
    }
}

impl Writer {
    /// Evaluates the transaction and the waiting ones after it, and submits the batch.
    pub(super) async fn gather(&mut self, execution: Execution, queue: &mut mpsc::Receiver<Command>) {
        if let Err(fault) = self.ensure_view().await {
            if self.has_ended {
                // Returned unexecuted, for the current owner of the partition.
                self.backlog.push_front(Command::Execute(execution));
                return;
            }
            execution.refuse(fault);
            return;
        }
        self.await_company().await;
        self.check_policy();
        self.track_writes();
        let now = self.clock.now_ticks();
        if self.state.head.time.seconds() > now.seconds() {
            // The partition was written under a wrong clock and has returned to the right one.
            self.state.head.set_time_back(Ticks::from_seconds(now.seconds()));
        }
        let full = full_fault(&self.store);
        let mut gathered = Gathered::new(self.batch_last + 1);
        let transactions_max = if self.alone > 0 { 1 } else { BATCH_TRANSACTIONS_MAX };
        self.alone = self.alone.saturating_sub(1);
        let (mut next, mut taken) = (Some(execution), 0);
        while let Some(execution) = next {
            if let Some(execution) = self.locks.admit(self.id.container, execution) {
                match &full {
                    Some(fault) if !is_shrinking(&execution.transaction) => {
                        let verdict = Err(StepFault { index: 0, fault: fault.clone(), work: Work::Free });
                        gathered.decided.push(Decided { execution, verdict });
                    }
                    Some(_) | None => self.evaluate(execution, now, &mut gathered).await,
                }
            }
            taken += 1;
            let room = taken < transactions_max && gathered.bytes < BATCH_BYTES_MAX;
            next = if room { self.next_waiting(queue) } else { None };
        }
        self.clock.reach(self.state.head.time.seconds());
        self.gathered_last = taken;
        self.submit(gathered);
    }

    /// If the last batch had several transactions but few, lets their clients send the next ones before this batch is
    /// gathered: every batch costs a head row, an index segment and a publication. The thread meanwhile runs the tasks
    /// that are ready and polls its sockets once, so a writer with a single client does not wait.
    async fn await_company(&mut self) {
        let is_small = (2..CONCURRENT_BATCH_MIN).contains(&self.gathered_last);
        if is_small && self.in_flight.is_empty() {
            tokio::task::yield_now().await;
        }
    }

    /// Evaluates one transaction and adds its rows to the batch.
    async fn evaluate(&mut self, execution: Execution, now: Ticks, gathered: &mut Gathered) {
        // A draft is evaluated as of its own time, which gave the same result.
        let began = match &execution.basis {
            None => now,
            Some(basis) => match self.may_have_changed(&execution.transaction.key, basis).await {
                Ok(false) => basis.begun,
                Ok(true) => {
                    let _ = execution.reply.send(Err(Unexecuted::Changed));
                    return;
                }
                Err(fault) => return execution.refuse(fault),
            },
        };
        let verdict = self.verdict(&execution, began, gathered).await;
        if let Some(lock) = execution.basis.as_ref().and_then(|basis| basis.lock) {
            let waiting = self.locks.release(lock);
            waiting.into_iter().rev().for_each(|command| self.backlog.push_front(command));
        }
        gathered.decided.push(Decided { execution, verdict });
    }

    async fn verdict(
        &mut self,
        execution: &Execution,
        now: Ticks,
        gathered: &mut Gathered,
    ) -> Result<Outcomes, StepFault> {
        let Execution { transaction, basis, .. } = execution;
        // Loaded for each transaction: after a replaced definition was acknowledged, the old one must not be used.
        let shape = Arc::clone(&self.shape.load());
        let mut weighed = self.weighed_place(transaction);
        let identities = basis.as_ref().map(|basis| &basis.identities[..]);
        let steps = if identities.is_some() { 0 } else { transaction.operations.len() };
        let taken = self.numbering.take(steps);
        (self.state.head.counter, self.state.head.stamp) = (taken.counter, taken.stamp);
        let context = StagingContext {
            partition: self.id,
            lineage: &self.lineage,
            counted: [
                self.tally.as_ref().map(|tally| &tally.keys),
                weighed.map(|place| &self.weighed[place].tally.keys),
            ],
            shape: &shape,
            now,
            lsn_consumed: self.lsn_consumed(),
            ambient: &*self.ambient,
        };
        let evaluated = evaluate(context, &self.state, transaction, identities).await;
        if let (Some(place), Ok((accepted, _))) = (weighed, &evaluated) {
            weighed = self.forget_outdated(place, &accepted.counted[1]);
        }
        let evaluated = evaluated.and_then(|(accepted, outcomes)| {
            match weighed.map(|place| self.weighed[place].check(&accepted.counted[1])) {
                Some(Err(fault)) => Err(StepFault { index: 0, fault: fault.into(), work: Work::Lookup }),
                Some(Ok(())) | None => Ok((accepted, outcomes)),
            }
        });
        let used = match &evaluated {
            Ok((accepted, _)) if steps > 0 => {
                Identity { counter: accepted.head.counter, stamp: accepted.head.stamp }
            }
            Ok(_) | Err(_) => taken,
        };
        self.numbering.give_back(taken, steps, used);
        let (accepted, outcomes) = evaluated?;
        self.note_writes(&accepted);
        self.state.head = accepted.head;
        // Those of a draft may be lower than what was assigned since.
        self.numbering.store_in(&mut self.state.head);
        let [after_cut, of_key] = accepted.counted;
        if let Some(tally) = &self.tally {
            tally.note(self.state.head.lsn, after_cut);
        }
        if let Some(place) = weighed {
            self.weighed[place].tally.note(self.state.head.lsn, of_key);
        }
        self.note_entered(&accepted.entered_prefixes);
        self.state.submitted(gathered.number, &accepted.rows);
        gathered.bytes += accepted.bytes;
        gathered.rows.extend(accepted.rows);
        gathered.changes.extend(accepted.changes);
        Ok(outcomes)
    }

    /// The next waiting transaction, unless another command comes before it.
    fn next_waiting(&mut self, queue: &mut mpsc::Receiver<Command>) -> Option<Execution> {
        let command = match self.backlog.pop_front() {
            Some(command) => command,
            None => queue.try_recv().ok()?,
        };
        if let Command::Execute(execution) = command {
            return Some(execution);
        }
        self.backlog.push_front(command);
        None
    }

    /// Submits the batch. Refusals without rows are answered with the previous batch, whose state they are based on.
    fn submit(&mut self, gathered: Gathered) {
        let Gathered { number, rows, changes, decided, .. } = gathered;
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
            grows |= one.verdict.is_ok() && !is_shrinking(&one.execution.transaction);
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
