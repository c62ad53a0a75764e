//! Documents: single operations, batches, bulk, and the deletion of a logical partition.

use crate::authorisation::{
    Action, BatchPass, DocumentPass, LogicalPartitionPass, Reach, RequestClass, WritePass,
};
use crate::catalog::Container;
use crate::engine::Engine;
use crate::join::join_all;
use crate::router::{ReadAt, RefusedStep};
use model::limits::BATCH_ANSWER_BYTES_MAX;
use model::{Charge, DocumentNumber, Fault, LimitFault, PartitionKey, RequestFault, SessionToken};
use partition::{RecordScan, keyspace};
use plan::{Condition, DocumentOperation, LogicalKey, Mutation, Outcome, Returned, Target};

/// Documents that one step of deleting a logical partition deletes.
const DELETE_AT_A_TIME: usize = 100;
/// Bytes that such a step reads.
const DELETE_BYTES_AT_A_TIME: usize = 4 * 1024 * 1024;
/// Bulk operations of one request that run concurrently.
const BULK_IN_PARALLEL_MAX: usize = 100;
/// The number of these that may return a large document, as long as no size is known.
const BULK_LARGE_IN_PARALLEL_MAX: usize = 8;

/// The address of a document.
#[derive(Clone, Debug)]
pub struct DocumentAddress {
    /// Its partition key.
    pub key: PartitionKey,
    /// The document in its logical partition.
    pub target: Target,
}

impl DocumentAddress {
    /// What the caller must be authorised for.
    pub(crate) fn reach(&self) -> Reach<'_> {
        Reach::Document { key: Some(&self.key), target: &self.target }
    }
}

/// An operation in a container, and the partition key on which request and document agree. All writes go through it.
#[derive(Clone, Debug)]
pub struct Keyed<'a> {
    container: &'a Container,
    key: PartitionKey,
    operation: DocumentOperation,
}

/// Options of a read.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// The version that the client has already, as a condition.
    pub condition: Condition,
    /// The client's session tokens.
    pub session: Vec<SessionToken>,
}

/// The result of an operation on one document.
#[derive(Clone, Debug)]
pub struct DocumentReceipt {
    /// Read or not modified; created, replaced or deleted.
    pub outcome: Outcome,
    /// The client's new session token.
    pub session: SessionToken,
    /// Its charge.
    pub charge: Charge,
}

/// A refused operation on one document.
#[derive(Clone, Debug, PartialEq)]
pub struct RefusedDocument {
    /// The reason.
    pub fault: Fault,
    /// The client's new session token, if the partition refused: the refusal is based on a state of it.
    pub session: Option<SessionToken>,
}

impl<F: Into<Fault>> From<F> for RefusedDocument {
    /// A refusal before the partition was asked.
    fn from(fault: F) -> RefusedDocument {
        RefusedDocument { fault: fault.into(), session: None }
    }
}

/// The result of one step of a batch.
#[derive(Clone, Debug)]
pub struct StepReceipt {
    /// The outcome of the step.
    pub outcome: Outcome,
    /// Its charge.
    pub charge: Charge,
}

/// Whether the operations of a bulk that follow a refused one are performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterRefusal {
    /// They are.
    Continue,
    /// They are not, so each operation waits for the one before it.
    Stop,
}

/// The result of a bulk.
#[derive(Clone, Debug)]
pub struct BulkReceipt {
    /// The client's new session tokens, one for each partition that was asked.
    pub sessions: Vec<SessionToken>,
    /// The operations that were performed or refused, in order; those after a stop are absent.
    pub results: Vec<Result<StepReceipt, Fault>>,
}

impl BulkReceipt {
    fn add(&mut self, step: Result<(StepReceipt, SessionToken), RefusedDocument>) {
        let (result, session) = match step {
            Ok((receipt, session)) => (Ok(receipt), Some(session)),
            Err(RefusedDocument { fault, session }) => (Err(fault), session),
        };
        self.results.push(result);
        let Some(session) = session else { return };
        match self.sessions.iter_mut().find(|seen| seen.ordinal == session.ordinal) {
            Some(seen) => seen.lsn = seen.lsn.max(session.lsn),
            None => self.sessions.push(session),
        }
    }
}

/// The result of a batch.
#[derive(Clone, Debug)]
pub struct BatchReceipt {
    /// The client's new session token.
    pub session: SessionToken,
    /// The total charge.
    pub charge: Charge,
    /// All steps, or the one because of which all were refused.
    pub result: Result<Vec<StepReceipt>, RefusedStep>,
}

impl Engine {
    /// Reads a document.
    pub async fn read(
        &self,
        pass: DocumentPass<'_>,
        options: &ReadOptions,
    ) -> Result<DocumentReceipt, RefusedDocument> {
        let DocumentPass { container, address: DocumentAddress { key, target }, class } = pass;
        let RequestClass { priority, read_quorum } = class;
        let key = self.logical_key(container, key)?;
        self.admit_at(container, &key.effective, priority)?;
        let read = ReadAt { key: &key, target: &target, options, read_quorum };
        let (outcome, charge, session) = self.read_at(container, &read).await?;
        Ok(DocumentReceipt { outcome, session, charge })
    }

    /// Changes a document.
    pub async fn write(&self, pass: WritePass<'_>) -> Result<DocumentReceipt, RefusedDocument> {
        let Keyed { container, key, operation } = pass.keyed;
        let key = self.logical_key(container, key)?;
        self.admit_at(container, &key.effective, pass.principal.class().priority)?;
        let (executed, routed) = self.execute_at(container, key, vec![operation], Returned::All).await?;
        let mut executed = executed.map_err(|refusal| routed.refused(refusal.fault))?;
        let (outcome, charge) = executed.outcomes.pop().ok_or_else(no_outcome)?;
        Ok(DocumentReceipt { outcome, session: routed.session_token(executed.lsn), charge })
    }

    /// Performs all operations in one commit, or none. A batch that reads gives the client's session tokens.
    pub async fn batch(
        &self,
        pass: BatchPass<'_>,
        returned: Returned,
        session: &[SessionToken],
    ) -> Result<BatchReceipt, Fault> {
        let BatchPass { container, key, operations, priority } = pass;
        let disagreement = operations.iter().enumerate().find_map(|(index, operation)| {
            let fault = agreed_key(container, Some(key.clone()), operation).err()?;
            Some(RefusedStep { index, fault: fault.into(), charge: Charge::MINIMUM })
        });
        let key = self.logical_key(container, key)?;
        self.admit_at(container, &key.effective, priority)?;
        if !session.is_empty() {
            self.owner_of(container, &key.effective).await?.check_session(session)?;
        }
        let (result, session) = match disagreement {
            Some(refusal) => {
                let routed = self.owner_of(container, &key.effective).await?;
                routed.slot.ledger.refuse(&refusal.fault, refusal.charge);
                (Err(refusal), routed.session_now())
            }
            None => match self.execute_at(container, key, operations, returned).await? {
                (Ok(executed), routed) => (Ok(executed.outcomes), routed.session_token(executed.lsn)),
                (Err(refusal), routed) => (Err(refusal), routed.session_now()),
            },
        };
        let charge = match &result {
            Ok(outcomes) => outcomes.iter().map(|(_, charge)| *charge).sum(),
            Err(refusal) => refusal.charge,
        };
        let receipt = |(outcome, charge)| StepReceipt { outcome, charge };
        let result = result.map(|outcomes| outcomes.into_iter().map(receipt).collect());
        Ok(BatchReceipt { session, charge, result })
    }

    /// Performs independent operations; each succeeds or fails separately. Operations whose returned documents would
    /// exceed the size limit of an answer are not started.
    pub async fn bulk(
        &self,
        operations: Vec<WritePass<'_>>,
        returned: Returned,
        after_refusal: AfterRefusal,
    ) -> BulkReceipt {
        let mut receipt = BulkReceipt { sessions: Vec::new(), results: Vec::with_capacity(operations.len()) };
        let together_max = match after_refusal {
            AfterRefusal::Continue => BULK_IN_PARALLEL_MAX,
            AfterRefusal::Stop => 1,
        };
        let mut waiting = operations.into_iter().peekable();
        let mut bytes = 0;
        // Small documents are returned with high parallelism, large ones with low parallelism.
        let mut large_max = BULK_LARGE_IN_PARALLEL_MAX;
        while waiting.peek().is_some() {
            let mut group = Vec::new();
            let mut large = 0;
            while group.len() < together_max && large < large_max {
                let Some(pass) = waiting.next() else { break };
                let may_be_large = brings_back_more(&pass.keyed.operation, returned);
                large += usize::from(may_be_large);
                let is_begun = !may_be_large || bytes <= BATCH_ANSWER_BYTES_MAX;
                group.push(self.bulk_step(pass, is_begun.then_some(()).ok_or(bytes)));
            }
            let group = join_all(group).await;
            let sizes = group.iter().flatten().map(|(receipt, _)| returned.bytes(&receipt.outcome));
            let largest = sizes.clone().max().unwrap_or(0).max(1);
            bytes += sizes.sum::<usize>();
            let room = BATCH_ANSWER_BYTES_MAX.saturating_sub(bytes);
            large_max = (room / largest).clamp(1, BULK_IN_PARALLEL_MAX);
            let is_refused = group.iter().any(Result::is_err);
            group.into_iter().for_each(|step| receipt.add(step));
            if is_refused && after_refusal == AfterRefusal::Stop {
                break;
            }
        }
        receipt
    }

    async fn bulk_step(
        &self,
        pass: WritePass<'_>,
        room: Result<(), usize>,
    ) -> Result<(StepReceipt, SessionToken), RefusedDocument> {
        let limit = BATCH_ANSWER_BYTES_MAX;
        room.map_err(|bytes| LimitFault::AnswerBytes { bytes, limit })?;
        let DocumentReceipt { outcome, session, charge } = self.write(pass).await?;
        Ok((StepReceipt { outcome, charge }, session))
    }

    /// Deletes all documents of a logical partition in steps; documents written meanwhile may stay.
    pub async fn delete_logical_partition(&self, pass: LogicalPartitionPass<'_>) -> Result<Charge, Fault> {
        let LogicalPartitionPass { container, key, priority } = pass;
        let key = self.logical_key(container, key)?;
        self.admit_at(container, &key.effective, priority)?;
        let prefix = keyspace::logical_prefix(container.number(), &key);
        let mut range = keyspace::logical_range(&prefix);
        let mut charge = Charge::MINIMUM;
        loop {
            let scan = RecordScan {
                range: range.clone(),
                items_max: DELETE_AT_A_TIME,
                bytes_max: DELETE_BYTES_AT_A_TIME,
            };
            let (page, ..) = self.page_at(container, &[], &scan).await?;
            let numbers: Vec<_> = page.documents.iter().map(|stored| stored.number).collect();
            charge += self.delete_all(container, &key, &numbers).await?;
            match page.resume_after {
                Some(last) => range = keyspace::after(&range, &last),
                None => return Ok(charge),
            }
        }
    }
}

impl Engine {
    /// Deletes documents of one logical partition in one commit, or one by one if some were deleted meanwhile.
    async fn delete_all(
        &self,
        container: &Container,
        key: &LogicalKey,
        numbers: &[DocumentNumber],
    ) -> Result<Charge, Fault> {
        match self.delete_together(container, key, numbers).await {
            Err(Fault::Missing(_)) => {}
            result => return result,
        }
        let mut charge = Charge::NONE;
        for number in numbers {
            match self.delete_together(container, key, &[*number]).await {
                Ok(one) => charge += one,
                Err(Fault::Missing(_)) => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(charge)
    }

    async fn delete_together(
        &self,
        container: &Container,
        key: &LogicalKey,
        numbers: &[DocumentNumber],
    ) -> Result<Charge, Fault> {
        let delete = |number: &DocumentNumber| {
            DocumentOperation::Write(Mutation::Delete {
                target: Target::Number(*number),
                condition: Condition::None,
            })
        };
        let operations = numbers.iter().map(delete).collect();
        let (executed, _) = self.execute_at(container, key.clone(), operations, Returned::All).await?;
        let executed = executed.map_err(|refusal| refusal.fault)?;
        Ok(executed.outcomes.iter().map(|(_, charge)| *charge).sum())
    }
}

/// Whether a step may return a document that was not in the request.
fn brings_back_more(operation: &DocumentOperation, returned: Returned) -> bool {
    match operation {
        DocumentOperation::Read { .. } => true,
        DocumentOperation::Write(Mutation::Patch { .. } | Mutation::Merge { .. }) => {
            returned == Returned::All
        }
        DocumentOperation::Write(
            Mutation::Create { .. }
            | Mutation::Upsert { .. }
            | Mutation::Replace { .. }
            | Mutation::Delete { .. }
            | Mutation::Expire { .. }
            | Mutation::Reschedule { .. },
        ) => false,
    }
}

impl<'a> Keyed<'a> {
    /// Determines the key on which request and document agree; either may omit it.
    pub fn new(
        container: &'a Container,
        given: Option<PartitionKey>,
        operation: DocumentOperation,
    ) -> Result<Keyed<'a>, RequestFault> {
        let key = agreed_key(container, given, &operation)?;
        Ok(Keyed { container, key, operation })
    }

    /// An operation of a transaction with this key.
    pub(crate) fn in_transaction(
        container: &'a Container,
        key: &PartitionKey,
        operation: DocumentOperation,
    ) -> Result<Keyed<'a>, RequestFault> {
        match agreed_key(container, Some(key.clone()), &operation) {
            Ok(key) => Ok(Keyed { container, key, operation }),
            Err(RequestFault::PartitionKeyMismatch) => {
                let given = agreed_key(container, None, &operation)?;
                Err(RequestFault::OutsideTransaction { own: key.clone(), given })
            }
            Err(fault) => Err(fault),
        }
    }

    pub(crate) fn into_parts(self) -> (&'a Container, PartitionKey, DocumentOperation) {
        (self.container, self.key, self.operation)
    }

    pub(crate) fn container(&self) -> &'a Container {
        self.container
    }

    /// The action that must be authorised.
    pub(crate) fn action(&self) -> Action {
        Action::of_step(&self.operation)
    }

    /// What is affected: a new document may have any id of the key, others are named.
    pub(crate) fn reach(&self) -> Reach<'_> {
        match &self.operation {
            DocumentOperation::Write(
                Mutation::Create { .. } | Mutation::Upsert { .. } | Mutation::Merge { .. },
            ) => Reach::LogicalPartition(&self.key),
            DocumentOperation::Read { target, .. }
            | DocumentOperation::Write(
                Mutation::Replace { target, .. }
                | Mutation::Patch { target, .. }
                | Mutation::Delete { target, .. },
            ) => Reach::Document { key: Some(&self.key), target },
            DocumentOperation::Write(Mutation::Expire { .. } | Mutation::Reschedule { .. }) => Reach::Whole,
        }
    }

    /// The key.
    pub(crate) fn key(&self) -> &PartitionKey {
        &self.key
    }
}

fn agreed_key(
    container: &Container,
    given: Option<PartitionKey>,
    operation: &DocumentOperation,
) -> Result<PartitionKey, RequestFault> {
    let item = match operation {
        DocumentOperation::Write(
            Mutation::Create { item, .. } | Mutation::Upsert { item, .. } | Mutation::Replace { item, .. },
        ) => item,
        // The members of a merge need not contain the key; the partition compares the result.
        DocumentOperation::Write(Mutation::Merge { item, .. }) if given.is_none() => item,
        DocumentOperation::Write(
            Mutation::Merge { .. }
            | Mutation::Patch { .. }
            | Mutation::Delete { .. }
            | Mutation::Expire { .. }
            | Mutation::Reschedule { .. },
        )
        | DocumentOperation::Read { .. } => return given.ok_or(RequestFault::PartitionKeyRequired),
    };
    let extracted = container.definition().partition_key.extract(item.document())?;
    match given {
        Some(given) if given != extracted => Err(RequestFault::PartitionKeyMismatch),
        Some(_) | None => Ok(extracted),
    }
}

fn no_outcome() -> Fault {
    Fault::Internal("a transaction of one step has no outcome".to_owned())
}
