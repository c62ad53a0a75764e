//! Group commit: many batches of all lanes, one engine commit, one sync.
//!
//! One thread per store takes the waiting batches of all lanes, validates the requirements of each, and commits those
//! that apply in one engine commit. The engine holds its journal lock during a sync, so concurrent committers would
//! wait for each other; one thread turns that queue into larger groups instead. All lanes share one journal: a failed
//! sync poisons the whole engine until it is reopened.
//!
//! Reading order: [`Grouped`] is the backend, `queue` passes batches to the committer, `group` commits them, `validator`
//! decides which apply, `required` knows the rows that it reads most, `watchdog` answers callers when work exceeds its
//! deadline. Knows nothing of engines.

mod group;
mod grouped;
mod queue;
mod required;
mod validator;
mod watchdog;

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

pub(crate) use grouped::Grouped;
#[cfg(feature = "round-trip")]
pub(crate) use required::RequiredRows;
#[cfg(feature = "round-trip")]
pub(crate) use validator::BatchValidator;
pub(crate) use watchdog::WORK_TIMEOUT;

/// Who runs the commits of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommitMode {
    /// A dedicated thread of the store.
    Thread,
    /// The submitter, inside the call: every batch is a group of its own, and the future is ready at once. For
    /// deterministic simulations in memory.
    Inline,
    /// The simulation, by [`crate::Store::step`]: batches wait until then and are committed as one group. A submitter
    /// can so have several batches in flight when a failure occurs.
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
