//! Messages from the server to a worker.

use super::Malformed;
use super::bytes::{Fields, PutFields};
use super::operations;
use crate::{Call, Clock, Function, FunctionBatch, Links, Quota, Replies, Role, TriggerOperation};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

const RUN: u8 = 1;
const EVALUATE: u8 = 2;
const CHECK: u8 = 3;
const REPLIES: u8 = 4;
const STOP: u8 = 5;

/// What a call may use of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allowance {
    pub(crate) time: Duration,
    pub(crate) memory_bytes: u64,
}

/// A message that a worker receives.
#[derive(Debug)]
pub(crate) enum ToWorker {
    Run { allowance: Allowance, call: Call },
    Evaluate { allowance: Allowance, batch: FunctionBatch },
    Check { allowance: Allowance, source: Arc<str> },
    Replies(Replies),
    Stop,
}

pub(crate) fn put_run(out: &mut Vec<u8>, allowance: Allowance, call: &Call) {
    out.put_u8(RUN);
    put_allowance(out, allowance);
    out.put_bytes(call.name.as_bytes());
    out.put_bytes(call.source.as_bytes());
    put_role(out, &call.role);
    out.put_bytes(call.links.self_link.as_bytes());
    out.put_bytes(call.links.alt_link.as_bytes());
    put_clock(out, call.clock);
    out.put_u64(call.seed);
    out.put_bool(call.logs);
    out.put_bytes(call.quota.max.as_bytes());
    out.put_bytes(call.quota.usage.as_bytes());
    out.put_bool(call.needs_own_runtime);
}

pub(crate) fn put_evaluate(out: &mut Vec<u8>, allowance: Allowance, batch: &FunctionBatch) {
    out.put_u8(EVALUATE);
    put_allowance(out, allowance);
    out.put_u32(u32::try_from(batch.functions.len()).unwrap_or(u32::MAX));
    for function in &batch.functions {
        out.put_bytes(function.name.as_bytes());
        out.put_bytes(function.source.as_bytes());
    }
    put_clock(out, batch.clock);
    out.put_u64(batch.seed);
    out.put_bool(batch.needs_own_runtimes);
    out.put_u32(batch.count);
    out.extend_from_slice(&batch.calls);
}

pub(crate) fn put_check(out: &mut Vec<u8>, allowance: Allowance, source: &str) {
    out.put_u8(CHECK);
    put_allowance(out, allowance);
    out.put_bytes(source.as_bytes());
}

pub(crate) fn put_replies(out: &mut Vec<u8>, replies: &Replies) {
    out.put_u8(REPLIES);
    operations::put_replies(out, replies);
}

pub(crate) fn put_stop(out: &mut Vec<u8>) {
    out.put_u8(STOP);
}

/// Reads a message.
pub(crate) fn read(message: Bytes) -> Result<ToWorker, Malformed> {
    let mut fields = Fields::new(message);
    let message = match fields.u8()? {
        RUN => ToWorker::Run { allowance: allowance(&mut fields)?, call: call(&mut fields)? },
        EVALUATE => ToWorker::Evaluate { allowance: allowance(&mut fields)?, batch: batch(&mut fields)? },
        CHECK => ToWorker::Check { allowance: allowance(&mut fields)?, source: fields.text()?.into() },
        REPLIES => ToWorker::Replies(operations::replies(&mut fields)?),
        STOP => ToWorker::Stop,
        _ => return Err(Malformed),
    };
    fields.end()?;
    Ok(message)
}

fn put_allowance(out: &mut Vec<u8>, allowance: Allowance) {
    out.put_u64(u64::try_from(allowance.time.as_micros()).unwrap_or(u64::MAX));
    out.put_u64(allowance.memory_bytes);
}

fn allowance(fields: &mut Fields) -> Result<Allowance, Malformed> {
    Ok(Allowance { time: Duration::from_micros(fields.u64()?), memory_bytes: fields.u64()? })
}

fn call(fields: &mut Fields) -> Result<Call, Malformed> {
    Ok(Call {
        name: fields.text()?,
        source: fields.text()?.into(),
        role: role(fields)?,
        links: Links { self_link: fields.text()?, alt_link: fields.text()? },
        clock: clock(fields)?,
        seed: fields.u64()?,
        logs: fields.bool()?,
        quota: Quota { max: fields.text()?, usage: fields.text()? },
        needs_own_runtime: fields.bool()?,
    })
}

fn put_role(out: &mut Vec<u8>, role: &Role) {
    match role {
        Role::Procedure { parameters } => {
            out.put_u8(0);
            out.put_bytes(parameters);
        }
        Role::PreTrigger { operation, document } => {
            out.put_u8(1);
            put_trigger_operation(out, *operation);
            out.put_bytes(document);
        }
        Role::PostTrigger { operation, request, document } => {
            out.put_u8(2);
            put_trigger_operation(out, *operation);
            out.put_bytes(request);
            out.put_bytes(document);
        }
    }
}

fn role(fields: &mut Fields) -> Result<Role, Malformed> {
    Ok(match fields.u8()? {
        0 => Role::Procedure { parameters: fields.bytes()? },
        1 => Role::PreTrigger { operation: trigger_operation(fields)?, document: fields.bytes()? },
        2 => Role::PostTrigger {
            operation: trigger_operation(fields)?,
            request: fields.bytes()?,
            document: fields.bytes()?,
        },
        _ => return Err(Malformed),
    })
}

fn put_trigger_operation(out: &mut Vec<u8>, operation: TriggerOperation) {
    out.put_u8(match operation {
        TriggerOperation::Create => 0,
        TriggerOperation::Replace => 1,
        TriggerOperation::Upsert => 2,
        TriggerOperation::Delete => 3,
    });
}

fn trigger_operation(fields: &mut Fields) -> Result<TriggerOperation, Malformed> {
    match fields.u8()? {
        0 => Ok(TriggerOperation::Create),
        1 => Ok(TriggerOperation::Replace),
        2 => Ok(TriggerOperation::Upsert),
        3 => Ok(TriggerOperation::Delete),
        _ => Err(Malformed),
    }
}

fn put_clock(out: &mut Vec<u8>, clock: Clock) {
    let (is_running, ms) = match clock {
        Clock::Running { start_ms } => (true, start_ms),
        Clock::Fixed { at_ms } => (false, at_ms),
    };
    out.put_bool(is_running);
    out.put_u64(ms);
}

fn clock(fields: &mut Fields) -> Result<Clock, Malformed> {
    let is_running = fields.bool()?;
    let ms = fields.u64()?;
    Ok(if is_running { Clock::Running { start_ms: ms } } else { Clock::Fixed { at_ms: ms } })
}

fn batch(fields: &mut Fields) -> Result<FunctionBatch, Malformed> {
    let functions =
        fields.list(|fields| Ok(Function { name: fields.text()?, source: fields.text()?.into() }))?;
    let clock = clock(fields)?;
    let seed = fields.u64()?;
    let needs_own_runtimes = fields.bool()?;
    let count = fields.u32()?;
    let calls = fields.rest().into();
    Ok(FunctionBatch { functions, clock, seed, needs_own_runtimes, calls, ends: Vec::new(), count })
}
