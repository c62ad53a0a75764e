//! One connection from its first byte to its end: TLS or plain, HTTP/1.1 or HTTP/2.

use crate::connection_monitor::{ConnectionMonitor, MonitoredStream, RequestOrder};
use crate::listener::Api;
use crate::service::{Peer, Service};
use crate::settings::Timeouts;
use engine::ConnectionMemory;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::Watcher;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// The first byte of every TLS connection; no HTTP request begins with it.
const TLS_HANDSHAKE_BYTE: u8 = 0x16;
/// Start of the HTTP/2 connection preface without TLS; no HTTP/1.1 request starts with these bytes.
const HTTP2_PREFACE: &[u8] = b"PRI";
/// Interval between checks of a preface that arrives in parts.
const PREFACE_CHECK_INTERVAL: Duration = Duration::from_millis(1);
/// Largest URL and headers that are read. The API has a smaller limit and answers requests in between.
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// Concurrent streams of one HTTP/2 connection.
const HTTP2_STREAMS_MAX: u32 = 128;
/// Streams that a client may open and reset before the connection is closed.
const HTTP2_RESETS_MAX: usize = 32;
/// Request body bytes in flight on an HTTP/2 connection.
const HTTP2_WINDOW_BYTES: u32 = 1024 * 1024;
/// Response bytes buffered for a stream that does not read.
const HTTP2_SEND_BYTES: usize = 256 * 1024;
/// Interval of pings on a silent HTTP/2 connection, and the timeout of a ping.
const HTTP2_PING_EVERY: Duration = Duration::from_secs(60);
const HTTP2_PING_ANSWER: Duration = Duration::from_secs(20);

/// The protocol of a client, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Tls,
    Http1,
    Http2,
}

impl Protocol {
    /// `None` while more bytes are needed to decide.
    fn of(first: &[u8]) -> Option<Protocol> {
        match first {
            [] => None,
            [TLS_HANDSHAKE_BYTE, ..] => Some(Protocol::Tls),
            _ if first.starts_with(HTTP2_PREFACE) => Some(Protocol::Http2),
            _ if HTTP2_PREFACE.starts_with(first) => None,
            _ => Some(Protocol::Http1),
        }
    }

    /// Peeks at the first bytes; `None` when the client has disconnected.
    async fn detect(stream: &TcpStream) -> Option<Protocol> {
        let mut first = [0; HTTP2_PREFACE.len()];
        loop {
            match stream.peek(&mut first).await {
                Ok(0) | Err(_) => return None,
                Ok(count) => match Protocol::of(&first[..count]) {
                    Some(protocol) => return Some(protocol),
                    // Peeking returns the same bytes at once, so more bytes can only be waited for by time.
                    None => tokio::time::sleep(PREFACE_CHECK_INTERVAL).await,
                },
            }
        }
    }
}

/// Serves a connection until either side ends it.
pub(crate) async fn serve(
    stream: TcpStream,
    (address, api): (SocketAddr, Api),
    service: Arc<Service>,
    watcher: Watcher,
) {
    let _ = stream.set_nodelay(true);
    let timeout = service.timeouts.handshake;
    let Ok(Some(protocol)) = tokio::time::timeout(timeout, Protocol::detect(&stream)).await else { return };
    let plain = Peer { address, secure: false, api };
    match protocol {
        Protocol::Http1 => {
            return serve_http(stream, plain, RequestOrder::Sequential, service, watcher).await;
        }
        Protocol::Http2 => {
            return serve_http(stream, plain, RequestOrder::Multiplexed, service, watcher).await;
        }
        Protocol::Tls => {}
    }
    let acceptor = TlsAcceptor::from(service.tls.config.load_full());
    match tokio::time::timeout(timeout, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => {
            let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            let order = if is_http2 { RequestOrder::Multiplexed } else { RequestOrder::Sequential };
            serve_http(stream, Peer { address, secure: true, api }, order, service, watcher).await;
        }
        Ok(Err(cause)) => {
            tracing::debug!(event = "tls_handshake_failed", %address, %cause, "TLS handshake failed")
        }
        Err(_) => tracing::debug!(event = "tls_handshake_timeout", %address, "TLS handshake timed out"),
    }
}

async fn serve_http<S>(stream: S, peer: Peer, order: RequestOrder, service: Arc<Service>, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let monitor = ConnectionMonitor::new(order);
    let timeouts = service.timeouts;
    let requests = Arc::clone(&monitor);
    // A connection with one request at a time needs no memory limit of its own.
    let memory = match order {
        RequestOrder::Sequential => None,
        RequestOrder::Multiplexed => Some(service.engine.request_memory().connection()),
    };
    let held = memory.clone();
    let answering = service_fn(move |request: http::Request<_>| {
        let service = Arc::clone(&service);
        let (serving, memory) = (requests.begin(), memory.clone());
        async move {
            let response = service.handle(request, peer, memory).await;
            if order == RequestOrder::Sequential {
                yield_to_ready_tasks().await;
            }
            drop(serving);
            Ok::<_, Infallible>(response)
        }
    });
    let io = TokioIo::new(MonitoredStream { stream, monitor: Arc::clone(&monitor) });
    match order {
        RequestOrder::Sequential => {
            let connection = http1_builder().serve_connection(io, answering);
            monitored(watcher.watch(connection), (&monitor, held.as_deref()), timeouts, peer).await;
        }
        RequestOrder::Multiplexed => {
            let connection = http2_builder().serve_connection(io, answering);
            monitored(watcher.watch(connection), (&monitor, held.as_deref()), timeouts, peer).await;
        }
    }
}

/// Yields once to the tasks that are ready.
///
/// Responses computed in one turn of the event loop are then sent directly after each other. A client with many
/// connections is woken by the first and finds the rest; sending each at once would wake it for every one, which costs
/// a quarter of the CPU time of a point read. Nothing waits for a timer or for another client.
async fn yield_to_ready_tasks() {
    let mut was_behind = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut was_behind, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Runs a connection until it ends or its monitor reports a timeout.
async fn monitored<C, E>(
    connection: C,
    (monitor, memory): (&ConnectionMonitor, Option<&ConnectionMemory>),
    timeouts: Timeouts,
    peer: Peer,
) where
    C: Future<Output = Result<(), E>>,
    E: std::fmt::Display,
{
    tokio::select! {
        biased;
        result = connection => if let Err(cause) = result {
            tracing::debug!(event = "connection_ended", address = %peer.address, %cause, "connection ended with an error");
        },
        () = monitor.expired(timeouts, memory) => tracing::debug!(event = "connection_timeout", address = %peer.address, "connection closed by a timeout"),
    }
}

/// The monitor handles slow headers; a timer per request would cost more than everything else here. One buffer for head
/// and body costs a copy of a kilobyte and avoids a vectored write.
fn http1_builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.header_read_timeout(None).writev(false).max_buf_size(HEADER_BYTES_MAX);
    builder
}

fn http2_builder() -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(HTTP2_STREAMS_MAX)
        .max_pending_accept_reset_streams(HTTP2_RESETS_MAX)
        .max_local_error_reset_streams(HTTP2_RESETS_MAX)
        .max_header_list_size(u32::try_from(HEADER_BYTES_MAX).unwrap_or(u32::MAX))
        .initial_connection_window_size(HTTP2_WINDOW_BYTES)
        .initial_stream_window_size(HTTP2_WINDOW_BYTES)
        .max_send_buf_size(HTTP2_SEND_BYTES)
        .keep_alive_interval(Some(HTTP2_PING_EVERY))
        .keep_alive_timeout(HTTP2_PING_ANSWER);
    builder
}

#[test]
fn first_bytes_tell_what_is_spoken() {
    for (first, protocol) in [
        (&b"\x16"[..], Some(Protocol::Tls)),
        (b"GET /", Some(Protocol::Http1)),
        (b"PO", Some(Protocol::Http1)),
        (b"PRI", Some(Protocol::Http2)),
        (b"PR", None),
        (b"P", None),
        (b"", None),
    ] {
        assert_eq!(Protocol::of(first), protocol, "{first:?}");
    }
}
