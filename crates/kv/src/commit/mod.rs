//! The backend that commits in groups: many batches of all lanes, one engine commit, one sync.
//!
//! One thread per store takes the waiting batches of all lanes, judges each by its requirements, and makes one engine
//! commit of those that apply. The engine holds its journal lock through a sync, so committers that sync for themselves
//! would queue up behind each other; one thread turns that queue into larger groups instead. One journal also means one
//! doubt: a sync that failed poisons the whole engine until it was reopened.
//!
//! Reading order: [`Grouped`] is the backend, `queue` brings batches to the one who commits, `group` commits them,
//! `judge` decides which apply, `watch` answers for work that does not end. Knows nothing of engines.

mod group;
mod grouped;
mod judge;
mod queue;
mod watch;

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

pub(crate) use grouped::Grouped;
#[cfg(feature = "round-trip")]
pub(crate) use judge::Judge;
pub(crate) use watch::WORK_TIMEOUT;

/// Who makes the commits of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommitMode {
    /// A thread of the store's own.
    Thread,
    /// The submitter, inside the call: every batch is a group of its own, and the future is ready at once. For
    /// deterministic simulations over memory.
    Inline,
    /// Whoever directs the simulation, by [`crate::Store::step`]: batches wait until then and are committed as one
    /// group, so that submitters have several under way and a failure meets them in the middle.
    Stepped,
}

/// Runs a future on this thread, which must not be an async worker unless the future is ready at once.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
