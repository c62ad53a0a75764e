//! The user-defined functions of a container, as queries call them.

use super::worker_fault;
use crate::catalog::Container;
use crate::engine::Engine;
use eval::{UserCall, UserFunctionFault};
use exec::{NoUserFunctions, PendingCalls, Program, UserFunctions};
use model::{Ambient, EvaluationFault, Fault, QueryFault, ScriptKind};
use script::{Clock, Evaluated, Function, FunctionBatch, ScriptFault, Turn, Workers};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use value::Value;

/// Calls of the first batch. Rows are called ahead of the query, which may not need them, so slow functions get small
/// batches.
const BATCH_CALLS_FIRST: usize = 16;
/// Most calls of a batch.
const BATCH_CALLS_MAX: usize = 2_048;
/// A batch that takes less is followed by a larger one; one that takes ten times as long, by a smaller one.
const BATCH_TIME: Duration = Duration::from_millis(50);

/// The functions that a query calls, as they were when its page began.
#[derive(Debug)]
struct ContainerFunctions {
    workers: Workers,
    functions: Vec<Function>,
    positions: HashMap<String, u16>,
    ambient: Arc<dyn Ambient>,
    turn: Turn,
    batch_calls: AtomicUsize,
}

impl Engine {
    /// The functions that a program calls. `turn` tells who waits for them.
    pub(crate) fn functions_of(
        &self,
        container: &Container,
        program: &Program,
        turn: Turn,
    ) -> Result<Arc<dyn UserFunctions>, Fault> {
        if !program.calls_functions() {
            return Ok(Arc::new(NoUserFunctions));
        }
        let refused = |name: &str, fault| {
            let name = name.to_owned();
            Fault::Query(QueryFault::Evaluation(EvaluationFault::UserFunction { name, fault }))
        };
        let (mut functions, mut positions) = (Vec::new(), HashMap::new());
        for name in program.user_functions() {
            let found = self.script_named(container, ScriptKind::UserDefinedFunction, &name);
            let found = found.ok_or_else(|| refused(&name, UserFunctionFault::NotFound))?;
            let position = u16::try_from(functions.len()).unwrap_or(u16::MAX);
            functions.push(Function { name: format!("{name}.js"), source: found.definition().source() });
            positions.insert(name, position);
        }
        let first = || positions.keys().next().map_or("", String::as_str);
        let workers = self.workers().ok_or_else(|| refused(first(), UserFunctionFault::NotExecuted))?;
        Ok(Arc::new(ContainerFunctions {
            workers: workers.clone(),
            functions,
            positions,
            ambient: Arc::clone(&self.ambient),
            turn,
            batch_calls: AtomicUsize::new(BATCH_CALLS_FIRST),
        }))
    }
}

impl UserFunctions for ContainerFunctions {
    fn call<'a>(&'a self, calls: &'a [UserCall]) -> PendingCalls<'a> {
        Box::pin(async move {
            let some = &calls[..calls.len().min(self.batch_calls.load(Ordering::Relaxed))];
            let begun = Instant::now();
            let evaluated = self.evaluate(some).await;
            let mut results: Vec<_> = evaluated.results.into_iter().map(Ok).collect();
            if let Some(fault) = evaluated.fault {
                let fault = match worker_fault(fault) {
                    Ok(fault) => return Err(fault),
                    Err(fault) => function_fault(&fault),
                };
                // The query ends at the row of the fault, so those of the calls after it are never read.
                results.resize_with(calls.len(), || Err(fault.clone()));
            }
            self.adapt(begun.elapsed());
            Ok(results)
        })
    }
}

impl ContainerFunctions {
    async fn evaluate(&self, calls: &[UserCall]) -> Evaluated {
        let mut seed = [0; 8];
        self.ambient.fill_random(&mut seed);
        let clock = Clock::Running { start_ms: self.ambient.now_ms() };
        let mut batch = FunctionBatch::new(self.functions.clone(), clock, u64::from_le_bytes(seed));
        for call in calls {
            let position = self.positions.get(&call.function).copied().unwrap_or(u16::MAX);
            batch.push(position, call.arguments.iter().map(|argument| argument.as_ref().map(Value::as_ref)));
        }
        self.workers.evaluate(&batch, self.turn).await
    }

    /// Chooses the size of the next batch.
    fn adapt(&self, took: Duration) {
        let calls = self.batch_calls.load(Ordering::Relaxed);
        let next = if took < BATCH_TIME {
            (calls * 2).min(BATCH_CALLS_MAX)
        } else if took > BATCH_TIME * 10 {
            (calls / 2).max(1)
        } else {
            calls
        };
        self.batch_calls.store(next, Ordering::Relaxed);
    }
}

fn function_fault(fault: &ScriptFault) -> UserFunctionFault {
    match fault {
        ScriptFault::Thrown(thrown) => {
            UserFunctionFault::Failed { message: thrown.text.clone(), stack: thrown.stack.clone() }
        }
        ScriptFault::Syntax(_)
        | ScriptFault::TimeExceeded { .. }
        | ScriptFault::MemoryExceeded { .. }
        | ScriptFault::Result(_)
        | ScriptFault::InputTooLarge { .. }
        | ScriptFault::Crashed { .. }
        | ScriptFault::Busy
        | ScriptFault::Unavailable { .. } => {
            UserFunctionFault::Failed { message: fault.to_string(), stack: String::new() }
        }
    }
}
