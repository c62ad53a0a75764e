//! Injected faults that show whether the simulation finds them. Compiled for tests only.
//!
//! A fault applies to the thread that planted it: a simulation runs on one thread.

use crate::keyspace::META;
use crate::state::Rows;
use bytes::Bytes;
use plan::Transaction;
use std::cell::{Cell, RefCell};

/// A fault to inject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedFault {
    /// The job that rewrites expiry rows sets the definition that it found when its round started.
    OldDefinitionReturns,
    /// Runs of an abandoned index build stay in the store.
    UnnamedRunsStay,
    /// Trimming leaves the entries of replaced versions in the log.
    ReplacedEntriesStay,
    /// A partition whose writer has panicked is not opened again.
    PanickedStaysStopped,
    /// Dropping a container does not wait for a partition that is being opened, and a writer does not require
    /// ownership. Each of these checks alone would find such a writer.
    OpeningIsMissed,
    /// A document that cannot be swept ends the sweep.
    PoisonEndsSweep,
    /// The log entries that ancestors of a partition have left are not read.
    AncestorsAreForgotten,
    /// A split does not mask the documents of the sibling.
    SiblingIsNotMasked,
    /// A query that continues after a split does not read the second child.
    ChildIsNotQueried,
    /// A query that continues after a split starts again.
    PositionIsForgotten,
    /// Readers of changes do not get the last change of some transactions.
    ChangesAreMissed,
    /// Readers of changes get some transactions again.
    ChangesAreRepeated,
    /// A draft is committed whatever others have written since it began.
    DraftsAreNotValidated,
    /// Writes before the table of last writes was created do not count.
    FloorIsForgotten,
}

thread_local! {
    static PLANTED: Cell<Option<PlantedFault>> = const { Cell::new(None) };
    /// Additional scheduler turns of an opening.
    static STALL: Cell<u64> = const { Cell::new(0) };
    /// The name of the job that panics.
    static PANIC_IN_JOB: Cell<Option<&'static str>> = const { Cell::new(None) };
    /// Transactions until a writer panics.
    static PANIC_IN: Cell<Option<u64>> = const { Cell::new(None) };
    /// Transactions until one is corrupted.
    static SPOIL_IN: Cell<Option<u64>> = const { Cell::new(None) };
    /// The corrupted transaction, whenever it runs.
    static SPOILED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Corrupts a transaction: after `transactions` others on this thread, the next one writes a row that the store
/// refuses, each time it runs. Another call ends that.
pub fn spoil_after(transactions: u64) {
    SPOIL_IN.set(Some(transactions));
    SPOILED.set(None);
}

/// Adds a row with an empty key if `transaction` is the corrupted one.
pub(crate) fn spoil(transaction: &Transaction, rows: &mut Rows) {
    if rows.is_empty() {
        return;
    }
    let left = SPOIL_IN.get();
    SPOIL_IN.set(left.and_then(|left| left.checked_sub(1)));
    if left == Some(0) {
        SPOILED.set(Some(format!("{transaction:?}")));
    }
    let is_spoiled =
        |text: &Option<String>| text.as_ref().is_some_and(|text| *text == format!("{transaction:?}"));
    if SPOILED.with_borrow(is_spoiled) {
        rows.insert((META, Bytes::new()), None);
    }
}

/// Makes the next job of this name on this thread panic once.
pub fn panic_in_job(name: &'static str) {
    PANIC_IN_JOB.set(Some(name));
}

/// Panics if a panic was planted for this job.
pub fn panic_if_job_is(name: &str) {
    if PANIC_IN_JOB.get() == Some(name) {
        PANIC_IN_JOB.set(None);
        panic!("planted panic");
    }
}

/// Makes a writer on this thread panic once, when it evaluates the transaction after `transactions` others.
pub fn panic_after(transactions: u64) {
    PANIC_IN.set(Some(transactions));
}

/// Delays each opening of a partition on this thread by `turns` turns of the scheduler.
pub fn stall_openings(turns: u64) {
    STALL.set(turns);
}

/// Waits for the planted number of turns.
pub(crate) async fn stall_opening() {
    for _ in 0..STALL.get() {
        tokio::task::yield_now().await;
    }
}

/// Waits in a split for the planted number of turns, after it is prepared.
pub async fn stall_split() {
    stall_opening().await;
}

/// Panics if a panic was planted and is due.
pub(crate) fn panic_if_due() {
    let left = PANIC_IN.get();
    PANIC_IN.set(left.and_then(|left| left.checked_sub(1)));
    assert!(left != Some(0), "planted panic");
}

/// Removes the fault when dropped.
#[derive(Debug)]
pub struct Guard(());

/// Plants a fault for this thread.
#[must_use]
pub fn plant(fault: PlantedFault) -> Guard {
    PLANTED.set(Some(fault));
    Guard(())
}

impl Drop for Guard {
    fn drop(&mut self) {
        PLANTED.set(None);
    }
}

/// Whether a fault is planted.
pub fn is_planted(fault: PlantedFault) -> bool {
    PLANTED.get() == Some(fault)
}
