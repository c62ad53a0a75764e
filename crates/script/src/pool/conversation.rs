//! One call of a worker, from its first message to its last.

use super::process::{Broken, Frame, WorkerProcess};
use crate::limits::{KILL_GRACE, Limits};
use crate::wire::from_worker::{BatchEnd, Failure, FromWorker};
use crate::wire::to_worker;
use crate::{Finished, Host, Operation, ScriptFault};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use value::Value;

/// How a call ended that did not fail.
#[derive(Debug)]
pub(super) enum Ended {
    Finished(Finished),
    Evaluated { results: Vec<Option<Value>>, end: BatchEnd, bytes: usize },
    Checked,
}

/// Why a call failed.
#[derive(Debug)]
pub(super) enum Failed<F> {
    /// By the script; the worker waits for the next call.
    Script(ScriptFault),
    /// By the host; the worker waits for the next call.
    Host(F),
    /// By a runtime that was not its own; the worker waits for the next call.
    Again,
    /// The worker did not stop in time.
    Overdue,
    /// The worker has ended or is out of control.
    Lost,
}

impl<F> From<Broken> for Failed<F> {
    fn from(_: Broken) -> Failed<F> {
        Failed::Lost
    }
}

/// Sends a call and executes its operations until the worker has answered, for `time` and some more at most.
pub(super) async fn converse<H: Host>(
    worker: &mut WorkerProcess,
    call: &Frame,
    host: &mut H,
    limits: &Limits,
    time: Duration,
) -> Result<Ended, Failed<H::Fault>> {
    let deadline = Instant::now() + time;
    let exchange = exchange(worker, call, host, limits, deadline);
    timeout_at(deadline + KILL_GRACE, exchange).await.unwrap_or(Err(Failed::Overdue))
}

async fn exchange<H: Host>(
    worker: &mut WorkerProcess,
    call: &Frame,
    host: &mut H,
    limits: &Limits,
    deadline: Instant,
) -> Result<Ended, Failed<H::Fault>> {
    worker.send(call).await?;
    loop {
        match worker.receive().await? {
            FromWorker::Operate(operations) => {
                let replies = operate(host, operations, limits, deadline).await;
                let answer = match &replies {
                    Ok(frame) => frame,
                    Err(_) => &stop()?,
                };
                worker.send(answer).await?;
                replies?;
            }
            FromWorker::Finished(finished) => return Ok(Ended::Finished(finished)),
            FromWorker::Evaluated { results, end, bytes } => {
                return Ok(Ended::Evaluated { results, end, bytes });
            }
            FromWorker::Checked => return Ok(Ended::Checked),
            FromWorker::Failed { failure, log } => {
                host.failed(log);
                return Err(Failed::Script(fault(failure, limits)));
            }
            FromWorker::Again => return Err(Failed::Again),
            FromWorker::Ready { .. } => return Err(Failed::Lost),
        }
    }
}

/// Executes operations, within the time of the script.
async fn operate<H: Host>(
    host: &mut H,
    operations: Vec<Operation>,
    limits: &Limits,
    deadline: Instant,
) -> Result<Frame, Failed<H::Fault>> {
    let count = operations.len();
    match timeout_at(deadline, host.operate(operations)).await {
        Ok(Ok(replies)) => {
            let replied = replies.replies.len();
            assert!(
                (1..=count).contains(&replied),
                "a host replies to the first operations: {replied} of {count}"
            );
            Frame::new(|out| to_worker::put_replies(out, &replies)).map_err(Failed::Script)
        }
        Ok(Err(fault)) => Err(Failed::Host(fault)),
        Err(_) => Err(Failed::Script(ScriptFault::TimeExceeded { budget: limits.time })),
    }
}

fn stop<F>() -> Result<Frame, Failed<F>> {
    Frame::new(to_worker::put_stop).map_err(Failed::Script)
}

pub(super) fn fault(failure: Failure, limits: &Limits) -> ScriptFault {
    match failure {
        Failure::Syntax(fault) => ScriptFault::Syntax(fault),
        Failure::Thrown(thrown) => ScriptFault::Thrown(thrown),
        Failure::TimeExceeded => ScriptFault::TimeExceeded { budget: limits.time },
        Failure::MemoryExceeded => ScriptFault::MemoryExceeded { bytes_max: limits.memory_bytes },
        Failure::Result(fault) => ScriptFault::Result(fault),
    }
}
