//! From a key to the partition that owns it, and to the answer of that partition. Only this file knows where partitions
//! are.
//!
//! A partition may stop between being found and being called: it was idle and closed, its writer panicked, or it was
//! split. Then the request is routed again by the newest map of the container, a limited number of times. A write is
//! repeated only if the partition returned it; a write whose outcome is unknown is never repeated.

use crate::authorisation::CatalogPass;
use crate::catalog::{Container, PartitionUsage};
use crate::documents::{ReadOptions, RefusedDocument};
use crate::engine::Engine;
use crate::join::join_all;
use crate::ledger::{Ledger, refusal_charge};
use crate::slot::PartitionSlot;
use kv::{Health, KeyRange, Store};
use model::{
    Charge, ConflictFault, EffectiveKey, EffectiveRange, Fault, LimitFault, Lsn, MissingFault, PartitionKey,
    Priority, ReadQuorum, RequestFault, SessionToken, StorageFault, Work,
};
use partition::index::IndexFinding;
use partition::{PhysicalPartition, RecordPage, RecordScan, Unexecuted, keyspace};
use plan::{DocumentOperation, LogicalKey, Outcome, Returned, StepFault, Target, Transaction};
use std::sync::Arc;

/// Maximum number of times that a request is routed.
const ROUTES_MAX: usize = 4;

/// A partition that was found for a request.
#[derive(Clone, Debug)]
pub(crate) struct Routed {
    pub(crate) partition: Arc<PhysicalPartition>,
    pub(crate) slot: Arc<PartitionSlot>,
}

impl Routed {
    /// Refuses a client that has seen a later state than the partition has. Tokens of the partitions from which it was
    /// split are satisfied: it starts after their last LSN, and a later LSN of such a token is that of a sibling.
    pub(crate) fn check_session(&self, session: &[SessionToken]) -> Result<(), Fault> {
        let seen = session.iter().filter(|token| self.slot.ordinal == token.ordinal);
        match seen.map(|token| token.lsn).max() {
            Some(lsn) if lsn > self.partition.lsn() => Err(MissingFault::Session.into()),
            Some(_) | None => Ok(()),
        }
    }

    /// The client's token after it has seen the partition at `lsn`.
    pub(crate) fn session_token(&self, lsn: Lsn) -> SessionToken {
        SessionToken { ordinal: self.slot.ordinal, lsn }
    }

    /// A refusal of the partition.
    pub(crate) fn refused(&self, fault: Fault) -> RefusedDocument {
        RefusedDocument { fault, session: Some(self.session_now()) }
    }

    /// The token at the partition's position.
    pub(crate) fn session_now(&self) -> SessionToken {
        self.session_token(self.partition.lsn())
    }
}

/// A transaction that was executed, and the charge of each step.
#[derive(Debug)]
pub(crate) struct PricedOutcomes {
    pub(crate) outcomes: Vec<(Outcome, Charge)>,
    /// The LSN of the partition after it.
    pub(crate) lsn: Lsn,
}

impl PricedOutcomes {
    fn priced(
        executed: partition::Executed,
        ledger: &Ledger,
        sampled: Option<PartitionKey>,
    ) -> PricedOutcomes {
        let price = |(outcome, work): (Outcome, Work)| (outcome, work.price());
        let outcomes: Vec<_> = executed.outcomes.into_iter().map(price).collect();
        let charge = outcomes.iter().map(|(_, charge)| *charge).sum();
        ledger.add(charge);
        if charge != Charge::NONE {
            ledger.count_key(sampled, charge);
        }
        PricedOutcomes { outcomes, lsn: executed.lsn }
    }
}

/// A refused transaction; none of its steps took effect.
#[derive(Clone, Debug, PartialEq)]
pub struct RefusedStep {
    /// The step that was refused, from 0.
    pub index: usize,
    /// The reason.
    pub fault: Fault,
    /// The charge of the refusal.
    pub charge: Charge,
}

/// A read of one document.
pub(crate) struct ReadAt<'a> {
    pub(crate) key: &'a LogicalKey,
    pub(crate) target: &'a Target,
    pub(crate) options: &'a ReadOptions,
    pub(crate) read_quorum: ReadQuorum,
}

/// Counts how often a request was routed.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    made: usize,
}

impl Attempts {
    /// Whether a request that one of `partitions` refused is routed again: only if one has stopped.
    pub(crate) fn again<'a>(
        &mut self,
        mut partitions: impl Iterator<Item = &'a Arc<PhysicalPartition>>,
    ) -> bool {
        self.again_if(partitions.any(|partition| partition.has_ended()))
    }

    /// Whether a refused request is routed again: only if a partition `has_stopped` or was split.
    pub(crate) fn again_if(&mut self, has_stopped: bool) -> bool {
        self.made += 1;
        self.made < ROUTES_MAX && has_stopped
    }

    pub(crate) fn again_at(&mut self, routed: &Routed) -> bool {
        self.again(std::iter::once(&routed.partition))
    }
}

impl Engine {
    /// The logical partition of a complete `key`.
    pub(crate) fn logical_key(
        &self,
        container: &Container,
        key: PartitionKey,
    ) -> Result<LogicalKey, RequestFault> {
        let definition = &container.definition().partition_key;
        if !definition.is_complete(&key) {
            let (given, expected) = (key.components.len(), definition.paths().len());
            return Err(RequestFault::PartitionKeyLength { given, expected });
        }
        let effective = definition.effective_key(&key);
        Ok(LogicalKey { partition_key: key, effective })
    }

    /// Refuses a request on the partition of `key` if its throughput is used up.
    pub(crate) fn admit_at(
        &self,
        container: &Container,
        key: &EffectiveKey,
        priority: Priority,
    ) -> Result<(), LimitFault> {
        container.map.load().owner(key).map_or(Ok(()), |slot| self.admit(slot, priority))
    }

    /// Refuses a request if the throughput of a partition is used up.
    pub(crate) fn admit(&self, slot: &PartitionSlot, priority: Priority) -> Result<(), LimitFault> {
        slot.ledger.admit(priority, || self.ambient.monotonic())
    }

    pub(crate) async fn read_at(
        &self,
        container: &Container,
        read: &ReadAt<'_>,
    ) -> Result<(Outcome, Charge, SessionToken), RefusedDocument> {
        let ReadAt { key, target, options, read_quorum } = *read;
        let mut attempts = Attempts::default();
        loop {
            let routed = self.owner_of(container, &key.effective).await?;
            routed.check_session(&options.session)?;
            match routed.partition.read(key, target, &options.condition).await {
                Err(_) if attempts.again_at(&routed) => {}
                Err(fault) => {
                    routed.slot.ledger.refuse(&fault, refusal_charge(&fault));
                    return Err(routed.refused(fault));
                }
                Ok((outcome, work, lsn)) => {
                    let ledger = &routed.slot.ledger;
                    let sampled = ledger.sampled(&key.partition_key);
                    let charge = read_quorum.price(work.price());
                    ledger.add(charge);
                    ledger.count_key(sampled, charge);
                    return Ok((outcome, charge, routed.session_token(lsn)));
                }
            }
        }
    }

    /// Executes operations of one logical partition in one transaction.
    pub(crate) async fn execute_at(
        &self,
        container: &Container,
        key: LogicalKey,
        operations: Vec<DocumentOperation>,
        returned: Returned,
    ) -> Result<(Result<PricedOutcomes, RefusedStep>, Routed), Fault> {
        let mut attempts = Attempts::default();
        let mut transaction = Transaction { key, operations, returned };
        loop {
            let routed = self.owner_of(container, &transaction.key.effective).await?;
            let sampled = routed.slot.ledger.sampled(&transaction.key.partition_key);
            match routed.partition.try_execute(transaction).await {
                Ok(executed) => {
                    let priced = PricedOutcomes::priced(executed, &routed.slot.ledger, sampled);
                    return Ok((Ok(priced), routed));
                }
                Err(Unexecuted::Refused(refusal)) => {
                    let StepFault { index, fault, work } = *refusal;
                    let charge = work.price();
                    routed.slot.ledger.refuse(&fault, charge);
                    return Ok((Err(RefusedStep { index, fault, charge }), routed));
                }
                Err(Unexecuted::Stopped(given_back)) if attempts.again_at(&routed) => {
                    transaction = *given_back
                }
                Err(Unexecuted::Stopped(_)) => return Err(stopped()),
                Err(Unexecuted::Changed) => return Err(ConflictFault::ConcurrentChange.into()),
            }
        }
    }

    /// Reads a page of documents from the start of a range, of the partition that owns it. Returns the keys that were
    /// read, which may be fewer than those of `scan`.
    pub(crate) async fn page_at(
        &self,
        container: &Container,
        session: &[SessionToken],
        scan: &RecordScan,
    ) -> Result<(RecordPage, Routed, KeyRange), Fault> {
        let mut attempts = Attempts::default();
        let place = keyspace::hashes_of(&scan.range).min;
        loop {
            let routed = self.owner_of(container, &place).await?;
            routed.check_session(session)?;
            let owned = routed.slot.keys(container.number());
            let Some(range) = scan.range.intersection(owned) else {
                return Err(Fault::Internal("a partition does not own its keys".to_owned()));
            };
            let scan = RecordScan { range, ..scan.clone() };
            match routed.partition.page(&scan).await {
                Err(_) if attempts.again_at(&routed) => {}
                page => return page.map(|page| (page, routed, scan.range)),
            }
        }
    }

    /// The open partition that owns `key`, by the newest map.
    pub(crate) async fn owner_of(&self, container: &Container, key: &EffectiveKey) -> Result<Routed, Fault> {
        let gap = || Fault::Internal("the partition map has a gap".to_owned());
        for _ in 0..ROUTES_MAX {
            let slot = container.map.load().owner(key).cloned().ok_or_else(gap)?;
            match self.routed(container, &slot).await {
                Err(_) if container.map.has_replaced(&slot) => {}
                routed => return routed,
            }
        }
        Err(stopped())
    }

    /// The partitions that own a part of `hashes` by the newest map, in their order, each checked against the session.
    /// Closed ones are opened concurrently. Queries, feeds and jobs find their partitions with this function.
    pub(crate) async fn owners_of(
        &self,
        container: &Container,
        hashes: &EffectiveRange,
        session: &[SessionToken],
    ) -> Result<Vec<Routed>, Fault> {
        self.catalog.resolve_unknown_change(&self.store).await?;
        for _ in 0..ROUTES_MAX {
            let slots: Vec<_> = container.map.load().owners(hashes).cloned().collect();
            match self.routed_all(container, &slots).await {
                Err(_) if slots.iter().any(|slot| container.map.has_replaced(slot)) => {}
                Err(fault) => return Err(fault),
                Ok(routed) => {
                    routed.iter().try_for_each(|routed| routed.check_session(session))?;
                    return Ok(routed);
                }
            }
        }
        Err(stopped())
    }

    async fn routed_all(
        &self,
        container: &Container,
        slots: &[Arc<PartitionSlot>],
    ) -> Result<Vec<Routed>, Fault> {
        if container.map.is_retired() {
            return Err(MissingFault::Owner.into());
        }
        let mut routed = Vec::with_capacity(slots.len());
        for slot in slots {
            let Some(partition) = slot.used(&self.slots) else { break };
            routed.push(Routed { partition, slot: Arc::clone(slot) });
        }
        if routed.len() == slots.len() {
            return Ok(routed);
        }
        let routing = slots.iter().map(|slot| self.routed(container, slot)).collect();
        join_all(routing).await.into_iter().collect()
    }

    /// All partitions of a container, open.
    pub(crate) async fn routed_everywhere(&self, container: &Container) -> Result<Vec<Routed>, Fault> {
        self.owners_of(container, &EffectiveRange::full(), &[]).await
    }

    pub(crate) async fn routed(
        &self,
        container: &Container,
        slot: &Arc<PartitionSlot>,
    ) -> Result<Routed, Fault> {
        let partition = self.opened(container, slot).await?;
        Ok(Routed { partition, slot: Arc::clone(slot) })
    }

    /// The partition in a slot, opened if it is closed.
    pub(crate) async fn opened(
        &self,
        container: &Container,
        slot: &Arc<PartitionSlot>,
    ) -> Result<Arc<PhysicalPartition>, Fault> {
        self.catalog.resolve_unknown_change(&self.store).await?;
        if container.map.is_retired() {
            return Err(MissingFault::Owner.into());
        }
        if let Some(partition) = slot.used(&self.slots) {
            return Ok(partition);
        }
        let opened = Box::pin(slot.opened(&self.slots, &container.opening(slot))).await;
        if self.slots.open_count() > self.options.partitions.open_max {
            self.jobs.wake();
        }
        if opened.is_err() {
            // A partition without an owner was split, or its container was dropped: the catalog will say which.
            Box::pin(self.catalog.await_change(&self.store)).await?;
        }
        // Dropped meanwhile: the writer ends soon.
        if container.map.is_retired() {
            return Err(MissingFault::Owner.into());
        }
        opened
    }

    /// Progress of the index that a container's policy requires, in percent: the lowest of all partitions. Closed
    /// partitions are opened, which also starts the rebuild of indexes of an older policy.
    pub async fn index_progress(&self, pass: &CatalogPass<&Container>) -> Result<u8, Fault> {
        let container = pass.resource;
        let routed = self.routed_everywhere(container).await?;
        Ok(routed.iter().map(|routed| routed.partition.index_progress()).min().unwrap_or(100))
    }

    /// The number of documents of each partition of a container, and their bytes.
    pub(crate) async fn counts_by_partition(
        &self,
        container: &Container,
    ) -> Result<Vec<PartitionUsage>, Fault> {
        let usage = |routed: &Routed| {
            let counts = routed.partition.counts();
            let ordinal = routed.slot.ordinal;
            PartitionUsage { ordinal, documents: counts.documents, document_bytes: counts.bytes }
        };
        Ok(self.routed_everywhere(container).await?.iter().map(usage).collect())
    }

    /// Bytes of documents that the indexes of all containers hold in memory; the limit is one of the options.
    pub fn index_memory_bytes(&self) -> usize {
        self.index_memory.held_bytes()
    }

    /// Compares the index of every partition of a container with its records; for checks, not for requests.
    pub async fn audit_index(&self, pass: &CatalogPass<&Container>) -> Result<Vec<IndexFinding>, Fault> {
        let container = pass.resource;
        let mut findings = Vec::new();
        for routed in self.routed_everywhere(container).await? {
            findings.extend(routed.partition.audit_index().await?);
        }
        Ok(findings)
    }
}

pub(crate) fn stopped() -> Fault {
    StorageFault::Unavailable { cause: "the partition has stopped".to_owned() }.into()
}

pub(crate) fn health(store: &Store) -> Result<(), Fault> {
    match store.health() {
        Health::Serving => Ok(()),
        Health::Full { free_bytes, reserve_bytes } => {
            Err(StorageFault::Full { free_bytes, reserve_bytes }.into())
        }
        Health::Poisoned { cause } => Err(StorageFault::Unavailable { cause: cause.to_string() }.into()),
        Health::Closed => Err(StorageFault::Unavailable { cause: "the store is closed".to_owned() }.into()),
    }
}
