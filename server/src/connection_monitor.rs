//! Timeouts of one connection: closes it when a request arrives too slowly or the connection is idle for too long.
//!
//! The HTTP library has one timeout for both idle time and slow headers; here they are separate: a client may be idle
//! between requests for minutes, but a started request must arrive within seconds. Time in which a client does not read
//! its response counts as idle. On a multiplexed connection, received bytes do not imply a request (they may answer
//! pings), so only the idle timeout applies.

use crate::settings::Timeouts;
use engine::ConnectionMemory;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Longest interval between checks of a connection. It is checked twice within its shortest timeout.
const CHECK_INTERVAL_MAX: Duration = Duration::from_secs(5);
const CHECK_INTERVAL_MIN: Duration = Duration::from_millis(10);

/// How requests share a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOrder {
    /// One after the other: HTTP/1.1.
    Sequential,
    /// Concurrently: HTTP/2.
    Multiplexed,
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing was received since the last response.
    Idle,
    /// An incomplete request was received.
    Arriving,
    /// Requests are being answered.
    Serving,
}

/// The state of one connection, shared by its socket, its requests and its monitor task.
///
/// Only the monitor task reads the clock. The others count changes; a state without a change since an earlier check has
/// lasted at least since then.
#[derive(Debug)]
pub(crate) struct ConnectionMonitor {
    order: RequestOrder,
    /// Number of running requests.
    requests: AtomicUsize,
    /// Whether bytes of another request were received.
    arriving: AtomicBool,
    /// Counts the state changes; may wrap around.
    changes: AtomicUsize,
}

impl ConnectionMonitor {
    pub(crate) fn new(order: RequestOrder) -> Arc<ConnectionMonitor> {
        Arc::new(ConnectionMonitor {
            order,
            requests: AtomicUsize::new(0),
            arriving: AtomicBool::new(false),
            changes: AtomicUsize::new(0),
        })
    }

    /// Starts a request; its body and its response have timeouts elsewhere.
    pub(crate) fn begin(self: &Arc<ConnectionMonitor>) -> RequestGuard {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.arriving.store(false, Ordering::Relaxed);
        self.changed();
        RequestGuard(Arc::clone(self))
    }

    /// Completes when a timeout of the connection has passed, or when a response was not read for the idle timeout: a
    /// client that keeps sending requests cannot keep unread responses in memory.
    pub(crate) async fn expired(&self, timeouts: Timeouts, memory: Option<&ConnectionMemory>) {
        let check_interval =
            (timeouts.header.min(timeouts.idle) / 2).clamp(CHECK_INTERVAL_MIN, CHECK_INTERVAL_MAX);
        let mut seen = self.changes.load(Ordering::Relaxed);
        let mut since = Instant::now();
        loop {
            tokio::time::sleep(check_interval).await;
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
        if self.order == RequestOrder::Sequential && self.phase() == Phase::Idle {
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

/// A running request; dropping it makes the connection idle again.
pub(crate) struct RequestGuard(Arc<ConnectionMonitor>);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
        self.0.changed();
    }
}

/// A socket that reports received bytes to its monitor.
pub(crate) struct MonitoredStream<S> {
    pub(crate) stream: S,
    pub(crate) monitor: Arc<ConnectionMonitor>,
}

impl<S: AsyncRead + Unpin> AsyncRead for MonitoredStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.monitor.arrived();
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MonitoredStream<S> {
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
