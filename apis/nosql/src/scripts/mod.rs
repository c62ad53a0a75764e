//! Procedures and triggers: their calls, and the documents that they use.
//!
//! A script runs in one transaction of the engine. What it asks for arrives as JSON and texts of queries, and leaves as
//! JSON; `host` does to it what the operations of this API do to requests.

mod host;
mod triggers;

pub(crate) use host::{ScriptHost, document_json};
pub(crate) use triggers::{Triggers, named_triggers, refuse_triggers};

use crate::faults::{NosqlFault, Refusal};
use crate::operations::{Call, quota, used};
use crate::wire::links::{self, ContainerLinks};
use crate::wire::reply::Reply;
use crate::wire::{names, percent};
use engine::script::{self, ContainerSize, Links, Quota, Role};
use engine::{
    Container, ContainerUsage, LockWhen, Script, ScriptRefusal, Transaction, TransactionOptions,
    TransactionPass,
};
use model::limits::PARTITION_BYTES_MAX;
use model::{Charge, Fault, ScriptDefinition, SessionToken};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Time of a transaction beyond that of its scripts, for beginning and committing it.
const TRANSACTION_TIME_EXTRA: Duration = Duration::from_secs(5);

/// Most bytes of a log in an answer, encoded: clients limit their headers.
const LOG_BYTES_MAX: usize = 4 * 1024;

/// What the runs of a transaction leave behind even if it fails: its answer has the charge and the log too.
#[derive(Debug, Default)]
pub(crate) struct Attempt {
    charge: AtomicU64,
    log: Mutex<String>,
    has_lost_worker: AtomicBool,
    needs_own_runtime: AtomicBool,
}

impl Attempt {
    /// Records how a run has ended. One that has lost its worker is run once more, since somebody may have killed the
    /// worker and nothing is committed. One that needs runtimes of its own starts over.
    pub(crate) fn record<T>(
        &self,
        transaction: &mut Transaction,
        log: String,
        run: Result<T, ScriptRefusal>,
    ) -> Result<T, NosqlFault> {
        self.record_charge(transaction.charge());
        *self.log.lock().unwrap_or_else(PoisonError::into_inner) = log;
        let is_lost = matches!(run, Err(ScriptRefusal::WorkerLost { .. }));
        if let Err(ScriptRefusal::Again) = run {
            self.needs_own_runtime.store(true, Ordering::Relaxed);
            transaction.start_over();
            self.record_charge(Charge::NONE);
        }
        if is_lost && !self.has_lost_worker.swap(true, Ordering::Relaxed) {
            transaction.run_again();
        }
        Ok(run?)
    }

    /// Whether the scripts of the next run need runtimes of their own.
    pub(crate) fn needs_own_runtime(&self) -> bool {
        self.needs_own_runtime.load(Ordering::Relaxed)
    }

    pub(crate) fn record_charge(&self, charge: Charge) {
        self.charge.store(charge.hundredths(), Ordering::Relaxed);
    }

    /// The refusal with at least this charge, and with the log if the client wants it.
    pub(crate) fn refusal(&self, fault: NosqlFault, logs: bool) -> Refusal {
        let refusal = Refusal::from(fault);
        let spent = Charge::from_hundredths(self.charge.load(Ordering::Relaxed));
        let log = logs.then(|| self.log.lock().unwrap_or_else(PoisonError::into_inner).as_str().into());
        Refusal { charge: refusal.charge.max(spent), log, ..refusal }
    }
}

/// Adds what scripts have logged, as far as it fits.
pub(crate) fn add_log(reply: &mut Reply, log: &str) {
    let mut encoded = String::new();
    for character in log.chars() {
        let piece = percent::strictly_encoded(character.encode_utf8(&mut [0; 4]));
        if encoded.len() + piece.len() > LOG_BYTES_MAX {
            break;
        }
        encoded.push_str(&piece);
    }
    reply.text(&names::SCRIPT_LOG, encoded);
}

/// Refuses a definition whose text is not a function, if scripts are executed at all.
pub(crate) async fn check_text(call: &Call<'_>, definition: &ScriptDefinition) -> Result<(), NosqlFault> {
    match call.engine.executes_scripts() {
        true => Ok(call.engine.check_script(&call.principal, definition.body()).await?),
        false => Ok(()),
    }
}

/// A part of each name under which scripts read the usage of their container.
const USAGE_NAMES: [&str; 2] = ["ResourceQuota", "CollectionSizeInMB"];

/// The usage of the container of scripts before they run. It is counted only for those that name it, since it is the sum
/// over all partitions.
pub(crate) async fn usage(
    call: &Call<'_>,
    pass: &TransactionPass<'_>,
    mut scripts: impl Iterator<Item = &Script>,
) -> Result<Option<ContainerUsage>, Fault> {
    let names_it = |script: &Script| USAGE_NAMES.iter().any(|name| script.definition().body().contains(name));
    match scripts.any(names_it) {
        true => call.engine.usage_around(pass).await.map(Some),
        false => Ok(None),
    }
}

/// The size of a container, as the callbacks of scripts get it.
fn container_size(usage: &ContainerUsage) -> ContainerSize {
    let bytes_max = PARTITION_BYTES_MAX.saturating_mul(usage.partitions as u64);
    #[expect(clippy::cast_precision_loss, reason = "scripts read megabytes as numbers")]
    let megabytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    ContainerSize { current_mb: megabytes(usage.document_bytes), max_mb: megabytes(bytes_max) }
}

/// A call of a script in a container.
pub(crate) fn script_call(
    call: &Call<'_>,
    container: &Container,
    script: &Script,
    role: Role,
    logs: bool,
    attempt: &Attempt,
    usage: Option<&ContainerUsage>,
) -> script::Call {
    let (clock, seed) = call.engine.script_chance();
    script::Call {
        // As the service names the file in stack traces.
        name: format!("{}.js", script.id()),
        source: script.definition().source(),
        role,
        links: Links {
            self_link: ContainerLinks::of(container).rid_path.clone(),
            alt_link: links::container_names(container),
        },
        clock,
        seed,
        logs,
        quota: usage.map_or_else(Quota::default, |usage| Quota { max: quota(usage), usage: used(usage) }),
        needs_own_runtime: attempt.needs_own_runtime(),
    }
}

/// Options of a transaction with this number of scripts.
pub(crate) fn transaction_options(
    call: &Call<'_>,
    scripts: u32,
    session: Vec<SessionToken>,
) -> TransactionOptions {
    let time_max = call.engine.script_time() * scripts + TRANSACTION_TIME_EXTRA;
    TransactionOptions { time_max, session, lock: LockWhen::Conflicts }
}
