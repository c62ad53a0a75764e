//! Procedures and triggers: their calls, and the documents that they use.
//!
//! A script runs in one transaction of the engine. What it asks for arrives as JSON and texts of queries, and leaves as
//! JSON; `host` does to it what the operations of this API do to requests.

mod host;
mod triggers;

pub(crate) use host::ScriptHost;
pub(crate) use triggers::{Triggers, named_triggers, refuse_triggers};

use crate::operations::Call;
use crate::wire::links::{self, ContainerLinks};
use engine::script::{self, Links, Quota, Role};
use engine::{Container, Script, TransactionOptions};
use std::time::Duration;

/// Time of a transaction beyond that of its scripts, for beginning and committing it.
const TRANSACTION_TIME_EXTRA: Duration = Duration::from_secs(5);

/// A call of a script in a container.
pub(crate) fn script_call(
    call: &Call<'_>,
    container: &Container,
    script: &Script,
    role: Role,
    logs: bool,
) -> script::Call {
    let (clock, seed) = call.engine.script_chance();
    script::Call {
        name: script.id().to_owned(),
        source: script.definition().source(),
        role,
        links: Links {
            self_link: ContainerLinks::of(container).rid_path.clone(),
            alt_link: links::container_names(container),
        },
        clock,
        seed,
        logs,
        quota: Quota::default(),
    }
}

/// Options of a transaction with this number of scripts.
pub(crate) fn transaction_options(
    call: &Call<'_>,
    scripts: u32,
    session: Vec<model::SessionToken>,
) -> TransactionOptions {
    let time_max = call.engine.script_time() * scripts + TRANSACTION_TIME_EXTRA;
    TransactionOptions { time_max, session }
}
