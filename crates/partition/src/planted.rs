//! Faults put in on purpose, so that tests can see whether the simulation finds them. Compiled for tests only.
//!
//! A fault counts for the thread that planted it: a simulation runs on one thread.

use std::cell::Cell;

/// What is wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedFault {
    /// The job that writes expiry rows puts the definition in force that it found when its round began.
    OldDefinitionReturns,
    /// Runs of an index build that was given up stay in the store.
    UnnamedRunsStay,
    /// Trimming leaves the entries of replaced versions in the log.
    ReplacedEntriesStay,
}

thread_local! {
    static PLANTED: Cell<Option<PlantedFault>> = const { Cell::new(None) };
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
