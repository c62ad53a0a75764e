//! Lets transactions wait a moment for others that follow soon, so that they are committed as one batch.
//!
//! Scripts run one after the other, since workers leave a core to the server. Each would be committed alone, with a sync,
//! a head row, an index segment and a publication of its own. Only transactions that say that others follow wait, and
//! only if nothing else does: all others are gathered at once, and they with them.

use super::{Command, Writer};
use std::time::Duration;
use tokio::time::Instant;

/// How long a transaction waits for others. Timers have a resolution of a millisecond.
const COMPANY_WAIT: Duration = Duration::from_millis(1);
/// Transactions that wait for no more.
const COMPANY_ENOUGH: usize = 8;

impl Writer {
    /// Until when the backlog waits for others; `None` if it does not.
    pub(super) fn company_until(&mut self) -> Option<Instant> {
        let is_followed =
            |command: &Command| matches!(command, Command::Execute(execution) if execution.is_followed());
        let waits = self.in_flight.is_empty()
            && (1..COMPANY_ENOUGH).contains(&self.backlog.len())
            && self.backlog.iter().all(is_followed);
        self.company_until =
            waits.then(|| self.company_until.unwrap_or_else(|| Instant::now() + COMPANY_WAIT));
        self.company_until.filter(|until| Instant::now() < *until)
    }
}

/// Waits until a time; for ever without one.
pub(super) async fn wait(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}
