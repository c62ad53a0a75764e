//! Locks on logical partitions: while one is held, the writer puts off the transactions of others on the same logical
//! partition. All other logical partitions are unaffected.
//!
//! A lock ends when its holder has committed or is dropped, or after [`LOCK_TIME_MAX`]. Transactions that have waited
//! for [`LOCK_WAIT_MAX`] are refused.

use super::command::{Command, Execution, LockReply};
use crate::keyspace;
use bytes::Bytes;
use model::{ConflictFault, ContainerNumber, LimitFault};
use std::collections::VecDeque;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How long a lock is held at most.
pub const LOCK_TIME_MAX: Duration = Duration::from_secs(5);
/// How long a transaction waits for a lock at most.
pub const LOCK_WAIT_MAX: Duration = Duration::from_secs(5);
/// Limit of the locks of one partition.
const LOCKS_MAX: usize = 64;
/// Limit of the commands that wait for one lock.
const WAITING_MAX: usize = 1024;
/// When to retry if there are too many locks or commands that wait for one.
const RETRY_AFTER_MS: u64 = 100;

/// Identifies a lock of one opening of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LockId(u64);

/// A lock on a logical partition, which ends when this is dropped.
#[derive(Debug)]
pub struct KeyLock {
    pub(crate) id: LockId,
    /// The writer notices when it is dropped.
    _release: oneshot::Sender<()>,
}

/// The locks of a partition.
#[derive(Default)]
pub(super) struct Locks {
    held: Vec<Held>,
    id_last: u64,
}

struct Held {
    id: LockId,
    /// The logical partition.
    prefix: Bytes,
    until: Instant,
    released: oneshot::Receiver<()>,
    /// Whether the logical partition may have changed nevertheless: housekeeping does not wait for locks.
    has_changed: bool,
    /// The commands of others, in order, each with the time since when it waits.
    waiting: VecDeque<(Instant, Command)>,
}

impl Locks {
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Grants a lock, or puts the request after those that wait for the same logical partition.
    pub(super) fn request(&mut self, prefix: Bytes, reply: LockReply) {
        if reply.is_closed() {
            return;
        }
        if let Some(held) = self.held.iter_mut().find(|held| held.prefix == prefix) {
            return held.put_off(Instant::now(), Command::Lock { prefix, reply });
        }
        if self.held.len() >= LOCKS_MAX {
            let _ = reply.send(Err(LimitFault::Busy { retry_after_ms: RETRY_AFTER_MS }.into()));
            return;
        }
        self.id_last += 1;
        let id = LockId(self.id_last);
        let (release, released) = oneshot::channel();
        if reply.send(Ok(KeyLock { id, _release: release })).is_ok() {
            let (until, waiting) = (Instant::now() + LOCK_TIME_MAX, VecDeque::new());
            self.held.push(Held { id, prefix, until, released, has_changed: false, waiting });
        }
    }

    /// Returns a transaction that may be executed now. One of a locked logical partition waits, unless its sender
    /// holds the lock.
    pub(super) fn admit(&mut self, container: ContainerNumber, execution: Execution) -> Option<Execution> {
        if self.held.is_empty() {
            return Some(execution);
        }
        let prefix = keyspace::logical_prefix(container, &execution.transaction.key);
        let lock = execution.basis.as_ref().and_then(|basis| basis.lock);
        match self.held.iter_mut().find(|held| held.prefix == prefix && Some(held.id) != lock) {
            Some(held) => {
                let since = execution.waits_since.unwrap_or_else(Instant::now);
                held.put_off(since, Command::Execute(Execution { waits_since: Some(since), ..execution }));
                None
            }
            None => Some(execution),
        }
    }

    /// A transaction has changed the logical partition with this prefix.
    pub(super) fn note(&mut self, prefix: &[u8]) {
        self.held.iter_mut().filter(|held| held.prefix == prefix).for_each(|held| held.has_changed = true);
    }

    /// Changes may have been lost that the holders have seen.
    pub(super) fn note_all(&mut self) {
        self.held.iter_mut().for_each(|held| held.has_changed = true);
    }

    /// Whether a held lock has protected its logical partition from all changes; `None` if it is not held.
    pub(super) fn has_protected(&self, id: LockId) -> Option<bool> {
        self.held.iter().find(|held| held.id == id).map(|held| !held.has_changed)
    }

    /// Ends a lock. Returns the commands that waited for it.
    pub(super) fn release(&mut self, id: LockId) -> VecDeque<Command> {
        let place = self.held.iter().position(|held| held.id == id);
        let held = place.map(|place| self.held.remove(place));
        held.into_iter().flat_map(|held| held.waiting).map(|(_, command)| command).collect()
    }

    /// Ends the locks that were released or whose time has passed, and refuses the transactions that have waited too
    /// long. Returns the commands that waited for the locks that have ended.
    pub(super) fn end_due(&mut self) -> VecDeque<Command> {
        let now = Instant::now();
        let has_ended = |held: &mut Held| {
            held.until <= now || held.released.try_recv() != Err(oneshot::error::TryRecvError::Empty)
        };
        let mut commands = VecDeque::new();
        let mut place = 0;
        while let Some(held) = self.held.get_mut(place) {
            if has_ended(held) {
                let id = held.id;
                commands.extend(self.release(id));
            } else {
                held.refuse_overdue(now);
                place += 1;
            }
        }
        commands
    }

    /// All commands that wait. No lock is held any more.
    pub(super) fn clear(&mut self) -> VecDeque<Command> {
        let waiting = self.held.drain(..).flat_map(|held| held.waiting);
        waiting.map(|(_, command)| command).collect()
    }

    /// Waits until a lock is released, or until its time or that of a waiting transaction has passed.
    pub(super) async fn next_event(&mut self) {
        let due = self.held.iter().map(Held::due).min();
        let Some(due) = due else { return std::future::pending().await };
        let held = &mut self.held;
        let released = std::future::poll_fn(|context| {
            let is_released =
                |held: &mut Held| std::pin::Pin::new(&mut held.released).poll(context).is_ready();
            if held.iter_mut().any(is_released) { Poll::Ready(()) } else { Poll::Pending }
        });
        tokio::select! {
            () = released => {}
            () = tokio::time::sleep_until(due) => {}
        }
    }
}

impl Held {
    /// When something has to be done if the holder does nothing.
    fn due(&self) -> Instant {
        let oldest = self.waiting.iter().map(|(since, _)| *since + LOCK_WAIT_MAX).min();
        oldest.map_or(self.until, |oldest| oldest.min(self.until))
    }

    fn put_off(&mut self, since: Instant, command: Command) {
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push_back((since, command));
        } else {
            command.refuse(LimitFault::Busy { retry_after_ms: RETRY_AFTER_MS }.into());
        }
    }

    fn refuse_overdue(&mut self, now: Instant) {
        for (since, command) in std::mem::take(&mut self.waiting) {
            if now.saturating_duration_since(since) >= LOCK_WAIT_MAX {
                command.refuse(ConflictFault::Locked { waited: LOCK_WAIT_MAX }.into());
            } else {
                self.waiting.push_back((since, command));
            }
        }
    }
}
