//! Limits the work that runs concurrently outside the threads that serve requests: in total, and per caller.
//!
//! Work beyond the limit waits in a queue of limited length for a limited time; then it is refused. Of the waiting
//! callers, the one with the least running work and the least recently used time is admitted first, so a caller with
//! many requests does not starve the others. The kind of work is not known here.

use crate::authorisation::Caller;
use model::{Ambient, Fault, LimitFault};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// Time after which the used time of a caller counts half.
const HALF_LIFE_MS: u64 = 10_000;
/// Maximum number of idle callers that are remembered.
const IDLE_CALLERS_MAX: usize = 1024;
/// Retry delay for a query that was not started.
const RETRY_AFTER_MS: u64 = 1_000;

/// Limits of running and waiting work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionBounds {
    /// Maximum number of pieces of work that run concurrently.
    pub running_max: usize,
    /// The same for one caller.
    pub running_per_caller_max: usize,
    /// Maximum number of pieces of work that wait.
    pub waiting_max: usize,
    /// The same for one caller.
    pub waiting_per_caller_max: usize,
    /// Maximum waiting time in milliseconds.
    pub wait_ms: u64,
}

impl AdmissionBounds {
    /// Limits for this number of threads: each piece of work has its own thread, and one caller never has all of them.
    pub fn of_threads(threads: usize) -> AdmissionBounds {
        let running_max = threads.max(1);
        AdmissionBounds {
            running_max,
            running_per_caller_max: (running_max / 2).max(1),
            waiting_max: 1024,
            waiting_per_caller_max: 256,
            wait_ms: 10_000,
        }
    }
}

impl Default for AdmissionBounds {
    fn default() -> AdmissionBounds {
        AdmissionBounds::of_threads(8)
    }
}

/// Counts running and waiting work.
#[derive(Debug)]
pub(crate) struct Admission {
    bounds: AdmissionBounds,
    ambient: Arc<dyn Ambient>,
    state: Mutex<AdmissionState>,
}

#[derive(Debug, Default)]
struct AdmissionState {
    running: usize,
    callers: HashMap<Caller, Usage>,
    /// In the order of arrival.
    waiting: Vec<Waiting>,
    is_closed: bool,
}

/// Running and waiting work of one caller, and its used time.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    running: usize,
    waiting: usize,
    used_ms: u64,
    /// When the used time was last halved.
    halved_at_ms: u64,
}

#[derive(Debug)]
struct Waiting {
    caller: Caller,
    admitted: oneshot::Sender<Ticket>,
}

/// Permission to run. The capacity is released when this is dropped.
#[derive(Debug)]
pub(crate) struct Ticket {
    admission: Arc<Admission>,
    caller: Caller,
    begun_ms: u64,
}

impl Usage {
    /// Reduces the weight of time used long ago.
    fn halve(&mut self, now_ms: u64) {
        let periods = now_ms.saturating_sub(self.halved_at_ms) / HALF_LIFE_MS;
        if periods > 0 {
            self.used_ms = self.used_ms.checked_shr(u32::try_from(periods).unwrap_or(u32::MAX)).unwrap_or(0);
            self.halved_at_ms = now_ms;
        }
    }
}

impl AdmissionState {
    /// Whether a caller may start work now.
    ///
    /// A limit on other resources of work than a thread, such as memory, belongs here.
    fn has_room_for(&self, caller: &Caller, bounds: &AdmissionBounds) -> bool {
        let running = self.callers.get(caller).map_or(0, |usage| usage.running);
        self.running < bounds.running_max && running < bounds.running_per_caller_max
    }

    fn usage(&mut self, caller: &Caller, now_ms: u64) -> &mut Usage {
        if self.callers.len() > IDLE_CALLERS_MAX {
            self.callers.retain(|_, usage| usage.running > 0 || usage.waiting > 0);
        }
        let fresh = Usage { halved_at_ms: now_ms, ..Usage::default() };
        let usage = self.callers.entry(caller.clone()).or_insert(fresh);
        usage.halve(now_ms);
        usage
    }

    fn begin(&mut self, caller: &Caller, now_ms: u64) {
        self.running += 1;
        self.usage(caller, now_ms).running += 1;
    }

    fn end(&mut self, caller: &Caller, begun_ms: u64, now_ms: u64) {
        self.running -= 1;
        let usage = self.usage(caller, now_ms);
        usage.running -= 1;
        usage.used_ms = usage.used_ms.saturating_add(now_ms.saturating_sub(begun_ms));
    }

    /// Removes waiters that have given up.
    fn forget_gone(&mut self) {
        let AdmissionState { waiting, callers, .. } = self;
        waiting.retain(|waiting| {
            let is_gone = waiting.admitted.is_closed();
            if is_gone && let Some(usage) = callers.get_mut(&waiting.caller) {
                usage.waiting -= 1;
            }
            !is_gone
        });
    }

    /// Removes the next waiter that may start: the one whose caller has the least running work, then the least used
    /// time.
    fn next(&mut self, bounds: &AdmissionBounds, now_ms: u64) -> Option<Waiting> {
        let weight = |waiting: &Waiting| {
            let mut usage = self.callers.get(&waiting.caller).copied().unwrap_or_default();
            usage.halve(now_ms);
            (usage.running, usage.used_ms)
        };
        let open = |(_, waiting): &(usize, &Waiting)| self.has_room_for(&waiting.caller, bounds);
        let first = self.waiting.iter().enumerate().filter(open).min_by_key(|(_, waiting)| weight(waiting));
        let (place, _) = first?;
        let waiting = self.waiting.remove(place);
        self.usage(&waiting.caller, now_ms).waiting -= 1;
        Some(waiting)
    }
}

impl Admission {
    pub(crate) fn new(bounds: AdmissionBounds, ambient: Arc<dyn Ambient>) -> Arc<Admission> {
        Arc::new(Admission { bounds, ambient, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, AdmissionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Permission to run immediately, if there is capacity and nobody waits for it.
    pub(crate) fn try_enter(self: &Arc<Admission>, caller: &Caller) -> Option<Ticket> {
        let now_ms = self.ambient.now_ms();
        let mut state = self.state();
        if state.is_closed || !state.has_room_for(caller, &self.bounds) {
            return None;
        }
        state.begin(caller, now_ms);
        Some(self.ticket(caller, now_ms))
    }

    /// Permission to run, waiting if necessary.
    pub(crate) async fn enter(self: &Arc<Admission>, caller: &Caller) -> Result<Ticket, Fault> {
        if let Some(ticket) = self.try_enter(caller) {
            return Ok(ticket);
        }
        let mut waiter = Waiter { admission: self, admitted: Some(self.wait(caller)?) };
        let wait = Duration::from_millis(self.bounds.wait_ms);
        let admitted = async {
            match &mut waiter.admitted {
                Some(admitted) => admitted.await.ok(),
                None => None,
            }
        };
        match tokio::time::timeout(wait, admitted).await {
            Ok(Some(ticket)) => Ok(ticket),
            // The sender is gone: no more work is started.
            Ok(None) => Err(stopping()),
            Err(_) => Err(self.refusal(caller)),
        }
    }

    fn ticket(self: &Arc<Admission>, caller: &Caller, begun_ms: u64) -> Ticket {
        Ticket { admission: Arc::clone(self), caller: caller.clone(), begun_ms }
    }

    /// Enters the queue.
    fn wait(&self, caller: &Caller) -> Result<oneshot::Receiver<Ticket>, Fault> {
        let now_ms = self.ambient.now_ms();
        let mut state = self.state();
        if state.is_closed {
            return Err(stopping());
        }
        let is_full = state.waiting.len() >= self.bounds.waiting_max;
        let usage = state.usage(caller, now_ms);
        if usage.waiting >= self.bounds.waiting_per_caller_max {
            return Err(LimitFault::Busy { retry_after_ms: RETRY_AFTER_MS }.into());
        }
        if is_full {
            return Err(LimitFault::Overloaded { retry_after_ms: RETRY_AFTER_MS }.into());
        }
        usage.waiting += 1;
        let (admitted, ticket) = oneshot::channel();
        state.waiting.push(Waiting { caller: caller.clone(), admitted });
        Ok(ticket)
    }

    /// Why a caller has waited in vain: because of its own work, or because of the work of all.
    fn refusal(&self, caller: &Caller) -> Fault {
        let state = self.state();
        let running = state.callers.get(caller).map_or(0, |usage| usage.running);
        if running >= self.bounds.running_per_caller_max {
            LimitFault::Busy { retry_after_ms: RETRY_AFTER_MS }.into()
        } else {
            LimitFault::Overloaded { retry_after_ms: RETRY_AFTER_MS }.into()
        }
    }

    /// The number of running and of waiting pieces of work.
    pub(crate) fn running_and_waiting(&self) -> (usize, usize) {
        let state = self.state();
        (state.running, state.waiting.len())
    }

    /// Refuses all waiting and all later work.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.waiting.clear();
    }

    /// Gives free capacity to waiters.
    fn admit(self: &Arc<Admission>) {
        loop {
            let now_ms = self.ambient.now_ms();
            let mut state = self.state();
            let Some(Waiting { caller, admitted }) = state.next(&self.bounds, now_ms) else {
                return;
            };
            state.begin(&caller, now_ms);
            // Outside of the lock: a ticket that nobody takes is dropped, and its capacity goes to the next waiter.
            drop(state);
            let _ = admitted.send(self.ticket(&caller, now_ms));
        }
    }
}

/// A place in the queue; released if the waiter gives up.
struct Waiter<'a> {
    admission: &'a Admission,
    admitted: Option<oneshot::Receiver<Ticket>>,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        // First: a ticket that arrived at the last moment releases its capacity when dropped, which takes the lock.
        drop(self.admitted.take());
        self.admission.state().forget_gone();
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let now_ms = self.admission.ambient.now_ms();
        self.admission.state().end(&self.caller, self.begun_ms, now_ms);
        self.admission.admit();
    }
}

fn stopping() -> Fault {
    LimitFault::Stopping { retry_after_ms: RETRY_AFTER_MS }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::ResourceNumber;
    use std::pin::pin;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[derive(Debug, Default)]
    struct Clock(AtomicU64);

    impl Ambient for Clock {
        fn now_ms(&self) -> u64 {
            self.0.load(Ordering::SeqCst)
        }

        fn fill_random(&self, bytes: &mut [u8]) {
            bytes.fill(0);
        }
    }

    fn caller(number: u32) -> Caller {
        Caller::Permission(ResourceNumber(number))
    }

    fn admission(running_max: usize, waiting_max: usize) -> (Arc<Admission>, Arc<Clock>) {
        let clock = Arc::new(Clock::default());
        let bounds = AdmissionBounds {
            waiting_max,
            waiting_per_caller_max: 2,
            ..AdmissionBounds::of_threads(running_max)
        };
        (Admission::new(bounds, Arc::clone(&clock) as Arc<dyn Ambient>), clock)
    }

    async fn is_waiting(future: std::pin::Pin<&mut impl Future>) -> bool {
        let mut future = future;
        std::future::poll_fn(|context| std::task::Poll::Ready(future.as_mut().poll(context).is_pending()))
            .await
    }

    #[tokio::test]
    async fn a_free_place_goes_to_who_has_used_least() {
        let (admission, clock) = admission(2, 10);
        let (one, other, third) = (caller(1), caller(2), caller(3));
        let long = admission.try_enter(&one).unwrap();
        let short = admission.try_enter(&other).unwrap();
        assert!(admission.try_enter(&third).is_none());
        clock.0.store(5_000, Ordering::SeqCst);
        let mut busy = pin!(admission.enter(&one));
        assert!(is_waiting(busy.as_mut()).await);
        drop(long);
        // There is capacity, and nobody else waits.
        let again = busy.await.unwrap();
        let (mut busy, mut fresh) = (pin!(admission.enter(&one)), pin!(admission.enter(&third)));
        assert!(is_waiting(busy.as_mut()).await && is_waiting(fresh.as_mut()).await);
        drop(again);
        // It came later, but for a caller that has used no time.
        let fresh = fresh.await.unwrap();
        assert!(is_waiting(busy.as_mut()).await);
        drop((short, fresh));
        busy.await.unwrap();
    }

    #[tokio::test]
    async fn what_was_used_is_forgotten_in_time() {
        let mut usage = Usage { used_ms: 8_000, ..Usage::default() };
        usage.halve(HALF_LIFE_MS - 1);
        assert_eq!(usage.used_ms, 8_000);
        usage.halve(2 * HALF_LIFE_MS);
        assert_eq!(usage.used_ms, 2_000);
        usage.halve(u64::MAX);
        assert_eq!(usage.used_ms, 0);
    }

    #[tokio::test]
    async fn who_gives_up_leaves_no_trace() {
        let (admission, _) = admission(2, 10);
        let one = caller(1);
        let held = admission.try_enter(&one).unwrap();
        {
            let mut waiting = pin!(admission.enter(&one));
            assert!(is_waiting(waiting.as_mut()).await);
            assert_eq!(admission.state().waiting.len(), 1);
        }
        assert!(admission.state().waiting.is_empty());
        assert_eq!(admission.state().callers[&one].waiting, 0);
        drop(held);
        assert_eq!(admission.state().running, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn queue_and_patience_are_bounded() {
        let (admission, _) = admission(2, 3);
        let (one, other) = (caller(1), caller(2));
        let _held = (admission.try_enter(&one).unwrap(), admission.try_enter(&other).unwrap());
        let (mut first, mut second) = (pin!(admission.enter(&one)), pin!(admission.enter(&one)));
        assert!(is_waiting(first.as_mut()).await && is_waiting(second.as_mut()).await);
        // Too many of one caller, then too many of all.
        let refused = admission.enter(&one).await;
        assert!(matches!(refused, Err(Fault::Limit(LimitFault::Busy { .. }))), "{refused:?}");
        let third = caller(3);
        let mut waiting = pin!(admission.enter(&third));
        assert!(is_waiting(waiting.as_mut()).await);
        let refused = admission.enter(&caller(4)).await;
        assert!(matches!(refused, Err(Fault::Limit(LimitFault::Overloaded { .. }))), "{refused:?}");
        // One waits for work of its own caller to end, the other one for that of others.
        let refused = first.await;
        assert!(matches!(refused, Err(Fault::Limit(LimitFault::Busy { .. }))), "{refused:?}");
        let refused = waiting.await;
        assert!(matches!(refused, Err(Fault::Limit(LimitFault::Overloaded { .. }))), "{refused:?}");
    }

    #[tokio::test]
    async fn nothing_begins_once_closed() {
        let (admission, _) = admission(2, 10);
        let one = caller(1);
        let held = admission.try_enter(&one).unwrap();
        let mut waiting = pin!(admission.enter(&one));
        assert!(is_waiting(waiting.as_mut()).await);
        admission.close();
        for refused in [waiting.await, admission.enter(&caller(2)).await] {
            assert!(matches!(refused, Err(Fault::Limit(LimitFault::Stopping { .. }))), "{refused:?}");
        }
        drop(held);
    }
}
