//! The script of a faulty store: which calls fail, and how. Shared with the test that controls it.
//!
//! Knows no backend. The same script with the same calls fails at the same places.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::faulty::DurableImage;
use crate::store::Store;

/// Longest time that a call hangs if it is not released.
const STALL_TIME_MAX: Duration = Duration::from_secs(60);

/// Kinds of calls that scripts distinguish.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StorageCall {
    /// A read of one or several rows, or of a range.
    Read,
    /// A commit of a group of batches, or a sync.
    Commit,
    /// An ingest.
    Ingest,
    /// A reopen of the engine.
    Reopen,
}

/// What happens to a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InjectedFault {
    /// The call fails before it has any effect.
    Fail,
    /// A commit reaches the disk, but its sync fails: after reopening all of its batches are there. Other calls
    /// fail as with [`InjectedFault::Fail`].
    FailSync,
    /// A commit reaches the disk in part: after reopening its first `survive` batches are there, each complete. Of an
    /// ingest, the first `survive` rows remain. Other calls fail as with [`InjectedFault::Fail`].
    Tear {
        /// Number of batches, or rows of an ingest, that reach the disk.
        survive: usize,
    },
    /// A read finds bytes that do not match their checksum. Other calls fail as with [`InjectedFault::Fail`].
    Damage,
    /// A reopen succeeds, but every commit that was not synced is lost, including acknowledged ones: the disk has
    /// dropped what it could not write. Only over memory; other calls, and those over a disk, fail as with
    /// [`InjectedFault::Fail`].
    DropUnsynced,
}

/// Which unsynced commits survive a crash. They are lost from the end, as from a journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Survivors {
    /// None of them.
    Synced,
    /// The first N batches.
    First(usize),
    /// A number drawn from the script's seed.
    Drawn,
    /// All of them, as when only the process ends.
    All,
}

/// A shared, seeded script. Clones are handles of the same one.
#[derive(Clone, Default)]
pub struct FaultScript {
    state: Arc<Mutex<ScriptState>>,
    released: Arc<Condvar>,
}

#[derive(Default)]
struct ScriptState {
    random: u64,
    call_count: u64,
    planned: HashMap<u64, InjectedFault>,
    next: Vec<(StorageCall, InjectedFault)>,
    faults_per_mille: u64,
    fault_count: u64,
    /// The kind of call that hangs.
    stall: Option<StorageCall>,
    /// The last call before the power fails.
    last_call: Option<u64>,
    /// Whether the disk is full, once the script controls that.
    disk_full: Option<bool>,
    image: Option<Arc<DurableImage>>,
}

impl FaultScript {
    /// A script without faults, to which some may be added. All random numbers follow from the seed.
    pub fn seeded(seed: u64) -> FaultScript {
        let script = FaultScript::default();
        script.lock().random = seed;
        script
    }

    /// Makes the n-th call from now on fail, whatever it is; the next one is number 1.
    pub fn fail_call(&self, number: u64, kind: InjectedFault) {
        let mut state = self.lock();
        let number = state.call_count + number;
        state.planned.insert(number, kind);
    }

    /// Makes the next call of a kind fail. Several faults for one kind apply to successive calls.
    pub fn fail_next(&self, call: StorageCall, kind: InjectedFault) {
        self.lock().next.push((call, kind));
    }

    /// Makes all calls after the next N fail, so that nothing more reaches the disk: the power fails there, and
    /// [`FaultScript::crash`] completes it.
    pub fn fail_power_after(&self, calls: u64) {
        let mut state = self.lock();
        state.last_call = Some(state.call_count + calls);
    }

    /// Whether the power has failed, so that a call has failed.
    pub fn has_lost_power(&self) -> bool {
        let state = self.lock();
        state.last_call.is_some_and(|last| state.call_count > last)
    }

    /// Makes calls fail at random from now on; 0 ends it.
    pub fn fail_randomly(&self, faults_per_mille: u64) {
        self.lock().faults_per_mille = faults_per_mille;
    }

    /// Makes the next call of a kind hang until [`FaultScript::release`], and fail then. For a store with a commit
    /// thread, which is the thread that hangs.
    pub fn stall_next(&self, call: StorageCall) {
        self.lock().stall = Some(call);
    }

    /// Releases a hanging call, or cancels the planned hang.
    pub fn release(&self) {
        self.lock().stall = None;
        self.released.notify_all();
    }

    /// Removes all planned and random faults, also of the power: from now on all calls succeed.
    pub fn clear_faults(&self) {
        let mut state = self.lock();
        state.planned.clear();
        state.next.clear();
        state.faults_per_mille = 0;
        state.last_call = None;
    }

    /// Makes the disk of the store nearly full, or frees space again. Not ended by [`FaultScript::clear_faults`].
    pub fn set_disk_full(&self, full: bool) {
        self.lock().disk_full = Some(full);
    }

    /// Number of calls so far.
    pub fn call_count(&self) -> u64 {
        self.lock().call_count
    }

    /// Number of injected faults so far.
    pub fn fault_count(&self) -> u64 {
        self.lock().fault_count
    }

    /// Ends the store that uses this script as a power failure would, and returns a new one, under the same script,
    /// with the durable rows and the surviving commits. The old store and its views are closed.
    ///
    /// `None` if no store in memory uses the script: what is durable on a real disk is not known.
    pub fn crash(&self, survivors: Survivors) -> Option<Store> {
        let image = self.lock().image.take()?;
        let unsynced = image.unsynced_count();
        let kept = match survivors {
            Survivors::Synced => 0,
            Survivors::First(count) => count.min(unsynced),
            Survivors::Drawn => self.draw(unsynced as u64 + 1),
            Survivors::All => unsynced,
        };
        Some(image.restart(kept, self))
    }

    /// Counts a call and returns the fault to inject.
    pub(crate) fn next_fault(&self, call: StorageCall) -> Option<InjectedFault> {
        let mut state = self.lock();
        state.call_count += 1;
        if state.stall == Some(call) {
            let stalls = |state: &mut ScriptState| state.stall == Some(call);
            let released = self.released.wait_timeout_while(state, STALL_TIME_MAX, stalls);
            released.unwrap_or_else(PoisonError::into_inner).0.fault_count += 1;
            return Some(InjectedFault::Fail);
        }
        let number = state.call_count;
        if state.last_call.is_some_and(|last| number > last) {
            state.fault_count += 1;
            return Some(InjectedFault::Fail);
        }
        let waiting = state.next.iter().position(|(next, _)| *next == call);
        let kind = match (state.planned.remove(&number), waiting) {
            (Some(kind), _) => Some(kind),
            (None, Some(position)) => Some(state.next.remove(position).1),
            (None, None) if state.faults_per_mille > 0 => state.random_fault(),
            (None, None) => None,
        };
        state.fault_count += u64::from(kind.is_some());
        kind
    }

    /// Whether the disk is full, if the script controls that.
    pub(crate) fn disk_full(&self) -> Option<bool> {
        self.lock().disk_full
    }

    pub(crate) fn watch(&self, image: Arc<DurableImage>) {
        self.lock().image = Some(image);
    }

    /// A random number below `bound`.
    fn draw(&self, bound: u64) -> usize {
        let drawn = self.lock().random() % bound;
        usize::try_from(drawn).unwrap_or(usize::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, ScriptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScriptState {
    fn random_fault(&mut self) -> Option<InjectedFault> {
        if self.random() % 1000 >= self.faults_per_mille {
            return None;
        }
        Some(match self.random() % 4 {
            0 => InjectedFault::Fail,
            1 => InjectedFault::FailSync,
            2 => InjectedFault::Damage,
            _ => InjectedFault::Tear { survive: usize::try_from(self.random() % 8).unwrap_or(0) },
        })
    }

    /// The next random number (SplitMix64).
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
