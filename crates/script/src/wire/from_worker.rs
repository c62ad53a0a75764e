//! Messages from a worker to the server.

use super::Malformed;
use super::bytes::{Fields, PutFields};
use super::{operations, values};
use crate::limits::MESSAGE_OPERATIONS_MAX;
use crate::{Finished, Operation, ResultFault, SyntaxFault, Thrown};
use bytes::Bytes;
use value::Value;

const READY: u8 = 1;
const OPERATE: u8 = 2;
const FINISHED: u8 = 3;
const EVALUATED: u8 = 4;
const CHECKED: u8 = 5;
const FAILED: u8 = 6;
const AGAIN: u8 = 7;

/// A message that the server receives.
#[derive(Debug)]
pub(crate) enum FromWorker {
    /// The worker waits for calls. The texts say what of the sandbox is missing.
    Ready {
        missing: Vec<String>,
    },
    Operate(Vec<Operation>),
    Finished(Finished),
    /// The results of the first calls of a batch, and the length of the message.
    Evaluated {
        results: Vec<Option<Value>>,
        end: BatchEnd,
        bytes: usize,
    },
    Checked,
    /// The script needs a runtime of its own, and has already sent operations or used some of its time.
    Again,
    /// With what the script has logged until then.
    Failed {
        failure: Failure,
        log: String,
    },
}

/// Why the results of a batch end where they end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BatchEnd {
    /// All calls are done, or the batch has taken its time.
    Reached,
    /// The next call has failed.
    Failed(Failure),
    /// The next call needs a runtime of its own, and has already used some of its time.
    Again,
}

/// A fault as the worker sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    Syntax(SyntaxFault),
    Thrown(Thrown),
    TimeExceeded,
    MemoryExceeded,
    Result(ResultFault),
}

pub(crate) fn put_ready(out: &mut Vec<u8>, missing: &[String]) {
    out.put_u8(READY);
    out.put_u32(u32::try_from(missing.len()).unwrap_or(u32::MAX));
    for text in missing {
        out.put_bytes(text.as_bytes());
    }
}

pub(crate) fn put_operate(out: &mut Vec<u8>, operations: &[Operation]) {
    out.put_u8(OPERATE);
    out.put_u32(u32::try_from(operations.len()).unwrap_or(u32::MAX));
    for operation in operations {
        operations::put_operation(out, operation);
    }
}

pub(crate) fn put_finished(out: &mut Vec<u8>, finished: &Finished) {
    out.put_u8(FINISHED);
    out.put_optional(finished.body.as_deref());
    out.put_optional(finished.document.as_deref());
    out.put_bytes(finished.log.as_bytes());
}

/// Puts `count` encoded results of a batch.
pub(crate) fn put_evaluated(out: &mut Vec<u8>, count: u32, results: &[u8], end: &BatchEnd) {
    out.put_u8(EVALUATED);
    out.put_u32(count);
    out.extend_from_slice(results);
    match end {
        BatchEnd::Reached => out.put_u8(0),
        BatchEnd::Failed(failure) => {
            out.put_u8(1);
            put_failure(out, failure);
        }
        BatchEnd::Again => out.put_u8(2),
    }
}

pub(crate) fn put_checked(out: &mut Vec<u8>) {
    out.put_u8(CHECKED);
}

pub(crate) fn put_again(out: &mut Vec<u8>) {
    out.put_u8(AGAIN);
}

pub(crate) fn put_failed(out: &mut Vec<u8>, failure: &Failure, log: &str) {
    out.put_u8(FAILED);
    out.put_bytes(log.as_bytes());
    put_failure(out, failure);
}

fn put_failure(out: &mut Vec<u8>, failure: &Failure) {
    match failure {
        Failure::Syntax(fault) => {
            out.put_u8(0);
            out.put_bytes(fault.message.as_bytes());
            out.put_u32(fault.line);
            out.put_u32(fault.column);
        }
        Failure::Thrown(thrown) => {
            out.put_u8(1);
            out.put_optional(thrown.function.as_deref().map(str::as_bytes));
            out.put_bytes(thrown.text.as_bytes());
            out.put_bytes(thrown.message.as_bytes());
            out.put_bool(thrown.number.is_some());
            if let Some(number) = thrown.number {
                out.put_u32(number.cast_unsigned());
            }
            out.put_bytes(thrown.stack.as_bytes());
        }
        Failure::TimeExceeded => out.put_u8(2),
        Failure::MemoryExceeded => out.put_u8(3),
        Failure::Result(ResultFault::TooDeep { depth_max }) => {
            out.put_u8(4);
            out.put_u64(*depth_max as u64);
        }
        Failure::Result(ResultFault::TooLarge { bytes_max }) => {
            out.put_u8(5);
            out.put_u64(*bytes_max as u64);
        }
    }
}

/// Reads a message.
pub(crate) fn read(message: Bytes) -> Result<FromWorker, Malformed> {
    let bytes = message.len();
    let mut fields = Fields::new(message);
    let message = match fields.u8()? {
        READY => FromWorker::Ready { missing: fields.list(Fields::text)? },
        OPERATE => FromWorker::Operate(operations_of(&mut fields)?),
        FINISHED => FromWorker::Finished(Finished {
            body: fields.optional(Fields::text_bytes)?,
            document: fields.optional(Fields::text_bytes)?,
            log: fields.text()?,
        }),
        EVALUATED => {
            let results = fields.list(values::result)?;
            FromWorker::Evaluated { results, end: batch_end(&mut fields)?, bytes }
        }
        CHECKED => FromWorker::Checked,
        AGAIN => FromWorker::Again,
        FAILED => FromWorker::Failed { log: fields.text()?, failure: failure(&mut fields)? },
        _ => return Err(Malformed),
    };
    fields.end()?;
    Ok(message)
}

fn operations_of(fields: &mut Fields) -> Result<Vec<Operation>, Malformed> {
    let operations = fields.list(operations::operation)?;
    if operations.is_empty() || operations.len() > MESSAGE_OPERATIONS_MAX {
        return Err(Malformed);
    }
    Ok(operations)
}

fn batch_end(fields: &mut Fields) -> Result<BatchEnd, Malformed> {
    Ok(match fields.u8()? {
        0 => BatchEnd::Reached,
        1 => BatchEnd::Failed(failure(fields)?),
        2 => BatchEnd::Again,
        _ => return Err(Malformed),
    })
}

fn failure(fields: &mut Fields) -> Result<Failure, Malformed> {
    let size = |number: u64| usize::try_from(number).map_err(|_| Malformed);
    Ok(match fields.u8()? {
        0 => Failure::Syntax(SyntaxFault {
            message: fields.text()?,
            line: fields.u32()?,
            column: fields.u32()?,
        }),
        1 => Failure::Thrown(Thrown {
            function: fields.optional(Fields::text)?,
            text: fields.text()?,
            message: fields.text()?,
            number: fields.optional(Fields::u32)?.map(u32::cast_signed),
            stack: fields.text()?,
        }),
        2 => Failure::TimeExceeded,
        3 => Failure::MemoryExceeded,
        4 => Failure::Result(ResultFault::TooDeep { depth_max: size(fields.u64()?)? }),
        5 => Failure::Result(ResultFault::TooLarge { bytes_max: size(fields.u64()?)? }),
        _ => return Err(Malformed),
    })
}
