//! Simulations, exhaustive faults, and tests of the checkers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod change_feed;
mod housekeeping;
mod planted_faults;
mod planted_histories;
mod planted_rows;
mod planted_splits;
mod planted_transactions;
mod queries;
mod recorded_histories;
mod refused;
mod seeds;
mod sweep;
mod sweep_housekeeping;

use partition::planted::{panic_after, spoil_after, stall_openings};
use sim::hooks::Hooks;

const HOOKS: Hooks = Hooks { panic_after, stall_openings, spoil_after };
