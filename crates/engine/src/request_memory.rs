//! Memory of requests in progress: bodies that arrive and answers that wait for their clients.
//!
//! Every body and every answer has a reservation within three limits: its connection's, its credential's and the total.
//! A request that does not fit waits, without holding any of its body, and is refused after a timeout. A request that
//! holds a body may wait for memory for its answer; no request that holds an answer waits for a body, so waiting always
//! ends. Wire formats are not known here.

use crate::authorisation::Principal;
use model::LimitFault;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, Notify};

/// Number of hash values that distinguish credentials; two with the same hash value share its limit.
const CREDENTIALS: usize = 256;

/// One credential may hold this fraction of the total.
const CREDENTIAL_DIVISOR: usize = 2;

/// One connection may hold this fraction of the total, but always enough for some pages.
const CONNECTION_DIVISOR: usize = 16;
const CONNECTION_BYTES_MIN: usize = 16 << 20;

/// Requests up to this size do not wait for larger ones: a fraction of the memory is reserved for them, so that clients
/// that do not read their large answers do not delay small requests.
const SMALL_BYTES: usize = 16 << 10;
/// The fraction that is reserved for small requests.
const SMALL_DIVISOR: usize = 4;

/// How long a request waits for memory.
const PATIENCE: Duration = Duration::from_secs(10);

/// Retry delay for a request that found no memory.
const RETRY_AFTER_MS: u64 = 1000;

/// The purpose of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// The body of a request.
    Body,
    /// The body of an answer.
    Answer,
}

/// Bytes for bodies and answers of all requests together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestMemoryOptions {
    /// For request bodies.
    pub bodies_bytes: usize,
    /// For answers.
    pub answers_bytes: usize,
}

impl Default for RequestMemoryOptions {
    fn default() -> RequestMemoryOptions {
        RequestMemoryOptions { bodies_bytes: 256 << 20, answers_bytes: 256 << 20 }
    }
}

/// The limits shared by all requests.
#[derive(Debug)]
pub struct RequestMemory {
    bodies: SharedPools,
    answers: SharedPools,
}

#[derive(Debug)]
struct SharedPools {
    all: Pool,
    by_credential: Box<[Pool]>,
}

impl SharedPools {
    fn new(bytes_max: usize) -> SharedPools {
        let credential = || Pool::new(bytes_max / CREDENTIAL_DIVISOR);
        SharedPools {
            all: Pool::new(bytes_max),
            by_credential: (0..CREDENTIALS).map(|_| credential()).collect(),
        }
    }
}

/// The limits of one connection that carries several requests concurrently.
#[derive(Debug)]
pub struct ConnectionMemory {
    bodies: Pool,
    answers: Pool,
    /// When the answers were completed that are not read yet, oldest first.
    untaken: SyncMutex<VecDeque<Untaken>>,
}

/// An answer that its client has not read yet.
#[derive(Debug)]
struct Untaken {
    since: Instant,
    /// Whether it was read meanwhile; it is removed when it is the first.
    is_taken: Arc<AtomicBool>,
}

impl ConnectionMemory {
    /// When the oldest answer was completed that its client has not read yet.
    pub fn untaken_since(&self) -> Option<Instant> {
        let mut untaken = self.untaken.lock().unwrap_or_else(PoisonError::into_inner);
        while untaken.front().is_some_and(|first| first.is_taken.load(Ordering::Relaxed)) {
            untaken.pop_front();
        }
        untaken.front().map(|first| first.since)
    }

    fn made(&self) -> Arc<AtomicBool> {
        // Removes those that were read, so that the list is limited by what is held.
        self.untaken_since();
        let is_taken = Arc::new(AtomicBool::new(false));
        let answer = Untaken { since: Instant::now(), is_taken: Arc::clone(&is_taken) };
        self.untaken.lock().unwrap_or_else(PoisonError::into_inner).push_back(answer);
        is_taken
    }
}

/// The holder of a reservation.
#[derive(Clone, Debug)]
pub struct MemoryHolder {
    connection: Option<Arc<ConnectionMemory>>,
    credential: usize,
}

impl MemoryHolder {
    /// A caller on a connection; a connection that carries one request at a time needs no limit of its own.
    pub fn new(principal: &Principal, connection: Option<Arc<ConnectionMemory>>) -> MemoryHolder {
        let credential = usize::try_from(principal.caller_hash()).unwrap_or(0) % CREDENTIALS;
        MemoryHolder { connection, credential }
    }
}

impl RequestMemory {
    /// Without any reservations.
    pub(crate) fn new(options: RequestMemoryOptions) -> Arc<RequestMemory> {
        let RequestMemoryOptions { bodies_bytes, answers_bytes } = options;
        Arc::new(RequestMemory {
            bodies: SharedPools::new(bodies_bytes),
            answers: SharedPools::new(answers_bytes),
        })
    }

    /// The limits of a new connection.
    pub fn connection(&self) -> Arc<ConnectionMemory> {
        let part = |pools: &SharedPools| {
            let bytes = (pools.all.bytes_max / CONNECTION_DIVISOR).max(CONNECTION_BYTES_MIN);
            Pool::new(bytes.min(pools.all.bytes_max))
        };
        let untaken = SyncMutex::default();
        Arc::new(ConnectionMemory { bodies: part(&self.bodies), answers: part(&self.answers), untaken })
    }

    /// Bytes that are reserved for a kind.
    pub fn reserved_bytes(&self, kind: MemoryKind) -> usize {
        self.shared(kind).all.bytes_used.load(Ordering::Relaxed)
    }

    /// Reserves memory, waiting for it if necessary.
    pub async fn reserve(
        self: &Arc<RequestMemory>,
        kind: MemoryKind,
        holder: &MemoryHolder,
        bytes: usize,
    ) -> Result<Reservation, LimitFault> {
        match self.try_reserve(kind, holder, bytes) {
            Some(reservation) => Ok(reservation),
            // Boxed, since it is rare: the future of a request is moved often.
            None => Box::pin(self.wait(kind, holder, bytes)).await,
        }
    }

    /// Reserves memory if it is available.
    pub fn try_reserve(
        self: &Arc<RequestMemory>,
        kind: MemoryKind,
        holder: &MemoryHolder,
        bytes: usize,
    ) -> Option<Reservation> {
        let mut reservation = self.nothing(kind, holder);
        reservation.try_grow_to(bytes).then_some(reservation)
    }

    /// Reserves memory even beyond the limits: later requests wait.
    pub fn reserve_anyway(
        self: &Arc<RequestMemory>,
        kind: MemoryKind,
        holder: &MemoryHolder,
        bytes: usize,
    ) -> Reservation {
        let mut reservation = self.nothing(kind, holder);
        reservation.adjust_to(bytes);
        reservation
    }

    async fn wait(
        self: &Arc<RequestMemory>,
        kind: MemoryKind,
        holder: &MemoryHolder,
        bytes: usize,
    ) -> Result<Reservation, LimitFault> {
        let waiting = async {
            // Bytes are released if the wait is cancelled: each step is added to the reservation immediately.
            let mut reservation = self.nothing(kind, holder);
            for (pool, taken) in reservation.pools_and_taken() {
                pool.take(bytes).await;
                *taken = bytes;
            }
            reservation.bytes = bytes;
            reservation
        };
        let busy = |_| LimitFault::Busy { retry_after_ms: RETRY_AFTER_MS };
        tokio::time::timeout(PATIENCE, waiting).await.map_err(busy)
    }

    fn nothing(self: &Arc<RequestMemory>, kind: MemoryKind, holder: &MemoryHolder) -> Reservation {
        Reservation {
            memory: Arc::clone(self),
            holder: holder.clone(),
            kind,
            bytes: 0,
            taken: [0; 3],
            made: None,
        }
    }

    fn shared(&self, kind: MemoryKind) -> &SharedPools {
        match kind {
            MemoryKind::Body => &self.bodies,
            MemoryKind::Answer => &self.answers,
        }
    }
}

/// Memory that is held until this is dropped.
#[derive(Debug)]
pub struct Reservation {
    memory: Arc<RequestMemory>,
    holder: MemoryHolder,
    kind: MemoryKind,
    bytes: usize,
    /// Bytes taken from each pool; the same from all once the reservation is complete.
    taken: [usize; 3],
    /// Set when the answer is read, once it is complete.
    made: Option<Arc<AtomicBool>>,
}

impl Reservation {
    /// Reserves more if it is available; otherwise nothing changes.
    pub(crate) fn try_grow_to(&mut self, bytes: usize) -> bool {
        let Some(more) = bytes.checked_sub(self.bytes).filter(|more| *more > 0) else { return true };
        let mut done = [false; 3];
        let all_fit = self.pools_and_taken().zip(&mut done).all(|((pool, taken), done)| {
            *done = pool.try_take(more);
            *taken += if *done { more } else { 0 };
            *done
        });
        if all_fit {
            self.bytes = bytes;
            return true;
        }
        for ((pool, taken), _) in self.pools_and_taken().zip(done).filter(|(_, done)| *done) {
            pool.give_back(more);
            *taken -= more;
        }
        false
    }

    /// Adjusts the reservation to the actual size, even beyond the limits: an excess makes later requests wait,
    /// unused bytes are released.
    pub(crate) fn adjust_to(&mut self, bytes: usize) {
        self.pools_and_taken().for_each(|(pool, taken)| {
            if bytes > *taken {
                pool.take_anyway(bytes - *taken);
            } else {
                pool.give_back(*taken - bytes);
            }
            *taken = bytes;
        });
        self.bytes = bytes;
    }

    /// Marks the answer as complete and waiting for its client.
    pub fn hand_over(&mut self, bytes: usize) {
        self.adjust_to(bytes);
        self.made = self.holder.connection.as_ref().map(|connection| connection.made());
    }

    /// The pools in the order in which they are taken from, each with the bytes taken.
    fn pools_and_taken(&mut self) -> impl Iterator<Item = (&Pool, &mut usize)> {
        let shared = self.memory.shared(self.kind);
        let connection = self.holder.connection.as_deref().map(|connection| match self.kind {
            MemoryKind::Body => &connection.bodies,
            MemoryKind::Answer => &connection.answers,
        });
        let pools = [connection, shared.by_credential.get(self.holder.credential), Some(&shared.all)];
        pools.into_iter().zip(&mut self.taken).filter_map(|(pool, taken)| Some((pool?, taken)))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.pools_and_taken().for_each(|(pool, taken)| pool.give_back(std::mem::take(taken)));
        if let Some(made) = &self.made {
            made.store(true, Ordering::Relaxed);
        }
    }
}

/// A limit on bytes. Requests that do not fit wait in a queue.
#[derive(Debug)]
struct Pool {
    bytes_max: usize,
    bytes_used: AtomicUsize,
    /// Requests in the queue.
    waiting: AtomicUsize,
    /// Held by the first of the queue, so that only one is woken when memory is released.
    turn: Mutex<()>,
    freed: Notify,
}

impl Pool {
    fn new(bytes_max: usize) -> Pool {
        Pool {
            bytes_max,
            bytes_used: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            turn: Mutex::new(()),
            freed: Notify::new(),
        }
    }

    /// Takes bytes if they fit and no other request waits; small requests may overtake.
    fn try_take(&self, bytes: usize) -> bool {
        let may_overtake = bytes <= SMALL_BYTES || self.waiting.load(Ordering::SeqCst) == 0;
        may_overtake && self.take_if_fits(bytes)
    }

    /// An empty pool accepts anything: a request that is larger than the limit must be served alone.
    fn take_if_fits(&self, bytes: usize) -> bool {
        let kept = if bytes <= SMALL_BYTES { 0 } else { self.bytes_max / SMALL_DIVISOR };
        let fits = |used: usize| {
            let sum = used.saturating_add(bytes);
            (sum <= self.bytes_max - kept || used == 0).then_some(sum)
        };
        self.bytes_used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits).is_ok()
    }

    fn take_anyway(&self, bytes: usize) {
        self.bytes_used.fetch_add(bytes, Ordering::SeqCst);
    }

    async fn take(&self, bytes: usize) {
        if self.try_take(bytes) {
            return;
        }
        let _in_line = InLine::new(&self.waiting);
        let _turn = self.turn.lock().await;
        // A notification between the check and the wait is kept for the wait.
        while !self.take_if_fits(bytes) {
            self.freed.notified().await;
        }
    }

    fn give_back(&self, bytes: usize) {
        if bytes > 0 {
            self.bytes_used.fetch_sub(bytes, Ordering::SeqCst);
            if self.waiting.load(Ordering::SeqCst) > 0 {
                self.freed.notify_one();
            }
        }
    }
}

/// A place in a queue; left when dropped.
struct InLine<'a>(&'a AtomicUsize);

impl InLine<'_> {
    fn new(waiting: &AtomicUsize) -> InLine<'_> {
        waiting.fetch_add(1, Ordering::SeqCst);
        InLine(waiting)
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    const MB: usize = 1 << 20;

    fn memory(answers_bytes: usize) -> Arc<RequestMemory> {
        RequestMemory::new(RequestMemoryOptions { bodies_bytes: MB, answers_bytes })
    }

    fn holder(credential: usize, connection: Option<&Arc<ConnectionMemory>>) -> MemoryHolder {
        MemoryHolder { connection: connection.cloned(), credential }
    }

    fn now<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[tokio::test]
    async fn who_does_not_fit_waits_until_there_is_room() {
        let memory = memory(80 * MB);
        let one = holder(1, None);
        let first = memory.reserve(MemoryKind::Answer, &one, 28 * MB).await.unwrap();
        let mut second = pin!(memory.reserve(MemoryKind::Answer, &one, 4 * MB));
        assert!(now(second.as_mut()).is_pending(), "a credential has half of all");
        let mut third = pin!(memory.reserve(MemoryKind::Answer, &one, MB));
        assert!(now(third.as_mut()).is_pending(), "nobody overtakes");
        let little = memory.reserve(MemoryKind::Answer, &one, SMALL_BYTES).await.unwrap();
        drop(little);
        let other = memory.reserve(MemoryKind::Answer, &holder(2, None), 30 * MB).await.unwrap();
        drop(first);
        assert_eq!(second.await.unwrap().bytes + third.await.unwrap().bytes, 5 * MB);
        assert_eq!(memory.reserved_bytes(MemoryKind::Answer), 30 * MB);
        drop(other);
        assert_eq!(memory.reserved_bytes(MemoryKind::Answer), 0);
    }

    #[tokio::test]
    async fn a_connection_cannot_take_what_others_need() {
        let memory = memory(256 * MB);
        let connection = memory.connection();
        let holder_here = holder(1, Some(&connection));
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(memory.reserve(MemoryKind::Answer, &holder_here, 4 * MB).await.unwrap());
        }
        let mut next = pin!(memory.reserve(MemoryKind::Answer, &holder_here, 4 * MB));
        assert!(now(next.as_mut()).is_pending());
        memory.reserve(MemoryKind::Answer, &holder(1, None), 4 * MB).await.unwrap();
        held.pop();
        next.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_with_a_refusal_and_leaves_nothing_taken() {
        let memory = memory(32 * MB);
        let connection = memory.connection();
        let all = memory.reserve(MemoryKind::Answer, &holder(1, None), 12 * MB).await.unwrap();
        let rest = memory.reserve(MemoryKind::Answer, &holder(2, None), 12 * MB).await.unwrap();
        let refused = memory.reserve(MemoryKind::Answer, &holder(3, Some(&connection)), MB).await;
        assert!(matches!(refused, Err(LimitFault::Busy { .. })));
        assert_eq!(memory.reserved_bytes(MemoryKind::Answer), 24 * MB);
        assert_eq!(connection.answers.bytes_used.load(Ordering::Relaxed), 0);
        drop((all, rest));
        memory.reserve(MemoryKind::Answer, &holder(3, Some(&connection)), MB).await.unwrap();
        assert_eq!(memory.reserved_bytes(MemoryKind::Answer), 0);
    }

    #[tokio::test]
    async fn what_was_made_counts_however_large() {
        let memory = memory(8 * MB);
        let one = holder(1, None);
        let mut reservation = memory.reserve(MemoryKind::Answer, &one, 4096).await.unwrap();
        assert!(reservation.try_grow_to(3 * MB) && !reservation.try_grow_to(5 * MB));
        assert_eq!(memory.reserved_bytes(MemoryKind::Answer), 3 * MB);
        reservation.adjust_to(20 * MB);
        assert_eq!(memory.reserved_bytes(MemoryKind::Answer), 20 * MB);
        assert!(now(pin!(memory.reserve(MemoryKind::Answer, &holder(2, None), 1))).is_pending());
        assert!(now(pin!(memory.reserve(MemoryKind::Answer, &holder(2, None), MB))).is_pending());
        reservation.adjust_to(100);
        memory.reserve(MemoryKind::Answer, &one, MB).await.unwrap();
    }

    #[tokio::test]
    async fn the_oldest_answer_that_is_not_taken_is_known() {
        let memory = memory(64 * MB);
        let connection = memory.connection();
        let holder = holder(1, Some(&connection));
        let mut answers = Vec::new();
        for _ in 0..3 {
            let mut answer = memory.reserve(MemoryKind::Answer, &holder, 1000).await.unwrap();
            answer.hand_over(2000);
            answers.push(answer);
        }
        let first = connection.untaken_since().unwrap();
        answers.remove(1);
        assert_eq!(connection.untaken_since(), Some(first));
        answers.remove(0);
        assert!(connection.untaken_since().unwrap() >= first);
        answers.clear();
        assert_eq!(connection.untaken_since(), None);
        assert!(connection.untaken.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_request_larger_than_all_is_served_alone() {
        let memory = memory(MB);
        let alone = memory.reserve(MemoryKind::Answer, &holder(1, None), 4 * MB).await.unwrap();
        assert!(now(pin!(memory.reserve(MemoryKind::Answer, &holder(2, None), 1))).is_pending());
        drop(alone);
        memory.reserve(MemoryKind::Answer, &holder(2, None), 1).await.unwrap();
    }
}
