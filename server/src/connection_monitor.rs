//! Watches one connection: cuts it off when a request dawdles or nothing comes for long.
//!
//! The HTTP library has one bound for both waiting and slow headers; here they are told apart: a client may rest
//! between requests for minutes, but a request that has begun must arrive within seconds. Answers that nobody takes
//! count as rest. On a connection that carries several requests at once, bytes are no sign of a request (they may be
//! answers to our own questions), so there only the rest is bounded.

use crate::settings::Timeouts;
use engine::ConnectionMemory;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How often a connection is looked at: twice within the shortest of its times, but no oftener than a timer can.
const LOOK_EVERY_MAX: Duration = Duration::from_secs(5);
const LOOK_EVERY_MIN: Duration = Duration::from_millis(10);

/// How requests follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// One after the other: HTTP/1.1.
    Sequential,
    /// Several at once: HTTP/2.
    Multiplexed,
}

/// What a connection does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing has come since the last answer.
    Idle,
    /// Bytes have come that are no whole request yet.
    Arriving,
    /// Requests are being answered.
    Serving,
}

/// The state of one connection, shared by its socket, its requests and its watcher.
///
/// Only the watcher looks at the clock: the others say that something has changed, and what has not changed since an
/// earlier look has lasted since then at least.
#[derive(Debug)]
pub(crate) struct Watch {
    manner: Manner,
    /// Requests that are being answered.
    requests: AtomicUsize,
    /// Whether bytes of another request have come.
    arriving: AtomicBool,
    /// Counts the changes of the phase; may wrap around.
    changes: AtomicUsize,
}

impl Watch {
    pub(crate) fn new(manner: Manner) -> Arc<Watch> {
        Arc::new(Watch {
            manner,
            requests: AtomicUsize::new(0),
            arriving: AtomicBool::new(false),
            changes: AtomicUsize::new(0),
        })
    }

    /// A request has arrived; its body and its answer are bounded elsewhere.
    pub(crate) fn begin(self: &Arc<Watch>) -> Serving {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.arriving.store(false, Ordering::Relaxed);
        self.changed();
        Serving(Arc::clone(self))
    }

    /// Ends when the connection has used up its patience, or when an answer was not taken for as long as it may rest:
    /// a client that goes on asking cannot keep answers in memory that it does not take.
    pub(crate) async fn expired(&self, timeouts: Timeouts, memory: Option<&ConnectionMemory>) {
        let look_every = (timeouts.header.min(timeouts.idle) / 2).clamp(LOOK_EVERY_MIN, LOOK_EVERY_MAX);
        let mut seen = self.changes.load(Ordering::Relaxed);
        let mut since = Instant::now();
        loop {
            tokio::time::sleep(look_every).await;
            let untaken = memory.and_then(ConnectionMemory::untaken_since);
            if untaken.is_some_and(|since| since.elapsed() > timeouts.idle) {
                return;
            }
            let changes = self.changes.load(Ordering::Relaxed);
            if changes != seen {
                (seen, since) = (changes, Instant::now());
                continue;
            }
            let over = match self.phase() {
                Phase::Idle => since.elapsed() > timeouts.idle,
                Phase::Arriving => since.elapsed() > timeouts.header,
                Phase::Serving => false,
            };
            if over {
                return;
            }
        }
    }

    fn arrived(&self) {
        if self.manner == Manner::Sequential && self.phase() == Phase::Idle {
            self.arriving.store(true, Ordering::Relaxed);
            self.changed();
        }
    }

    fn phase(&self) -> Phase {
        if self.requests.load(Ordering::Relaxed) > 0 {
            Phase::Serving
        } else if self.arriving.load(Ordering::Relaxed) {
            Phase::Arriving
        } else {
            Phase::Idle
        }
    }

    fn changed(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }
}

/// A request under way; its end makes the connection idle again.
pub(crate) struct Serving(Arc<Watch>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
        self.0.changed();
    }
}

/// A socket that tells its watch when bytes come.
pub(crate) struct Watched<S> {
    pub(crate) stream: S,
    pub(crate) watch: Arc<Watch>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.watch.arrived();
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
