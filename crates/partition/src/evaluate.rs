//! Evaluates the steps of a transaction: the rules of create, replace, upsert, merge, patch, delete and read.
//!
//! Knows nothing of batches, commits or the sender of the request.

use crate::filter;
use crate::index::term_count;
use crate::log::LogKind;
use crate::numbering::Identity;
use crate::record::Record;
use crate::staging::{Accepted, RecordState, Staging, StagingContext};
use crate::state::WriterState;
use bytes::Bytes;
use model::limits::{BATCH_ANSWER_BYTES_MAX, ITEM_BYTES_MAX};
use model::{
    AccessFault, ConflictFault, Fault, LimitFault, MissingFault, PartitionKey, PreconditionFault,
    RequestFault, Work,
};
use plan::{
    Condition, DocumentOperation, Item, LogicalKey, Mutation, Outcome, Rename, ResultCheck,
    SYSTEM_PROPERTIES, StepFault, Target, Transaction, WhenAbsent,
};
use value::{Document, PatchOperation};

/// Outcome and work of each step of an accepted transaction.
pub(crate) type Outcomes = Vec<(Outcome, Work)>;

/// Runs all steps of `transaction` on `state`. If one is refused, all are. `identities` has the numbers and ETags that
/// a draft has assigned to the steps; otherwise those after the head are assigned.
pub(crate) async fn evaluate(
    context: StagingContext<'_>,
    state: &WriterState,
    transaction: &Transaction,
    identities: Option<&[Identity]>,
) -> Result<(Accepted, Outcomes), StepFault> {
    #[cfg(feature = "planted-faults")]
    crate::planted::panic_if_due();
    let mut staging = Staging::new(context, state, &transaction.key);
    let mut outcomes = Vec::with_capacity(transaction.operations.len());
    let mut returned_bytes = 0;
    for (index, operation) in transaction.operations.iter().enumerate() {
        if let Some(identity) = identities.and_then(|identities| identities.get(index)) {
            staging.assign_after(*identity);
        }
        let done = step(&mut staging, &transaction.key.partition_key, operation).await;
        let bounded = done.and_then(|(outcome, work)| {
            staging.check_bounds()?;
            returned_bytes += transaction.returned.bytes(&outcome);
            check_returned(returned_bytes)?;
            Ok((outcome, work))
        });
        match bounded {
            Ok(outcome) => outcomes.push(outcome),
            Err(fault) => {
                return Err(StepFault { index, fault, work: Work::Lookup });
            }
        }
    }
    #[cfg_attr(not(feature = "planted-faults"), expect(unused_mut, reason = "only planted faults change it"))]
    let mut accepted = staging.accept();
    #[cfg(feature = "planted-faults")]
    crate::planted::spoil(transaction, &mut accepted.rows);
    Ok((accepted, outcomes))
}

/// Runs one step of a draft on `state`.
pub(crate) async fn evaluate_step(
    context: StagingContext<'_>,
    state: &WriterState,
    key: &LogicalKey,
    operation: &DocumentOperation,
) -> Result<(Accepted, Outcome, Work), Fault> {
    let mut staging = Staging::new(context, state, key);
    let (outcome, work) = step(&mut staging, &key.partition_key, operation).await?;
    staging.check_bounds()?;
    Ok((staging.accept(), outcome, work))
}

/// Refuses a transaction whose answer would exceed the limit.
fn check_returned(bytes: usize) -> Result<(), LimitFault> {
    if bytes > BATCH_ANSWER_BYTES_MAX {
        return Err(LimitFault::AnswerBytes { bytes, limit: BATCH_ANSWER_BYTES_MAX });
    }
    Ok(())
}

async fn step(
    staging: &mut Staging<'_>,
    partition_key: &PartitionKey,
    operation: &DocumentOperation,
) -> Result<(Outcome, Work), Fault> {
    match operation {
        DocumentOperation::Read { target, condition } => read(staging, target, condition).await,
        DocumentOperation::Write(Mutation::Create { item }) => create(staging, item).await,
        DocumentOperation::Write(Mutation::Upsert { item, condition }) => {
            upsert(staging, item, condition).await
        }
        DocumentOperation::Write(Mutation::Replace { target, item, condition, rename }) => {
            replace(staging, target, item, condition, *rename).await
        }
        DocumentOperation::Write(Mutation::Merge { item, condition, absent, check }) => {
            merge(staging, partition_key, item, condition, (*absent, *check)).await
        }
        DocumentOperation::Write(Mutation::Patch { target, operations, condition, filter }) => {
            let (key, old) = existing(staging, target).await?;
            require(condition, &old)?;
            filter::check(filter.as_ref(), &old, staging.context.ambient)?;
            let item = patched(staging, partition_key, &old, operations)?;
            replaced(staging, key, &old, &item).await
        }
        DocumentOperation::Write(Mutation::Delete { target, condition }) => {
            delete(staging, target, condition).await
        }
        DocumentOperation::Write(Mutation::Expire { number, second }) => {
            expire(staging, *number, *second).await
        }
        DocumentOperation::Write(Mutation::Reschedule { number }) => reschedule(staging, *number).await,
    }
}

/// A create is refused if the id exists, whatever its condition: the service answers "conflict".
async fn create(staging: &mut Staging<'_>, item: &Item) -> Result<(Outcome, Work), Fault> {
    let key = staging.record_key(item.id().into())?;
    match staging.find(&key).await? {
        RecordState::Live(_) => Err(ConflictFault::Id.into()),
        RecordState::Expired(record) => created(staging, key, item, Some(record)).await,
        RecordState::Absent => created(staging, key, item, None).await,
    }
}

async fn upsert(
    staging: &mut Staging<'_>,
    item: &Item,
    condition: &Condition,
) -> Result<(Outcome, Work), Fault> {
    let key = staging.record_key(item.id().into())?;
    match staging.find(&key).await? {
        RecordState::Live(old) => {
            require(condition, &old)?;
            replaced(staging, key, &old, item).await
        }
        RecordState::Expired(_) | RecordState::Absent if *condition == Condition::IfExists => {
            Err(PreconditionFault::Absent.into())
        }
        RecordState::Expired(record) => created(staging, key, item, Some(record)).await,
        RecordState::Absent => created(staging, key, item, None).await,
    }
}

async fn merge(
    staging: &mut Staging<'_>,
    partition_key: &PartitionKey,
    item: &Item,
    condition: &Condition,
    (absent, check): (WhenAbsent, Option<ResultCheck>),
) -> Result<(Outcome, Work), Fault> {
    let key = staging.record_key(item.id().into())?;
    let expired = match staging.find(&key).await? {
        RecordState::Live(old) => {
            require(condition, &old)?;
            let members: Vec<_> = item.document().root().members().collect();
            // Merging the members of two documents does not nest them deeper than either.
            let merged =
                old.document.extended(&members).map_err(|error| Fault::Internal(error.to_string()))?;
            check.map_or(Ok(()), |check| check(&merged))?;
            return replaced(staging, key, &old, &changed_item(staging, partition_key, merged)?).await;
        }
        RecordState::Expired(record) => Some(record),
        RecordState::Absent => None,
    };
    match absent {
        WhenAbsent::Refuse => Err(MissingFault::Resource.into()),
        WhenAbsent::Create
            if staging.context.shape.partition_key.extract(item.document())? != *partition_key =>
        {
            Err(RequestFault::PartitionKeyMismatch.into())
        }
        WhenAbsent::Create => created(staging, key, item, expired).await,
    }
}

async fn replace(
    staging: &mut Staging<'_>,
    target: &Target,
    item: &Item,
    condition: &Condition,
    rename: Rename,
) -> Result<(Outcome, Work), Fault> {
    let (key, old) = existing(staging, target).await?;
    require(condition, &old)?;
    let to = staging.record_key(item.id().into())?;
    if to == key {
        return replaced(staging, key, &old, item).await;
    }
    match rename {
        Rename::Allowed => renamed(staging, key, to, &old, item).await,
        Rename::Refused => Err(AccessFault::NotPermitted { needed: "giving an item another id" }.into()),
    }
}

/// Gives the document another id. It keeps its number, and with it its RID and its position in every order.
async fn renamed(
    staging: &mut Staging<'_>,
    from: Bytes,
    to: Bytes,
    old: &Record,
    item: &Item,
) -> Result<(Outcome, Work), Fault> {
    let expired = match staging.find(&to).await? {
        RecordState::Live(_) => return Err(ConflictFault::Id.into()),
        RecordState::Expired(record) => Some(record),
        RecordState::Absent => None,
    };
    let record = staging.rename(from, to, old, item, expired).await?;
    let work = replace_work(staging, old, &record);
    Ok((Outcome::Replaced(record.into_stored()), work))
}

/// The patched document. The id and the system properties must not change.
fn patched(
    staging: &Staging<'_>,
    partition_key: &PartitionKey,
    old: &Record,
    operations: &[PatchOperation],
) -> Result<Item, Fault> {
    for operation in operations {
        for property in changed_properties(operation) {
            if property == "id" || SYSTEM_PROPERTIES.contains(&property) {
                return Err(RequestFault::ImmutableProperty { property: property.to_owned() }.into());
            }
        }
    }
    let document = value::apply(&old.document, operations).map_err(|error| RequestFault::BadPatch {
        index: error.operation_index,
        path: error.path.to_string(),
        cause: error.cause,
    })?;
    changed_item(staging, partition_key, document)
}

/// The new version of a partially changed document. Its partition key must not change.
fn changed_item(
    staging: &Staging<'_>,
    partition_key: &PartitionKey,
    document: Document,
) -> Result<Item, Fault> {
    let definition = &staging.context.shape.partition_key;
    if definition.extract(&document)? != *partition_key {
        let property = definition.paths().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        return Err(RequestFault::ImmutableProperty { property }.into());
    }
    let mut text = Vec::new();
    document.root().write_json(&mut text);
    if text.len() > ITEM_BYTES_MAX {
        return Err(LimitFault::TooLarge { bytes: text.len(), limit: ITEM_BYTES_MAX }.into());
    }
    Ok(Item::new(document)?)
}

/// The top-level properties that `operation` changes or whose descendants it changes.
fn changed_properties(operation: &PatchOperation) -> impl Iterator<Item = &str> {
    let (path, from) = match operation {
        PatchOperation::Add { path, .. }
        | PatchOperation::Set { path, .. }
        | PatchOperation::Replace { path, .. }
        | PatchOperation::Remove { path }
        | PatchOperation::Increment { path, .. } => (path, None),
        PatchOperation::Move { from, path } => (path, Some(from)),
    };
    from.into_iter().chain([path]).filter_map(|pointer| pointer.steps().next())
}

async fn delete(
    staging: &mut Staging<'_>,
    target: &Target,
    condition: &Condition,
) -> Result<(Outcome, Work), Fault> {
    let (key, old) = existing(staging, target).await?;
    require(condition, &old)?;
    staging.remove(&key, &old, LogKind::Delete { key: key.clone() })?;
    let work = Work::Delete { bytes: old.document.bytes().len(), terms: terms(staging, &old) };
    Ok((Outcome::Deleted, work))
}

/// The sweep found an expiry row. The document is deleted if it has expired; a stale row is deleted.
async fn expire(
    staging: &mut Staging<'_>,
    number: model::DocumentNumber,
    second: u64,
) -> Result<(Outcome, Work), Fault> {
    if second > staging.context.now.seconds() {
        return Ok((Outcome::Nothing, Work::Free));
    }
    staging.unschedule(second, number);
    let Some(key) = staging.any_key_of(number).await? else {
        return Ok((Outcome::Nothing, Work::Free));
    };
    match staging.find(&key).await? {
        RecordState::Expired(record) => {
            staging.enter_partition_of(&record)?;
            staging.remove(&key, &record, LogKind::Expire { key: key.clone() })?;
            Ok((Outcome::Deleted, Work::Free))
        }
        RecordState::Live(record) => {
            staging.enter_partition_of(&record)?;
            staging.reschedule(&record);
            Ok((Outcome::Nothing, Work::Free))
        }
        RecordState::Absent => Ok((Outcome::Nothing, Work::Free)),
    }
}

async fn reschedule(
    staging: &mut Staging<'_>,
    number: model::DocumentNumber,
) -> Result<(Outcome, Work), Fault> {
    if let Some(key) = staging.any_key_of(number).await?
        && let RecordState::Live(record) | RecordState::Expired(record) = staging.find(&key).await?
    {
        staging.enter_partition_of(&record)?;
        staging.reschedule(&record);
    }
    Ok((Outcome::Nothing, Work::Free))
}

async fn read(
    staging: &Staging<'_>,
    target: &Target,
    condition: &Condition,
) -> Result<(Outcome, Work), Fault> {
    let (_, record) = existing(staging, target).await?;
    let outcome = read_outcome(record, condition)?;
    let work = match &outcome {
        Outcome::Read(stored) => Work::Read { bytes: stored.document.bytes().len() },
        Outcome::Created(_)
        | Outcome::Replaced(_)
        | Outcome::Deleted
        | Outcome::NotModified(_)
        | Outcome::Nothing => Work::Lookup,
    };
    Ok((outcome, work))
}

/// Refuses a version that violates a condition.
fn require(condition: &Condition, record: &Record) -> Result<(), PreconditionFault> {
    condition.check(record.etag(), record.time, Some(record.document.root()))
}

/// The outcome of reading `record` under `condition`.
pub(crate) fn read_outcome(record: Record, condition: &Condition) -> Result<Outcome, Fault> {
    match condition {
        Condition::IfNoneMatch(etag) if *etag == record.etag().to_string() => {
            Ok(Outcome::NotModified(record.etag()))
        }
        Condition::IfAbsent => Ok(Outcome::NotModified(record.etag())),
        Condition::None
        | Condition::IfMatch(_)
        | Condition::IfExists
        | Condition::IfNoneMatch(_)
        | Condition::IfWrittenAt(_)
        | Condition::IfText { .. } => {
            require(condition, &record)?;
            Ok(Outcome::Read(record.into_stored()))
        }
    }
}

async fn created(
    staging: &mut Staging<'_>,
    key: Bytes,
    item: &Item,
    expired: Option<Record>,
) -> Result<(Outcome, Work), Fault> {
    let record = staging.insert(key, item, expired).await?;
    let work = Work::Create { bytes: record.document.bytes().len(), terms: terms(staging, &record) };
    Ok((Outcome::Created(record.into_stored()), work))
}

async fn replaced(
    staging: &mut Staging<'_>,
    key: Bytes,
    old: &Record,
    item: &Item,
) -> Result<(Outcome, Work), Fault> {
    let record = staging.replace(key, old, item).await?;
    let work = replace_work(staging, old, &record);
    Ok((Outcome::Replaced(record.into_stored()), work))
}

fn replace_work(staging: &Staging<'_>, old: &Record, new: &Record) -> Work {
    Work::Replace {
        old_bytes: old.document.bytes().len(),
        new_bytes: new.document.bytes().len(),
        terms: terms(staging, old) + terms(staging, new),
    }
}

/// The number of values of a version that the current policy indexes.
fn terms(staging: &Staging<'_>, record: &Record) -> u32 {
    term_count(&staging.context.shape.rules, &record.document)
}

/// The live document that `target` names.
async fn existing(staging: &Staging<'_>, target: &Target) -> Result<(Bytes, Record), Fault> {
    let key = match target {
        Target::Id(id) => Some(staging.record_key(id.as_str().into())?),
        Target::Number(number) => staging.key_of(*number).await?,
    };
    let Some(key) = key else {
        return Err(MissingFault::Resource.into());
    };
    match staging.find(&key).await? {
        RecordState::Live(record) => Ok((key, record)),
        RecordState::Expired(_) | RecordState::Absent => Err(MissingFault::Resource.into()),
    }
}
