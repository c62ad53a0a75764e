//! Execution of scripts: user-defined functions in queries, procedures and triggers in transactions.
//!
//! Scripts are executed by worker processes (`script`). Which definition is executed is decided when the request begins;
//! a changed definition takes effect for the next request.

mod functions;
mod order;
mod run;

pub(crate) use order::ScriptOrder;
pub use order::ScriptPlace;
pub use run::ScriptRefusal;

use crate::authorisation::Principal;
use crate::catalog::Container;
use crate::engine::Engine;
use foldhash::fast::FixedState;
use model::{Fault, LimitFault, StorageFault};
use script::{CallerId, Limits, ScriptFault, WorkerProgram, Workers};
use std::hash::BuildHasher as _;
use std::time::Duration;

/// Retry delay of a script for which no worker was free.
const BUSY_RETRY: Duration = Duration::from_secs(1);

/// Scripts that wait for a worker, for which commits may wait.
const FOLLOWERS_MIN: usize = 8;

/// How scripts are executed.
#[derive(Clone, Debug)]
pub struct ScriptOptions {
    /// The program of the worker processes.
    pub program: WorkerProgram,
    /// Time, memory and number of workers.
    pub limits: Limits,
}

impl ScriptOptions {
    pub(crate) fn workers(&self) -> Workers {
        Workers::new(self.program.clone(), self.limits)
    }
}

impl Engine {
    /// The workers, if scripts are executed.
    pub(crate) fn workers(&self) -> Option<&Workers> {
        self.workers.as_ref()
    }

    /// Whether so many scripts wait for a worker that the commits of those before them may wait for theirs: the time
    /// until the last of them has run is longer.
    pub(crate) fn awaits_scripts(&self) -> bool {
        self.workers().is_some_and(|workers| workers.waiting_count() >= FOLLOWERS_MIN)
    }
}

/// Who waits for a worker: a principal, and the container that it uses scripts of.
pub(crate) fn script_caller(principal: &Principal, container: Option<&Container>) -> CallerId {
    let container = container.map(Container::number);
    CallerId(FixedState::default().hash_one((principal.caller(), container)))
}

/// A fault of the workers, not of the script; `Err` returns one of the script.
pub(crate) fn worker_fault(fault: ScriptFault) -> Result<Fault, ScriptFault> {
    Ok(match fault {
        ScriptFault::Busy => {
            let retry_after_ms = u64::try_from(BUSY_RETRY.as_millis()).unwrap_or(u64::MAX);
            LimitFault::Overloaded { retry_after_ms }.into()
        }
        ScriptFault::Unavailable { cause } => StorageFault::Unavailable { cause }.into(),
        ScriptFault::Crashed { cause } => {
            StorageFault::Unavailable { cause: format!("a script worker ended: {cause}") }.into()
        }
        fault @ (ScriptFault::Syntax(_)
        | ScriptFault::Thrown(_)
        | ScriptFault::TimeExceeded { .. }
        | ScriptFault::MemoryExceeded { .. }
        | ScriptFault::Result(_)
        | ScriptFault::InputTooLarge { .. }) => return Err(fault),
    })
}
