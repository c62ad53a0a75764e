//! Who may keep a worker busy, and who waits.
//!
//! There is one usual turn per worker that may be busy, so that one core is left to the server. Calls that wait for one
//! get it in rotation of their callers: first the caller with the fewest turns, then the one that was served least
//! recently, then the call that came first.
//!
//! With few cores a single slow script would hold up all others for its whole time. So a call that has waited for
//! [`EXTRA_AFTER`] may also take one of [`EXTRA_TURNS`] extra turns: its worker then shares the processor with the slow
//! one. All workers have the lowest priority, so this takes nothing from the server but memory, which the number of extra
//! turns bounds. A caller may not hold more extra turns than are left, so the slow scripts of one caller never take all.

use crate::ScriptFault;
use crate::functions::CallerId;
use crate::limits::{EXTRA_AFTER, EXTRA_TURNS, Limits};
use crate::metrics::PoolMetrics;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// The part of the places for waiting calls that one caller leaves to others.
const PLACES_FOR_OTHERS_PART: usize = 4;

/// The turns of a pool.
#[derive(Debug, Clone)]
pub(super) struct Turns {
    shared: Arc<Mutex<Shared>>,
}

/// The permission to keep a worker busy, until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct ScriptTurn {
    turns: Turns,
    caller: CallerId,
    kind: TurnKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TurnKind {
    Usual,
    Extra,
}

#[derive(Debug)]
struct Shared {
    usual_free: usize,
    extra_free: usize,
    waiting: Vec<Waiting>,
    /// Callers that wait or have turns.
    callers: HashMap<CallerId, Caller>,
    /// Numbers calls and turns in their order.
    numbers: u64,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    caller: CallerId,
    /// Whether it has waited long enough for an extra turn.
    is_long: bool,
    given: oneshot::Sender<ScriptTurn>,
}

#[derive(Debug, Default)]
struct Caller {
    waiting: usize,
    turns: usize,
    extra: usize,
    /// The number of its last turn.
    served: u64,
}

impl Turns {
    pub(super) fn new(limits: &Limits) -> Turns {
        Turns::of(limits.busy_max.max(1), EXTRA_TURNS)
    }

    fn of(usual_free: usize, extra_free: usize) -> Turns {
        let (waiting, callers) = (Vec::new(), HashMap::new());
        Turns {
            shared: Arc::new(Mutex::new(Shared { usual_free, extra_free, waiting, callers, numbers: 0 })),
        }
    }

    /// Waits for the permission to keep a worker busy.
    pub(super) async fn take(
        &self,
        caller: CallerId,
        limits: &Limits,
        metrics: &PoolMetrics,
    ) -> Result<ScriptTurn, ScriptFault> {
        if let Some(turn) = self.try_take(caller) {
            return Ok(turn);
        }
        let (place, mut given) = self.wait(caller, limits.waiting_max)?;
        metrics.waiting.inc();
        let _counted = Counted(metrics);
        let wait = async {
            match timeout(EXTRA_AFTER, &mut given).await {
                Ok(turn) => turn,
                Err(_) => {
                    place.is_long();
                    given.await
                }
            }
        };
        match timeout(limits.wait_max, wait).await {
            Ok(Ok(turn)) => Ok(turn),
            // A place that is held is not forgotten.
            Ok(Err(_)) | Err(_) => Err(ScriptFault::Busy),
        }
    }

    /// Calls that wait.
    pub(super) fn waiting_count(&self) -> usize {
        self.lock().waiting.len()
    }

    fn try_take(&self, caller: CallerId) -> Option<ScriptTurn> {
        let mut shared = self.lock();
        // Those that wait get a free turn at once, so nobody waits for this one.
        (shared.usual_free > 0).then(|| self.begin(&mut shared, caller, TurnKind::Usual))
    }

    /// Takes a place among the waiting calls.
    fn wait(
        &self,
        caller: CallerId,
        waiting_max: usize,
    ) -> Result<(Place<'_>, oneshot::Receiver<ScriptTurn>), ScriptFault> {
        let mut shared = self.lock();
        let own_max = waiting_max - waiting_max / PLACES_FOR_OTHERS_PART;
        let own = shared.callers.get(&caller).map_or(0, |caller| caller.waiting);
        if shared.waiting.len() >= waiting_max || own >= own_max {
            return Err(ScriptFault::Busy);
        }
        shared.numbers += 1;
        let number = shared.numbers;
        shared.callers.entry(caller).or_default().waiting += 1;
        let (given, receiver) = oneshot::channel();
        shared.waiting.push(Waiting { number, caller, is_long: false, given });
        Ok((Place { turns: self, number }, receiver))
    }

    fn begin(&self, shared: &mut Shared, caller: CallerId, kind: TurnKind) -> ScriptTurn {
        shared.numbers += 1;
        let number = shared.numbers;
        let entry = shared.callers.entry(caller).or_default();
        entry.turns += 1;
        entry.served = number;
        match kind {
            TurnKind::Usual => shared.usual_free -= 1,
            TurnKind::Extra => {
                entry.extra += 1;
                shared.extra_free -= 1;
            }
        }
        ScriptTurn { turns: self.clone(), caller, kind }
    }

    /// Gives free turns to waiting calls.
    fn hand_out(&self) {
        loop {
            let mut shared = self.lock();
            let Some((position, kind)) = shared.next() else { return };
            let waiting = shared.remove(position);
            let turn = self.begin(&mut shared, waiting.caller, kind);
            // A call that is gone drops its turn, which needs the lock.
            drop(shared);
            let _ = waiting.given.send(turn);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// The waiting call that gets the next turn, and which kind; `None` if no turn is free for any.
    fn next(&self) -> Option<(usize, TurnKind)> {
        let kind = if self.usual_free > 0 { TurnKind::Usual } else { TurnKind::Extra };
        let may_have = |waiting: &Waiting| match kind {
            TurnKind::Usual => true,
            TurnKind::Extra => waiting.is_long && self.caller(waiting).extra < self.extra_free,
        };
        let open = self.waiting.iter().enumerate().filter(|(_, waiting)| may_have(waiting));
        let first = open.min_by_key(|(_, waiting)| {
            let caller = self.caller(waiting);
            (caller.turns, caller.served, waiting.number)
        });
        first.map(|(position, _)| (position, kind))
    }

    fn caller(&self, waiting: &Waiting) -> &Caller {
        const NONE: &Caller = &Caller { waiting: 0, turns: 0, extra: 0, served: 0 };
        self.callers.get(&waiting.caller).unwrap_or(NONE)
    }

    fn remove(&mut self, position: usize) -> Waiting {
        let waiting = self.waiting.swap_remove(position);
        if let Some(caller) = self.callers.get_mut(&waiting.caller) {
            caller.waiting -= 1;
        }
        waiting
    }

    /// Forgets a caller that has nothing.
    fn forget(&mut self, caller: CallerId) {
        if self.callers.get(&caller).is_some_and(|caller| caller.waiting == 0 && caller.turns == 0) {
            self.callers.remove(&caller);
        }
    }
}

impl Drop for ScriptTurn {
    fn drop(&mut self) {
        {
            let mut shared = self.turns.lock();
            let is_extra = self.kind == TurnKind::Extra;
            if let Some(caller) = shared.callers.get_mut(&self.caller) {
                caller.turns -= 1;
                caller.extra -= usize::from(is_extra);
            }
            match self.kind {
                TurnKind::Usual => shared.usual_free += 1,
                TurnKind::Extra => shared.extra_free += 1,
            }
            shared.forget(self.caller);
        }
        self.turns.hand_out();
    }
}

/// A place among the waiting calls.
struct Place<'a> {
    turns: &'a Turns,
    number: u64,
}

impl Place<'_> {
    /// The call has waited for long enough for an extra turn.
    fn is_long(&self) {
        let mut shared = self.turns.lock();
        if let Some(waiting) = shared.waiting.iter_mut().find(|waiting| waiting.number == self.number) {
            waiting.is_long = true;
        }
        drop(shared);
        self.turns.hand_out();
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut shared = self.turns.lock();
        let position = shared.waiting.iter().position(|waiting| waiting.number == self.number);
        if let Some(position) = position {
            let waiting = shared.remove(position);
            shared.forget(waiting.caller);
        }
    }
}

struct Counted<'a>(&'a PoolMetrics);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.waiting.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: usize = 100;
    const SLOW: CallerId = CallerId(1);
    const OTHER: CallerId = CallerId(2);

    type Given = oneshot::Receiver<ScriptTurn>;

    fn taken(given: &mut Given) -> Option<CallerId> {
        given.try_recv().ok().map(|turn| {
            let caller = turn.caller;
            std::mem::forget(turn);
            caller
        })
    }

    #[test]
    fn free_turns_go_round_the_callers() {
        let turns = Turns::of(1, 0);
        let mut turn = turns.try_take(SLOW);
        assert!(turn.is_some() && turns.try_take(OTHER).is_none());
        let callers = [SLOW, SLOW, SLOW, OTHER, OTHER, CallerId(3)];
        let mut places: Vec<_> = callers.iter().map(|caller| turns.wait(*caller, MANY).unwrap()).collect();
        let mut order = Vec::new();
        while let Some(ended) = turn.take() {
            drop(ended);
            turn = places.iter_mut().find_map(|(_, given)| given.try_recv().ok());
            order.extend(turn.as_ref().map(|turn| turn.caller));
        }
        assert_eq!(order, [OTHER, CallerId(3), SLOW, OTHER, SLOW, SLOW]);
        drop(places);
        let shared = turns.lock();
        assert!(shared.callers.is_empty() && shared.waiting.is_empty());
        assert_eq!((shared.usual_free, shared.extra_free), (1, 0));
    }

    #[test]
    fn slow_scripts_of_one_caller_leave_an_extra_turn() {
        let turns = Turns::of(1, EXTRA_TURNS);
        let _first = turns.try_take(SLOW).unwrap();
        let mut slow: Vec<_> = (0..16).map(|_| turns.wait(SLOW, MANY).unwrap()).collect();
        for (place, _) in &slow {
            place.is_long();
        }
        let given = slow.iter_mut().filter_map(|(_, given)| taken(given)).count();
        assert_eq!(given, EXTRA_TURNS - 1);
        // No extra turn for a call that has just come.
        let (place, mut given) = turns.wait(OTHER, MANY).unwrap();
        assert_eq!(taken(&mut given), None);
        place.is_long();
        assert_eq!(taken(&mut given), Some(OTHER));
    }

    #[test]
    fn calls_of_one_caller_leave_places() {
        let turns = Turns::of(1, 0);
        let _first = turns.try_take(SLOW).unwrap();
        let slow: Vec<_> = (0..3).map(|_| turns.wait(SLOW, 4).unwrap()).collect();
        assert!(turns.wait(SLOW, 4).is_err());
        let other = turns.wait(OTHER, 4).unwrap();
        assert!(turns.wait(OTHER, 4).is_err());
        // A call that gives up leaves its place.
        drop(slow);
        let _again = turns.wait(OTHER, 4).unwrap();
        drop(other);
    }

    #[test]
    fn a_call_that_is_gone_passes_its_turn_on() {
        let turns = Turns::of(1, 0);
        let first = turns.try_take(SLOW);
        let (_place, gone) = turns.wait(SLOW, MANY).unwrap();
        let (_other, mut given) = turns.wait(SLOW, MANY).unwrap();
        drop(gone);
        drop(first);
        assert_eq!(taken(&mut given), Some(SLOW));
    }
}
