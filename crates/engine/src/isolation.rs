//! Keeps long work off the threads that serve requests.
//!
//! Work starts on the thread of the request, which costs nothing and is sufficient for most of it. When its time there
//! is used up, it is moved to separate threads at the next await point and continues there; work that reached no such
//! point in time is preempted and restarted. The amount of work there is limited, see `admission`. Dropping the future
//! of some work stops it.

use crate::admission::{Admission, Ticket};
use crate::authorisation::Principal;
use crate::engine::EngineOptions;
use eval::Meter;
use model::{Ambient, Fault};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Time that work may take on the thread that started it. It is the time for which the thread is occupied; no result
/// depends on it.
const INLINE_TIME_MAX: Duration = Duration::from_micros(300);

/// Bytes of a query's text above which even its preparation is not done on the thread of the request.
pub const LARGE_TEXT_BYTES: usize = 4096;

/// Where work starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// On the thread of the request.
    Ordinary,
    /// On a separate thread.
    Large,
}

impl Size {
    /// The size of work for a query whose text has this number of bytes.
    pub(crate) fn of_text(bytes: usize) -> Size {
        if bytes > LARGE_TEXT_BYTES { Size::Large } else { Size::Ordinary }
    }
}

/// Runs work on the thread of the request, and moves long work to separate threads.
#[derive(Debug)]
pub(crate) struct Isolation {
    threads: Option<Handle>,
    admission: Arc<Admission>,
    stop_all: Arc<AtomicBool>,
}

/// Running work.
type Begun<T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send>>;

impl Isolation {
    pub(crate) fn new(options: &EngineOptions, ambient: Arc<dyn Ambient>) -> Isolation {
        Isolation {
            threads: options.query_threads.clone(),
            admission: Admission::new(options.admission, ambient),
            stop_all: Arc::default(),
        }
    }

    /// The number of pieces of work that run separately from the threads of requests, and of those that wait for this.
    pub(crate) fn running_and_waiting(&self) -> (usize, usize) {
        self.admission.running_and_waiting()
    }

    /// Stops everything permanently.
    pub(crate) fn stop(&self) {
        self.stop_all.store(true, Ordering::Relaxed);
        self.admission.close();
    }

    /// Runs the work that `begin` starts, for `principal`. It may be started twice.
    pub(crate) async fn run<T, W>(
        &self,
        principal: &Principal,
        size: Size,
        begin: impl Fn(Arc<Meter>) -> W,
    ) -> Result<T, Fault>
    where
        W: Future<Output = Result<T, Fault>> + Send + 'static,
        T: Send + 'static,
    {
        let meter = Arc::new(Meter::inline(Arc::clone(&self.stop_all)));
        let Some(threads) = &self.threads else {
            meter.leave_inline();
            return Box::pin(begin(meter)).await;
        };
        if size == Size::Ordinary {
            let mut begun: Begun<T> = Box::pin(begin(Arc::clone(&meter)));
            let ended = while_short(&mut begun, &meter).await;
            match ended {
                Some(result) if !meter.is_preempted() => return result,
                Some(_) => {}
                None => {
                    // A caller that must wait holds nothing meanwhile: no state of a partition, no memory.
                    if let Some(ticket) = self.admission.try_enter(&principal.caller()) {
                        meter.leave_inline();
                        return Box::pin(carry_on(threads, ticket, meter, begun)).await;
                    }
                }
            }
        }
        // Boxed, since it is rare: the future of a request is moved often.
        let apart = async {
            let ticket = self.admission.enter(&principal.caller()).await?;
            meter.leave_inline();
            let begun = Box::pin(begin(Arc::clone(&meter)));
            carry_on(threads, ticket, meter, begun).await
        };
        Box::pin(apart).await
    }

    /// Computes something for `principal` that has no await points.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        principal: &Principal,
        size: Size,
        compute: impl FnOnce() -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        match size {
            Size::Ordinary => compute(),
            Size::Large => Box::pin(self.compute_apart(principal, move |_| compute())).await,
        }
    }

    /// Computes something on a separate thread, if there are such threads.
    pub(crate) async fn compute_apart<T: Send + 'static>(
        &self,
        principal: &Principal,
        compute: impl FnOnce(Arc<Meter>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let meter = Arc::new(Meter::inline(Arc::clone(&self.stop_all)));
        meter.leave_inline();
        let Some(threads) = &self.threads else {
            return compute(meter);
        };
        let ticket = self.admission.enter(&principal.caller()).await?;
        let computing = Arc::clone(&meter);
        let begun = Box::pin(async move { compute(computing) });
        carry_on(threads, ticket, meter, begun).await
    }
}

/// Polls work until it is done, or until its time on this thread is used up.
async fn while_short<T>(begun: &mut Begun<T>, meter: &Meter) -> Option<Result<T, Fault>> {
    let mut held = Duration::ZERO;
    std::future::poll_fn(|context| {
        let since = Instant::now();
        match begun.as_mut().poll(context) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending => {
                held += since.elapsed();
                if meter.is_due() || held >= INLINE_TIME_MAX { Poll::Ready(None) } else { Poll::Pending }
            }
        }
    })
    .await
}

/// Continues work on a separate thread.
async fn carry_on<T: Send + 'static>(
    threads: &Handle,
    ticket: Ticket,
    meter: Arc<Meter>,
    begun: Begun<T>,
) -> Result<T, Fault> {
    let task = threads.spawn(async move {
        // Held until the work has ended, even if nobody waits for it any more.
        let _ticket = ticket;
        begun.await
    });
    let mut carried = Carried { task, meter };
    (&mut carried.task).await.unwrap_or_else(|error| Err(Fault::Internal(error.to_string())))
}

/// Work on a separate thread, which stops when nobody waits for it any more.
struct Carried<T> {
    task: JoinHandle<T>,
    meter: Arc<Meter>,
}

impl<T> Drop for Carried<T> {
    fn drop(&mut self) {
        self.meter.stop();
        self.task.abort();
    }
}
