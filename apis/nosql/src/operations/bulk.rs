//! `POST …/docs` with a bulk: independent steps in one request, each with its own key and status.
//!
//! If the request says that an error ends the bulk, the steps behind a refused one are not performed.

use super::Call;
use super::document::{header_key, implied_key};
use super::scope::range_id;
use super::steps::{self, RawStep, StepWriter};
use crate::faults::{NosqlFault, Refusal, WireFault};
use crate::route::ContainerPath;
use crate::scripts::refuse_triggers;
use crate::wire::reply::Reply;
use crate::wire::{headers, key_header, names};
use engine::{Action, AfterRefusal, BulkReceipt, Container, Keyed, StepReceipt, WritePass};
use http::StatusCode;
use model::limits::BATCH_ANSWER_BYTES_MAX;
use model::{Charge, EffectiveRange, Fault, LimitFault, MissingFault, PartitionKey, PartitionOrdinal};
use plan::{DocumentOperation, Mutation, Outcome};

pub(super) async fn perform(call: &Call<'_>, path: ContainerPath<'_>) -> Result<Reply, Refusal> {
    let container = call.owner(path, Action::ReadDocument).map_err(without_reason)?.resource;
    refuse_triggers(call, "a bulk")?;
    let ordinal = range_id(call.headers(), &container)?;
    let range = ordinal.map(|ordinal| range(call, &container, ordinal)).transpose()?;
    let shared_key = header_key(call, &container)?;
    let steps = steps::parse(&call.body)?;
    let mut prepared = Vec::with_capacity(steps.len());
    for step in &steps {
        prepared.push(prepare(call, &container, step, shared_key.as_ref()));
    }
    if let (Some(ordinal), Some(range)) = (ordinal, &range) {
        check_range(&container, &prepared, ordinal, range)?;
    }
    let minimal = headers::prefers_minimal(call.headers())?;
    let after_refusal = after_refusal(call)?;
    // The engine gets the valid steps; refused steps keep their position in the answer.
    let (mut ready, refused): (Vec<_>, Vec<_>) = prepared.into_iter().map(split).unzip();
    if after_refusal == AfterRefusal::Stop {
        ready.truncate(refused.iter().position(Option::is_some).unwrap_or(ready.len()));
    }
    let ready = ready.into_iter().flatten().collect();
    let BulkReceipt { sessions, results } =
        call.engine.bulk(ready, steps::returned(minimal), after_refusal).await;
    let mut reply = answer(&container, &steps, minimal, refused, results, after_refusal);
    let sessions = match ordinal {
        Some(ordinal) => container.tokens_for_range(ordinal, sessions),
        None => sessions,
    };
    reply.sessions(&container, &sessions);
    if let Some(ordinal) = ordinal {
        reply.number(&names::PARTITION_KEY_RANGE_ID, ordinal.0);
    }
    Ok(reply)
}

/// Whether steps behind a refused one are performed: unless the request forbids it.
fn after_refusal(call: &Call<'_>) -> Result<AfterRefusal, WireFault> {
    let is_told = headers::text(call.headers(), &names::BATCH_CONTINUE_ON_ERROR)?.is_some();
    match is_told && !headers::flag(call.headers(), &names::BATCH_CONTINUE_ON_ERROR)? {
        true => Ok(AfterRefusal::Stop),
        false => Ok(AfterRefusal::Continue),
    }
}

/// The service does not say of a bulk that it is the container that is absent.
fn without_reason(mut refusal: Refusal) -> Refusal {
    if refusal.fault == NosqlFault::from(MissingFault::Owner) {
        refusal.fault = MissingFault::Resource.into();
    }
    refusal
}

fn split<T>(step: Result<T, NosqlFault>) -> (Option<T>, Option<NosqlFault>) {
    match step {
        Ok(prepared) => (Some(prepared), None),
        Err(fault) => (None, Some(fault)),
    }
}

fn prepare<'a>(
    call: &'a Call<'_>,
    container: &'a Container,
    step: &RawStep<'_>,
    shared: Option<&PartitionKey>,
) -> Result<WritePass<'a>, NosqlFault> {
    let own = step.partition_key.as_deref();
    let own = own.map(|text| key_header::parse(&container.definition().partition_key, text)).transpose()?;
    let operation = step.operation(container)?;
    // A document contains its key.
    let tells_key = matches!(
        operation,
        DocumentOperation::Write(
            Mutation::Create { .. } | Mutation::Upsert { .. } | Mutation::Replace { .. }
        )
    );
    let key = match own.or_else(|| shared.cloned()) {
        None if !tells_key => implied_key(container),
        key => key,
    };
    let keyed = Keyed::new(container, key, operation)?;
    Ok(call.engine.access().write_in_bulk(&call.principal, keyed)?)
}

/// The effective keys of the range that the request was sent to.
fn range(
    call: &Call<'_>,
    container: &Container,
    ordinal: PartitionOrdinal,
) -> Result<EffectiveRange, Refusal> {
    call.read_catalog(container).map(drop)?;
    Ok(container.range_of(ordinal)?)
}

/// A key outside the range means that the client's map is outdated: it must read the ranges and send the request again.
fn check_range(
    container: &Container,
    steps: &[Result<WritePass<'_>, NosqlFault>],
    ordinal: PartitionOrdinal,
    range: &EffectiveRange,
) -> Result<(), MissingFault> {
    let definition = &container.definition().partition_key;
    let keys = steps.iter().flatten().map(WritePass::key);
    let mut complete = keys.filter(|key| definition.is_complete(key));
    match complete.all(|key| range.contains(&definition.effective_key(key))) {
        true => Ok(()),
        false => Err(MissingFault::Range { id: ordinal.to_string() }),
    }
}

fn answer(
    container: &Container,
    steps: &[RawStep<'_>],
    minimal: bool,
    refused: Vec<Option<NosqlFault>>,
    done: Vec<Result<StepReceipt, Fault>>,
    after_refusal: AfterRefusal,
) -> Reply {
    let mut writer = StepWriter::new(container);
    let mut done = done.into_iter();
    let mut charge = Charge::NONE;
    let mut status = StatusCode::OK;
    let mut bytes = 0;
    for (step, fault) in steps.iter().zip(refused) {
        let is_stopped = after_refusal == AfterRefusal::Stop && status == StatusCode::MULTI_STATUS;
        let result = match fault {
            _ if is_stopped => None,
            None => done.next().map(|done| done.map_err(NosqlFault::Core)),
            Some(fault) => Some(Err(fault)),
        };
        match result {
            Some(Ok(receipt)) => {
                charge += receipt.charge;
                let minimal = minimal || step.prefers_minimal();
                bytes += steps::returned(minimal).bytes(&receipt.outcome);
                let fits = bytes <= BATCH_ANSWER_BYTES_MAX;
                match &receipt.outcome {
                    // Steps run concurrently, so some are done before the limit is reached.
                    Outcome::Read(_) if !fits => {
                        status = StatusCode::MULTI_STATUS;
                        writer.refused(
                            &LimitFault::AnswerBytes { bytes, limit: BATCH_ANSWER_BYTES_MAX }.into(),
                        );
                    }
                    // Written documents are returned without content then.
                    Outcome::Read(_)
                    | Outcome::Created(_)
                    | Outcome::Replaced(_)
                    | Outcome::Deleted
                    | Outcome::NotModified(_)
                    | Outcome::Nothing => writer.done(&receipt, minimal || !fits),
                }
            }
            Some(Err(fault)) => {
                charge += fault.charge();
                status = StatusCode::MULTI_STATUS;
                writer.refused(&fault);
            }
            None => writer.not_done(),
        }
    }
    Reply::json(status, charge, writer.finish())
}
