//! Faults put in on purpose, so that tests can see whether the simulation finds them. Compiled for tests only.
//!
//! A fault counts for the thread that planted it: a simulation runs on one thread.

use crate::keyspace::META;
use crate::state::Rows;
use bytes::Bytes;
use plan::Transaction;
use std::cell::{Cell, RefCell};

/// What is wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedFault {
    /// The job that writes expiry rows puts the definition in force that it found when its round began.
    OldDefinitionReturns,
    /// Runs of an index build that was given up stay in the store.
    UnnamedRunsStay,
    /// Trimming leaves the entries of replaced versions in the log.
    ReplacedEntriesStay,
    /// A partition whose writer has panicked is not opened again.
    PanickedStaysStopped,
    /// Dropping a container does not wait for a partition that is being opened, and a writer does not require that the
    /// partition is still its own: either is enough to find such a writer out.
    OpeningIsMissed,
    /// A document that cannot be swept ends the sweep.
    PoisonEndsSweep,
}

thread_local! {
    static PLANTED: Cell<Option<PlantedFault>> = const { Cell::new(None) };
    /// Turns that an opening takes longer.
    static STALL: Cell<u64> = const { Cell::new(0) };
    /// The job that panics.
    static PANIC_IN_JOB: Cell<Option<&'static str>> = const { Cell::new(None) };
    /// Transactions until a writer panics.
    static PANIC_IN: Cell<Option<u64>> = const { Cell::new(None) };
    /// Transactions until one is spoiled.
    static SPOIL_IN: Cell<Option<u64>> = const { Cell::new(None) };
    /// The transaction that is spoiled, whenever it runs.
    static SPOILED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Lets the transaction behind so many others on this thread write a row that the store refuses, as often as it runs.
/// Another call puts an end to it.
pub fn spoil_after(transactions: u64) {
    SPOIL_IN.set(Some(transactions));
    SPOILED.set(None);
}

/// Adds a row without a key if `transaction` is the one that is spoiled.
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

/// Lets the next job of this name on this thread panic once.
pub fn panic_in_job(name: &'static str) {
    PANIC_IN_JOB.set(Some(name));
}

/// Panics if it was planted for this job.
pub fn panic_if_job_is(name: &str) {
    if PANIC_IN_JOB.get() == Some(name) {
        PANIC_IN_JOB.set(None);
        panic!("planted panic");
    }
}

/// Lets a writer on this thread panic once, when it evaluates the transaction behind so many others.
pub fn panic_after(transactions: u64) {
    PANIC_IN.set(Some(transactions));
}

/// Lets the openings of partitions on this thread take so many turns of the scheduler longer.
pub fn stall_openings(turns: u64) {
    STALL.set(turns);
}

/// Waits as long as was planted.
pub(crate) async fn stall_opening() {
    for _ in 0..STALL.get() {
        tokio::task::yield_now().await;
    }
}

/// Panics if it was planted and is due.
pub(crate) fn panic_if_due() {
    let left = PANIC_IN.get();
    PANIC_IN.set(left.and_then(|left| left.checked_sub(1)));
    assert!(left != Some(0), "planted panic");
}

/// Takes the fault out again when dropped.
#[derive(Debug)]
pub struct Guard(());

/// Puts a fault in, for this thread.
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

/// Whether a fault is put in.
pub fn is_planted(fault: PlantedFault) -> bool {
    PLANTED.get() == Some(fault)
}
