//! Interactive transactions: operations, reads and queries in one logical partition, decided one after the other by
//! their caller, and committed together or not at all.
//!
//! A transaction reads one state of its partition, with its own changes on top. It is committed if nobody else has
//! changed the logical partition meanwhile; otherwise [`Engine::transact`] runs it again, and after some conflicts
//! under a lock on that logical partition. Dropping a transaction rolls it back: nothing was written.
//!
//! Stored procedures, triggers and multi-document transactions of any API are such transactions.

use crate::authorisation::{Principal, QueryPass, Resource, TransactionPass, TransactionRights};
use crate::catalog::Container;
use crate::continuation;
use crate::documents::{Keyed, StepReceipt};
use crate::engine::Engine;
use crate::feed::{FeedPage, FeedRequest, PAGE_BYTES_STOP, Scope, bounds, resumed};
use crate::query::{QueryPage, QueryRequest};
use crate::router::{Attempts, Routed};
use crate::slot::PartitionSlot;
use eval::{Budget, Holding, QueryMemory};
use exec::{Part, PartScope, PartSource};
use model::{
    Charge, ConflictFault, Fault, LimitFault, Lsn, MissingFault, PartitionKey, RequestFault, SessionToken,
    StorageFault, Work,
};
use partition::{Draft, Executed, KeyLock, LOCK_WAIT_MAX, RecordScan, Unexecuted, keyspace};
use plan::{Condition, DocumentOperation, LogicalKey, Mutation, Outcome, StoredDocument, Target};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How often a transaction is run without a lock.
const RUNS_UNLOCKED_MAX: usize = 3;
/// How often it is then run under a lock. A lock does not keep off housekeeping, splits and new definitions.
const RUNS_LOCKED_MAX: usize = 3;

/// How many times the time of a transaction may pass before its last run begins.
const RUNS_TIME_PART: u32 = 2;

/// How long a lock is held before its run begins. It would end before the run does, and others of its key wait for it.
const LOCKED_PREPARATION_MAX: Duration = Duration::from_secs(1);
/// How long a run that is prepared waits for its lock: others wait for what it has.
const PREPARED_LOCK_WAIT_MAX: Duration = Duration::from_millis(100);

/// Memory of a row that a transaction has written, for each of its bytes: the row, the document and the operation.
const MEMORY_PER_BYTE: usize = 3;
/// Retry delay for a transaction that found no memory.
const BUSY_RETRY_MS: u64 = 1_000;

/// Options of a transaction.
#[derive(Clone, Debug)]
pub struct TransactionOptions {
    /// How long it may take until it is committed. Each time it is run again, it has that time again; the last run
    /// begins before twice that time has passed.
    pub time_max: Duration,
    /// The client's session tokens.
    pub session: Vec<SessionToken>,
    /// When it locks its logical partition.
    pub lock: LockWhen,
}

/// When a transaction locks its logical partition, so that the changes of others wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWhen {
    /// When it is run again after several conflicts.
    Conflicts,
    /// When it begins.
    Begin,
}

/// A transaction in one logical partition that is not committed yet.
pub struct Transaction {
    engine: Arc<Engine>,
    container: Arc<Container>,
    principal: Principal,
    rights: TransactionRights,
    key: PartitionKey,
    routed: Routed,
    draft: Draft,
    memory: Memory,
    spent: Spent,
    time_max: Duration,
    deadline: Instant,
    is_stale: bool,
}

/// The memory of the changes of a transaction, a part of that of all queries.
struct Memory {
    holding: Holding,
    held: usize,
}

impl Memory {
    fn new(all: &Arc<QueryMemory>) -> Memory {
        // A transaction has limits of its own.
        let budget = Arc::new(Budget::new(usize::MAX, 0).within(Arc::clone(all)));
        Memory { holding: budget.holding(), held: 0 }
    }

    /// Refuses further changes if there is no memory for those so far.
    fn hold(&mut self, draft: &Draft) -> Result<(), LimitFault> {
        let wanted = draft.bytes().saturating_mul(MEMORY_PER_BYTE);
        let more = wanted.saturating_sub(self.held);
        let busy = |_| LimitFault::Overloaded { retry_after_ms: BUSY_RETRY_MS };
        self.holding.add(more).map_err(busy)?;
        self.held += more;
        Ok(())
    }
}

/// The charge of a transaction so far. It is recorded at the end, whether the transaction is committed or not.
struct Spent {
    slot: Arc<PartitionSlot>,
    key: Option<PartitionKey>,
    charge: Charge,
}

impl Spent {
    fn new(slot: &Arc<PartitionSlot>, key: &PartitionKey) -> Spent {
        Spent { slot: Arc::clone(slot), key: slot.ledger.sampled(key), charge: Charge::NONE }
    }
}

impl Drop for Spent {
    fn drop(&mut self) {
        self.slot.ledger.add(self.charge);
        self.slot.ledger.count_key(self.key.take(), self.charge);
    }
}

/// The result of a committed transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionReceipt {
    /// The client's new session token.
    pub session: SessionToken,
    /// The LSN of all its changes; `None` if it has changed nothing.
    pub lsn: Option<Lsn>,
    /// The total charge of its operations and queries.
    pub charge: Charge,
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Transaction { key, draft, .. } = self;
        formatter.debug_struct("Transaction").field("key", key).field("draft", draft).finish_non_exhaustive()
    }
}

impl Engine {
    /// Begins a transaction on the latest state. If it locks its logical partition, it waits for others that do so for
    /// [`LOCK_WAIT_MAX`] at most.
    pub async fn begin(
        self: &Arc<Engine>,
        pass: &TransactionPass<'_>,
        options: &TransactionOptions,
    ) -> Result<Transaction, Fault> {
        self.begin_with(pass, options, options.lock == LockWhen::Begin).await
    }

    /// Runs a transaction and commits it. If others have changed the logical partition meanwhile, all of it is run
    /// again, at last under a lock for which it waits for [`LOCK_WAIT_MAX`]. `run` returns the transaction with its
    /// result; if it fails, the transaction is rolled back.
    pub async fn transact<T, E, F>(
        self: &Arc<Engine>,
        pass: &TransactionPass<'_>,
        options: &TransactionOptions,
        mut run: impl FnMut(Transaction) -> F,
    ) -> Result<(T, TransactionReceipt), E>
    where
        E: From<Fault>,
        F: Future<Output = (Transaction, Result<T, E>)>,
    {
        let ready = || std::future::ready(Ok(()));
        self.transact_prepared(pass, options, ready, |transaction, ()| run(transaction)).await
    }

    /// The same with something that a run needs and others wait for. It is obtained before each run begins, since a
    /// state that waits is outdated when it is used, but after the lock, since those who wait for a lock delay only
    /// others of the same key; `run` owns it, so it is not held during the commit.
    pub async fn transact_prepared<P, T, E, G, F>(
        self: &Arc<Engine>,
        pass: &TransactionPass<'_>,
        options: &TransactionOptions,
        mut prepare: impl FnMut() -> G,
        mut run: impl FnMut(Transaction, P) -> F,
    ) -> Result<(T, TransactionReceipt), E>
    where
        E: From<Fault>,
        G: Future<Output = Result<P, E>>,
        F: Future<Output = (Transaction, Result<T, E>)>,
    {
        let begun = Instant::now();
        for count in 0..RUNS_UNLOCKED_MAX + RUNS_LOCKED_MAX {
            let is_locked = options.lock == LockWhen::Begin || count >= RUNS_UNLOCKED_MAX;
            if count > 0 && begun.elapsed() >= options.time_max * RUNS_TIME_PART {
                break;
            }
            let (transaction, prepared) = if is_locked {
                match self.begin_locked(pass, options, prepare()).await? {
                    Some(ready) => ready,
                    None => continue,
                }
            } else {
                let prepared = prepare().await?;
                (self.begin_with(pass, options, false).await?, prepared)
            };
            match run(transaction, prepared).await {
                (transaction, Err(_)) if transaction.is_stale => {}
                (_, Err(failure)) => return Err(failure),
                (transaction, Ok(result)) => match transaction.commit().await {
                    Ok(receipt) => return Ok((result, receipt)),
                    Err(Fault::Conflict(ConflictFault::ConcurrentChange)) => {}
                    Err(fault) => return Err(fault.into()),
                },
            }
        }
        Err(Fault::from(ConflictFault::ConcurrentChange).into())
    }

    /// Obtains a lock, then what a run needs, and begins the transaction. `None` if the lock was lost meanwhile.
    async fn begin_locked<P, E: From<Fault>>(
        self: &Arc<Engine>,
        pass: &TransactionPass<'_>,
        options: &TransactionOptions,
        prepare: impl Future<Output = Result<P, E>>,
    ) -> Result<Option<(Transaction, P)>, E> {
        let mut prepare = pin!(prepare);
        let locked = self.lock(pass, options).await?;
        let (locked, prepared) = match timeout(LOCKED_PREPARATION_MAX, &mut prepare).await {
            Ok(prepared) => (locked, prepared?),
            Err(_) => {
                drop(locked);
                let prepared = prepare.await?;
                match timeout(PREPARED_LOCK_WAIT_MAX, self.lock(pass, options)).await {
                    Ok(locked) => (locked?, prepared),
                    Err(_) => return Ok(None),
                }
            }
        };
        let (located, lock) = locked;
        match located.begin(Some(lock)).await {
            Ok(draft) => Ok(Some((self.transaction(pass, options, located, draft), prepared))),
            Err(_) if Attempts::default().again_at(&located.routed) => Ok(None),
            Err(fault) => Err(fault.into()),
        }
    }

    async fn begin_with(
        self: &Arc<Engine>,
        pass: &TransactionPass<'_>,
        options: &TransactionOptions,
        is_locked: bool,
    ) -> Result<Transaction, Fault> {
        let mut attempts = Attempts::default();
        loop {
            let (located, lock) = match is_locked {
                true => self.lock(pass, options).await.map(|(located, lock)| (located, Some(lock)))?,
                false => (self.locate(pass, options).await?, None),
            };
            match located.begin(lock).await {
                Ok(draft) => return Ok(self.transaction(pass, options, located, draft)),
                Err(_) if attempts.again_at(&located.routed) => {}
                Err(fault) => return Err(fault),
            }
        }
    }

    /// Locks the logical partition of a transaction.
    async fn lock(
        &self,
        pass: &TransactionPass<'_>,
        options: &TransactionOptions,
    ) -> Result<(Located, KeyLock), Fault> {
        let mut attempts = Attempts::default();
        loop {
            let located = self.locate(pass, options).await?;
            match located.routed.partition.lock(&located.key, LOCK_WAIT_MAX).await {
                Ok(lock) => return Ok((located, lock)),
                Err(_) if attempts.again_at(&located.routed) => {}
                Err(fault) => return Err(fault),
            }
        }
    }

    /// The place of a transaction, if its request is admitted.
    async fn locate(
        &self,
        pass: &TransactionPass<'_>,
        options: &TransactionOptions,
    ) -> Result<Located, Fault> {
        let container = self.catalog.state().container(pass.container.number()).ok_or(MissingFault::Owner)?;
        let key = self.logical_key(&container, pass.key.clone())?;
        self.admit_at(&container, &key.effective, pass.principal.class().priority)?;
        let routed = self.owner_of(&container, &key.effective).await?;
        routed.check_session(&options.session)?;
        Ok(Located { container, key, routed })
    }

    fn transaction(
        self: &Arc<Engine>,
        pass: &TransactionPass<'_>,
        options: &TransactionOptions,
        Located { container, key, routed }: Located,
        draft: Draft,
    ) -> Transaction {
        Transaction {
            engine: Arc::clone(self),
            container,
            principal: pass.principal.clone(),
            rights: pass.rights,
            memory: Memory::new(&self.query_memory),
            spent: Spent::new(&routed.slot, &key.partition_key),
            key: key.partition_key,
            routed,
            draft,
            time_max: options.time_max,
            deadline: Instant::now() + options.time_max,
            is_stale: false,
        }
    }
}

/// The logical partition of a transaction, and the physical partition that it is in.
struct Located {
    container: Arc<Container>,
    key: LogicalKey,
    routed: Routed,
}

impl Located {
    async fn begin(&self, lock: Option<KeyLock>) -> Result<Draft, Fault> {
        self.routed.partition.begin(self.key.clone(), lock).await
    }
}

impl Transaction {
    /// The container.
    pub fn container(&self) -> &Arc<Container> {
        &self.container
    }

    /// The partition key of all its documents.
    pub fn key(&self) -> &PartitionKey {
        &self.key
    }

    /// The charge of what was done so far.
    pub fn charge(&self) -> Charge {
        self.spent.charge
    }

    /// Whether half of what a transaction may write is written.
    pub fn is_half_full(&self) -> bool {
        self.draft.is_half_full()
    }

    /// Lets [`Engine::transact`] run this transaction again, though it has failed, since the reason is gone.
    pub fn run_again(&mut self) {
        self.is_stale = true;
    }

    /// Lets [`Engine::transact`] run this transaction again from its beginning. What it has done so far is not charged.
    pub fn start_over(&mut self) {
        self.spent.charge = Charge::NONE;
        self.is_stale = true;
    }

    /// How much of its time is left.
    pub fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Refuses the partition key of another logical partition.
    pub fn check_key(&self, given: &PartitionKey) -> Result<(), RequestFault> {
        match *given == self.key {
            true => Ok(()),
            false => Err(RequestFault::OutsideTransaction { own: self.key.clone(), given: given.clone() }),
        }
    }

    /// Performs an operation in the state after the previous ones. If it is refused, the transaction can continue
    /// without it.
    pub async fn execute(&mut self, operation: DocumentOperation) -> Result<StepReceipt, Fault> {
        self.check_time()?;
        if let DocumentOperation::Write(Mutation::Expire { .. } | Mutation::Reschedule { .. }) = operation {
            return Err(Fault::Internal("a transaction contains an operation of housekeeping".to_owned()));
        }
        let keyed = Keyed::in_transaction(&self.container, &self.key, operation)?;
        match self.rights {
            TransactionRights::LogicalPartition => {}
            TransactionRights::Caller => {
                let resource = Resource::Container(&self.container, keyed.reach());
                self.engine.access.authorise(&self.principal, keyed.action(), resource)?;
            }
        }
        let (_, _, operation) = keyed.into_parts();
        self.memory.hold(&self.draft)?;
        let executed = self.draft.execute(operation).await;
        let work = executed.as_ref().map_or(Work::Lookup, |(_, work)| *work);
        let charge = work.price();
        self.spent.charge += charge;
        let (outcome, _) = executed.inspect_err(|fault| self.is_stale |= is_stale(fault))?;
        Ok(StepReceipt { outcome, charge })
    }

    /// Reads a document that this transaction has written as it is now, for the answer to the write: it needs no other
    /// rights and is not charged.
    pub async fn reread(&mut self, target: Target) -> Result<Option<StoredDocument>, Fault> {
        let read = DocumentOperation::Read { target, condition: Condition::None };
        match self.draft.execute(read).await {
            Ok((Outcome::Read(stored), _)) => Ok(Some(stored)),
            Ok(_) | Err(Fault::Missing(MissingFault::Resource)) => Ok(None),
            Err(fault) => {
                self.is_stale |= is_stale(&fault);
                Err(fault)
            }
        }
    }

    /// Computes a page of a query over the documents of the logical partition.
    pub async fn query(&mut self, request: &QueryRequest) -> Result<QueryPage, Fault> {
        self.check_time()?;
        let (container, scope) = (Arc::clone(&self.container), Scope::Key(self.key.clone()));
        let pass = match self.rights {
            TransactionRights::LogicalPartition => {
                QueryPass { container: &container, principal: &self.principal, scope, within: None }
            }
            TransactionRights::Caller => {
                self.engine.access.query_documents(&self.principal, &container, scope)?
            }
        };
        let (_, keys) = bounds(&container, &pass.scope)?;
        let part = Part {
            source: PartSource::Fixed(self.draft.view()),
            scope: PartScope::Logical(keyspace::logical_key(&keys.start)),
            keys,
            ancestors: self.routed.slot.ancestors.iter().map(|ancestor| ancestor.ordinal).collect(),
        };
        let page = self.engine.query_on(pass, request, Some(&part));
        let page = match tokio::time::timeout_at(self.deadline, page).await {
            Ok(page) => page,
            Err(_) => Err(self.time_exceeded().into()),
        };
        self.spent.charge += page.as_ref().map_or(Charge::MINIMUM, |page| page.charge);
        page.inspect_err(|fault| self.is_stale |= is_stale(fault))
    }

    /// Reads a page of the documents of the logical partition, in the order of their ids.
    pub async fn feed(&mut self, request: &FeedRequest) -> Result<FeedPage, Fault> {
        self.check_time()?;
        let container = Arc::clone(&self.container);
        let mut scope = Scope::Key(self.key.clone());
        if self.rights == TransactionRights::Caller {
            scope = self.engine.access.list_documents(&self.principal, &container, scope)?.scope;
        }
        let context = continuation::context("feed", &container);
        let (_, mut keys) = bounds(&container, &scope)?;
        if let Some(text) = &request.continuation {
            let opened = continuation::open(&self.engine.continuation_key, &context, text)?;
            scope = opened.scope(&container, scope)?;
            keys = resumed(keys, opened.position);
        }
        let scan =
            RecordScan { range: keys.clone(), items_max: request.items_max, bytes_max: PAGE_BYTES_STOP };
        let page = self.draft.view().page(&scan).await;
        let page = page.inspect_err(|fault| self.is_stale |= is_stale(fault))?;
        let work = page.documents.iter().map(|stored| Work::Read { bytes: stored.document.bytes().len() });
        let charge = Charge::MINIMUM + work.map(Work::price).sum::<Charge>();
        self.spent.charge += charge;
        let seal = |last| {
            let rest = keyspace::after(&keys, last);
            continuation::seal(&self.engine.continuation_key, &context, &container, &scope, &rest.start)
        };
        let continuation = page.resume_after.as_deref().map(seal).transpose()?;
        let session = vec![self.routed.session_token(self.draft.lsn())];
        Ok(FeedPage { documents: page.documents, continuation, session, charge })
    }

    /// Commits all changes durably, or none. Refused with [`ConflictFault::ConcurrentChange`] if others have changed
    /// the logical partition; the transaction can be run again then.
    pub async fn commit(self) -> Result<TransactionReceipt, Fault> {
        self.check_time()?;
        let Transaction { engine, mut draft, routed, spent, .. } = self;
        if engine.awaits_scripts() {
            draft.set_followed();
        }
        let committed = match draft.has_changes() {
            // What it has read is one state.
            false => Ok((draft.lsn(), None)),
            true => match routed.partition.commit(draft).await {
                Ok(executed) => Ok((executed.lsn, Some(lsn_of(&executed)))),
                Err(Unexecuted::Refused(refusal)) => Err(refusal.fault),
                // It is run again on the partition that owns its documents now.
                Err(Unexecuted::Stopped(_) | Unexecuted::Changed) => {
                    Err(ConflictFault::ConcurrentChange.into())
                }
            },
        };
        let refuse = |fault: &Fault| routed.slot.ledger.refuse(fault, Charge::NONE);
        let (reached, lsn) = committed.inspect_err(refuse)?;
        Ok(TransactionReceipt { session: routed.session_token(reached), lsn, charge: spent.charge })
    }

    fn check_time(&self) -> Result<(), LimitFault> {
        if Instant::now() < self.deadline { Ok(()) } else { Err(self.time_exceeded()) }
    }

    fn time_exceeded(&self) -> LimitFault {
        LimitFault::TransactionTime { limit: self.time_max }
    }
}

/// The LSN of the changes of a transaction.
fn lsn_of(executed: &Executed) -> Lsn {
    let written = executed.outcomes.iter().find_map(|(outcome, _)| match outcome {
        Outcome::Created(stored) | Outcome::Replaced(stored) => Some(stored.lsn),
        Outcome::Deleted | Outcome::Read(_) | Outcome::NotModified(_) | Outcome::Nothing => None,
    });
    written.unwrap_or(executed.lsn)
}

/// Whether the state that a transaction reads may be gone, because its partition or the store was opened again.
fn is_stale(fault: &Fault) -> bool {
    matches!(fault, Fault::Storage(StorageFault::Unavailable { .. }))
}
