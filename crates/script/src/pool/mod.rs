//! The pool of workers: started when needed, kept while they are used, killed when a script does not stop.

mod conversation;
mod process;
mod turns;

pub use process::WorkerProgram;
pub use turns::ScriptTurn;

use crate::functions::{CallerId, Evaluated, FunctionBatch, Turn};
use crate::limits::{BATCH_TIME_MAX, Limits, REPEATED_TIME_MAX, SOURCE_BYTES_MAX};
use crate::metrics::PoolMetrics;
use crate::wire::from_worker::{BatchEnd, Failure};
use crate::wire::to_worker::{self, Allowance};
use crate::{Call, CallFault, DocumentsUsed, Finished, Host, NoDocuments, ScriptFault};
use conversation::{Ended, Failed, converse, fault};
use process::{Frame, WorkerProcess};
use prometheus_client::registry::Registry;
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::time::Instant;
use turns::Turns;
use value::Value;

/// Calls after which a worker is replaced, so that nothing accumulates in it.
const CALLS_PER_WORKER: u32 = 10_000;

/// Bytes of results, and time, after which calls of functions are returned before the rest is made: whoever wants them
/// counts their memory and their time.
const EVALUATED_BYTES: usize = 4 << 20;
const EVALUATED_TIME: Duration = Duration::from_millis(500);

/// Why a worker is killed whose call has used up its memory.
const MEMORY_USED_UP: &str = "its script used up its memory";

/// Executes scripts in worker processes.
#[derive(Debug, Clone)]
pub struct Workers {
    pool: Arc<Pool>,
}

#[derive(Debug)]
struct Pool {
    program: WorkerProgram,
    limits: Limits,
    turns: Turns,
    idle: Mutex<Idle>,
    /// Whether it was logged that workers lack a part of their sandbox.
    has_reported: AtomicBool,
    metrics: PoolMetrics,
}

/// Workers without a call.
#[derive(Debug, Default)]
struct Idle {
    /// The one used last is at the end.
    waiting: Vec<Waiting>,
    /// Whether a task ends those that wait too long.
    is_watched: bool,
}

#[derive(Debug)]
struct Waiting {
    worker: WorkerProcess,
    since: Instant,
}

impl Workers {
    /// A pool without workers; the first call starts one. The calls must run on tokio runtimes with I/O and time, which
    /// live as long as the pool: a worker belongs to the runtime on which it was started.
    pub fn new(program: WorkerProgram, limits: Limits) -> Workers {
        Workers {
            pool: Arc::new(Pool {
                program,
                limits,
                turns: Turns::new(&limits),
                idle: Mutex::default(),
                has_reported: AtomicBool::new(false),
                metrics: PoolMetrics::default(),
            }),
        }
    }

    /// Executes a stored procedure or trigger. After a fault, whatever it is, the operations that `host` has executed
    /// are to be rolled back.
    pub async fn run<H: Host>(
        &self,
        caller: CallerId,
        call: &Call,
        host: &mut H,
    ) -> Result<Finished, CallFault<H::Fault>> {
        let turn = self.turn(caller).await?;
        self.run_in(&turn, call, host).await
    }

    /// Waits until a worker may be kept busy. A caller that holds locks or a state while its script runs takes its turn
    /// first.
    pub async fn turn(&self, caller: CallerId) -> Result<ScriptTurn, ScriptFault> {
        self.pool.turn(caller).await
    }

    /// The same as [`Workers::run`] in a turn that the caller has; one script at a time.
    pub async fn run_in<H: Host>(
        &self,
        _turn: &ScriptTurn,
        call: &Call,
        host: &mut H,
    ) -> Result<Finished, CallFault<H::Fault>> {
        self.recorded(async {
            check_size(&call.source)?;
            let frame = Frame::new(|out| to_worker::put_run(out, self.allowance(), call))?;
            match self.call(&frame, host, self.pool.limits.time).await? {
                Ended::Finished(finished) => Ok(finished),
                Ended::Evaluated { .. } | Ended::Checked => Err(wrong_answer().into()),
            }
        })
        .await
    }

    /// Calls user-defined functions, each with the time of a script for itself. If they are slow or their results large,
    /// returns the results of the first of them only, at least one.
    pub async fn evaluate(&self, batch: &FunctionBatch, turn: Turn) -> Evaluated {
        let begun = Instant::now();
        let mut results = Vec::with_capacity(batch.len());
        let mut rest = Cow::Borrowed(batch);
        let mut bytes = 0;
        while !rest.is_empty() {
            let (some, end, more_bytes) = match self.evaluate_some(&rest, turn).await {
                Ok(evaluated) => evaluated,
                Err(fault) => return Evaluated { results, fault: Some(fault) },
            };
            let done = some.len();
            results.extend(some);
            bytes += more_bytes;
            if let BatchEnd::Failed(failure) = end {
                return Evaluated { results, fault: Some(fault(failure, &self.pool.limits)) };
            }
            let is_enough = bytes >= EVALUATED_BYTES || begun.elapsed() >= EVALUATED_TIME;
            if done == rest.len() || is_enough && end == BatchEnd::Reached {
                break;
            }
            let mut later = rest.rest(done, begun.elapsed());
            later.needs_own_runtimes |= end == BatchEnd::Again;
            rest = Cow::Owned(later);
        }
        Evaluated { results, fault: None }
    }

    /// The results of the first calls of a batch, as many as a worker makes before others get their turn.
    async fn evaluate_some(
        &self,
        batch: &FunctionBatch,
        turn: Turn,
    ) -> Result<(Vec<Option<Value>>, BatchEnd, usize), ScriptFault> {
        let (limits, started) = (&self.pool.limits, Instant::now());
        let evaluated: Result<_, CallFault<DocumentsUsed>> = async {
            for function in &batch.functions {
                check_size(&function.source)?;
            }
            let frame = Frame::new(|out| to_worker::put_evaluate(out, self.allowance(), batch))?;
            let _turn = match turn {
                Turn::Own(caller) => Some(self.pool.turn(caller).await?),
                Turn::OfScript => None,
            };
            match self.call_pure(&frame, BATCH_TIME_MAX + REPEATED_TIME_MAX + limits.time).await? {
                Ended::Evaluated { results, end, bytes } if has_advanced(batch, &results, &end) => {
                    Ok((results, end, bytes))
                }
                Ended::Evaluated { .. } | Ended::Finished(_) | Ended::Checked => Err(wrong_answer().into()),
            }
        }
        .await;
        let recorded = match &evaluated {
            Ok((_, BatchEnd::Failed(failure), _)) => Err(fault(failure.clone(), limits).into()),
            Ok((_, BatchEnd::Reached | BatchEnd::Again, _)) => Ok(()),
            Err(fault) => Err(fault.clone()),
        };
        self.pool.metrics.record(&recorded, started.elapsed());
        evaluated.map_err(without_documents)
    }

    /// Checks that a text is a function that can be executed. The text is evaluated, its function is not called.
    pub async fn check(&self, caller: CallerId, source: &str) -> Result<(), ScriptFault> {
        let checked = self.recorded(async {
            check_size(source)?;
            let frame = Frame::new(|out| to_worker::put_check(out, self.allowance(), source))?;
            let _turn = self.pool.turn(caller).await?;
            match self.call_pure(&frame, self.pool.limits.time).await? {
                Ended::Checked => Ok(()),
                Ended::Evaluated { .. } | Ended::Finished(_) => Err(wrong_answer().into()),
            }
        });
        checked.await.map_err(without_documents)
    }

    /// Adds the metrics of this pool to a registry.
    pub fn register_metrics(&self, registry: &mut Registry) {
        self.pool.metrics.register(registry);
    }

    /// The limits of this pool.
    pub fn limits(&self) -> &Limits {
        &self.pool.limits
    }

    /// Calls that wait for permission to keep a worker busy.
    pub fn waiting_count(&self) -> usize {
        self.pool.turns.waiting_count()
    }

    /// Workers without a call.
    pub fn idle_count(&self) -> usize {
        self.pool.idle().waiting.len()
    }

    fn allowance(&self) -> Allowance {
        Allowance { time: self.pool.limits.time, memory_bytes: self.pool.limits.memory_bytes }
    }

    /// Counts a call and its time.
    async fn recorded<T, F>(
        &self,
        call: impl Future<Output = Result<T, CallFault<F>>>,
    ) -> Result<T, CallFault<F>> {
        let started = Instant::now();
        let result = call.await;
        self.pool.metrics.record(&result, started.elapsed());
        result
    }

    /// A call without operations. If its worker is lost, another one gets it, once: somebody may have killed the worker.
    async fn call_pure(&self, frame: &Frame, time: Duration) -> Result<Ended, CallFault<DocumentsUsed>> {
        match self.call(frame, &mut NoDocuments, time).await {
            Err(CallFault::Script(ScriptFault::Crashed { .. })) => {
                self.call(frame, &mut NoDocuments, time).await
            }
            ended => ended,
        }
    }

    /// Sends a call to a worker and sees it through, for about this time at most.
    async fn call<H: Host>(
        &self,
        frame: &Frame,
        host: &mut H,
        time: Duration,
    ) -> Result<Ended, CallFault<H::Fault>> {
        let limits = &self.pool.limits;
        let mut worker = self.pool.worker().await?;
        match converse(&mut worker, frame, host, limits, time).await {
            // The heap is torn down, but the process keeps what its allocator holds.
            Ok(ended @ Ended::Evaluated { end: BatchEnd::Failed(Failure::MemoryExceeded), .. }) => {
                worker.kill(MEMORY_USED_UP);
                Ok(ended)
            }
            Ok(ended) => {
                self.pool.keep(worker);
                Ok(ended)
            }
            Err(Failed::Script(fault @ ScriptFault::MemoryExceeded { .. })) => {
                worker.kill(MEMORY_USED_UP);
                Err(fault.into())
            }
            Err(Failed::Script(fault)) => {
                self.pool.keep(worker);
                Err(fault.into())
            }
            Err(Failed::Host(fault)) => {
                self.pool.keep(worker);
                Err(CallFault::Host(fault))
            }
            Err(Failed::Again) => {
                self.pool.keep(worker);
                Err(CallFault::Again)
            }
            Err(Failed::Overdue) => {
                self.pool.metrics.killed.inc();
                worker.kill("its script did not stop");
                Err(ScriptFault::TimeExceeded { budget: limits.time }.into())
            }
            Err(Failed::Lost) => {
                let cause = worker.end().await;
                tracing::warn!(
                    event = "script_worker_lost",
                    cause,
                    "a script worker ended in the middle of a call"
                );
                Err(ScriptFault::Crashed { cause }.into())
            }
        }
    }
}

impl Pool {
    /// Waits for the permission to keep a worker busy.
    async fn turn(&self, caller: CallerId) -> Result<ScriptTurn, ScriptFault> {
        self.turns.take(caller, &self.limits, &self.metrics).await
    }

    /// A worker that waits for a call: the one used last, whose memory is warm, or a new one.
    async fn worker(&self) -> Result<WorkerProcess, ScriptFault> {
        let idle = self.idle().waiting.pop();
        if let Some(idle) = idle {
            return Ok(idle.worker);
        }
        self.metrics.started.inc();
        let (worker, missing) = WorkerProcess::start(&self.program, self.limits.memory_bytes).await?;
        if !missing.is_empty() && !self.has_reported.swap(true, Ordering::Relaxed) {
            let missing = missing.join("; ");
            tracing::warn!(
                event = "script_sandbox_partial",
                missing,
                "script workers lack a part of their sandbox"
            );
        }
        Ok(worker)
    }

    /// Keeps a worker for the next call, unless it has done enough.
    fn keep(self: &Arc<Pool>, mut worker: WorkerProcess) {
        worker.calls += 1;
        if worker.calls >= CALLS_PER_WORKER {
            return;
        }
        let mut idle = self.idle();
        idle.waiting.push(Waiting { worker, since: Instant::now() });
        if !idle.is_watched {
            idle.is_watched = true;
            tokio::spawn(end_idle(Arc::downgrade(self), self.limits.idle));
        }
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends workers that had nothing to do for a while, until there is none without work.
async fn end_idle(pool: Weak<Pool>, idle_max: Duration) {
    loop {
        tokio::time::sleep(idle_max).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut idle = pool.idle();
        let now = Instant::now();
        idle.waiting.retain(|waiting| now.duration_since(waiting.since) < idle_max);
        if idle.waiting.is_empty() {
            idle.is_watched = false;
            return;
        }
    }
}

fn check_size(source: &str) -> Result<(), ScriptFault> {
    if source.len() > SOURCE_BYTES_MAX {
        return Err(ScriptFault::InputTooLarge { bytes: source.len() });
    }
    Ok(())
}

/// Whether an answer brings a batch closer to its end, so that it is not sent for ever.
fn has_advanced(batch: &FunctionBatch, results: &[Option<Value>], end: &BatchEnd) -> bool {
    match end {
        BatchEnd::Reached => (1..=batch.len()).contains(&results.len()),
        BatchEnd::Failed(_) => results.len() < batch.len(),
        BatchEnd::Again => results.len() < batch.len() && !batch.needs_own_runtimes,
    }
}

/// Checks and functions have no documents: a worker that asks for them is out of control.
fn without_documents(fault: CallFault<DocumentsUsed>) -> ScriptFault {
    match fault {
        CallFault::Script(fault) => fault,
        CallFault::Host(DocumentsUsed) | CallFault::Again => wrong_answer(),
    }
}

/// A worker has answered something else than it was asked.
fn wrong_answer() -> ScriptFault {
    ScriptFault::Crashed { cause: "wrong answer".to_owned() }
}
