//! Running procedures and triggers.

use super::{ScriptPlace, script_caller, worker_fault};
use crate::authorisation::{Principal, TransactionPass};
use crate::catalog::{Container, Script};
use crate::engine::Engine;
use model::{Fault, ScriptKind};
use script::{Call, CallFault, Clock, Finished, Host, ScriptFault, ScriptTurn};
use std::sync::Arc;
use std::time::Duration;

/// A script that was not executed, or did not end normally. Nothing of it is committed.
#[derive(Clone, Debug, PartialEq)]
pub enum ScriptRefusal {
    /// The script is at fault.
    Script(ScriptFault),
    /// The database.
    Fault(Fault),
    /// The worker ended in the middle of the script, by itself or killed by somebody else. The script can be run again.
    WorkerLost {
        /// How it ended.
        cause: String,
    },
    /// The script has to be run again with [`Call::needs_own_runtime`].
    Again,
    /// Scripts are not executed, by the options of the engine.
    NotExecuted,
}

impl From<Fault> for ScriptRefusal {
    fn from(fault: Fault) -> ScriptRefusal {
        ScriptRefusal::Fault(fault)
    }
}

impl ScriptRefusal {
    fn of(fault: ScriptFault) -> ScriptRefusal {
        if let ScriptFault::Crashed { cause } = fault {
            return ScriptRefusal::WorkerLost { cause };
        }
        match worker_fault(fault) {
            Ok(fault) => ScriptRefusal::Fault(fault),
            Err(fault) => ScriptRefusal::Script(fault),
        }
    }
}

impl Engine {
    /// Whether scripts are executed.
    pub fn executes_scripts(&self) -> bool {
        self.workers().is_some()
    }

    /// The time that one script may take.
    pub fn script_time(&self) -> Duration {
        self.workers().map_or(Duration::ZERO, |workers| workers.limits().time)
    }

    /// The current definition of a trigger. Who may write documents may name triggers.
    pub fn find_trigger(&self, container: &Container, name: &str) -> Option<Arc<Script>> {
        self.script_named(container, ScriptKind::Trigger, name)
    }

    /// What a script reads as time, and the seed of its random numbers.
    pub fn script_chance(&self) -> (Clock, u64) {
        let mut seed = [0; 8];
        self.ambient.fill_random(&mut seed);
        (Clock::Running { start_ms: self.ambient.now_ms() }, u64::from_le_bytes(seed))
    }

    /// Waits until a script may run. It is called before the transaction of the script begins: a state that waits in a
    /// queue is outdated when its script runs, and a lock would make others wait for that queue.
    /// Principals wait in rotation, and so do the containers of one: applications often share an account key.
    pub async fn script_turn(
        &self,
        principal: &Principal,
        container: &Container,
    ) -> Result<ScriptTurn, ScriptRefusal> {
        let Some(workers) = self.workers() else { return Err(ScriptRefusal::NotExecuted) };
        workers.turn(script_caller(principal, Some(container))).await.map_err(ScriptRefusal::of)
    }

    /// Waits until scripts on the same logical partition that came before have been committed, for a short time at most.
    /// The place is held until the transaction of the script has ended.
    pub async fn script_place(&self, pass: &TransactionPass<'_>) -> ScriptPlace<'_> {
        self.script_order.take(pass).await
    }

    /// Runs a procedure or trigger, whose operations `host` executes. The transaction of the host is to be rolled back
    /// unless it ends normally.
    pub async fn run_script<H: Host<Fault = Fault>>(
        &self,
        turn: &ScriptTurn,
        call: &Call,
        host: &mut H,
    ) -> Result<Finished, ScriptRefusal> {
        let Some(workers) = self.workers() else { return Err(ScriptRefusal::NotExecuted) };
        workers.run_in(turn, call, host).await.map_err(|fault| match fault {
            CallFault::Script(fault) => ScriptRefusal::of(fault),
            CallFault::Host(fault) => ScriptRefusal::Fault(fault),
            CallFault::Again => ScriptRefusal::Again,
        })
    }

    /// Checks that the text of a script is a function. Nothing of it is executed.
    pub async fn check_script(&self, principal: &Principal, source: &str) -> Result<(), ScriptRefusal> {
        let Some(workers) = self.workers() else { return Err(ScriptRefusal::NotExecuted) };
        workers.check(script_caller(principal, None), source).await.map_err(ScriptRefusal::of)
    }
}
