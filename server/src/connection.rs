//! One connection from its first byte to its end: TLS or plain, HTTP/1.1 or HTTP/2.

use crate::service::{Peer, Service};
use crate::settings::Timeouts;
use crate::watch::{Manner, Watch, Watched};
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
/// What every HTTP/2 connection without TLS begins with, as much of it as no other request begins with.
const HTTP2_OPENING: &[u8] = b"PRI";
/// How long to wait before looking again at an opening that came in pieces.
const OPENING_LOOK_EVERY: Duration = Duration::from_millis(1);
/// Largest URL and headers that are read, with room for the API's own, smaller bound to answer.
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// Streams of one HTTP/2 connection.
const HTTP2_STREAMS_MAX: u32 = 128;
/// Streams that a client may open and reset before it is cut off.
const HTTP2_RESETS_MAX: usize = 32;
/// Bytes of request bodies that an HTTP/2 connection may have under way.
const HTTP2_WINDOW_BYTES: u32 = 1024 * 1024;
/// Bytes of an answer that are kept for a stream that does not read.
const HTTP2_SEND_BYTES: usize = 256 * 1024;
/// How often a silent HTTP/2 client is asked whether it is there, and how long it may take to say so.
const HTTP2_PING_EVERY: Duration = Duration::from_secs(60);
const HTTP2_PING_ANSWER: Duration = Duration::from_secs(20);

/// What a client wants to speak, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opening {
    Tls,
    Http1,
    Http2,
}

impl Opening {
    /// `None` while more bytes are needed to tell.
    fn of(first: &[u8]) -> Option<Opening> {
        match first {
            [] => None,
            [TLS_HANDSHAKE_BYTE, ..] => Some(Opening::Tls),
            _ if first.starts_with(HTTP2_OPENING) => Some(Opening::Http2),
            _ if HTTP2_OPENING.starts_with(first) => None,
            _ => Some(Opening::Http1),
        }
    }

    /// Looks at the first bytes without taking them; `None` when the client has gone.
    async fn await_of(stream: &TcpStream) -> Option<Opening> {
        let mut first = [0; HTTP2_OPENING.len()];
        loop {
            match stream.peek(&mut first).await {
                Ok(0) | Err(_) => return None,
                Ok(count) => match Opening::of(&first[..count]) {
                    Some(opening) => return Some(opening),
                    // What has come is there at every look, so only time tells whether there is more.
                    None => tokio::time::sleep(OPENING_LOOK_EVERY).await,
                },
            }
        }
    }
}

/// Serves a connection until either side ends it.
pub(crate) async fn serve(stream: TcpStream, address: SocketAddr, service: Arc<Service>, watcher: Watcher) {
    let _ = stream.set_nodelay(true);
    let patience = service.timeouts.handshake;
    let Ok(Some(opening)) = tokio::time::timeout(patience, Opening::await_of(&stream)).await else { return };
    let plain = Peer { address, secure: false };
    match opening {
        Opening::Http1 => return serve_http(stream, plain, Manner::Sequential, service, watcher).await,
        Opening::Http2 => return serve_http(stream, plain, Manner::Multiplexed, service, watcher).await,
        Opening::Tls => {}
    }
    let acceptor = TlsAcceptor::from(service.tls.config.load_full());
    match tokio::time::timeout(patience, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => {
            let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            let manner = if is_http2 { Manner::Multiplexed } else { Manner::Sequential };
            serve_http(stream, Peer { address, secure: true }, manner, service, watcher).await;
        }
        Ok(Err(cause)) => {
            tracing::debug!(event = "tls_handshake_failed", %address, %cause, "TLS handshake failed")
        }
        Err(_) => tracing::debug!(event = "tls_handshake_timeout", %address, "TLS handshake timed out"),
    }
}

async fn serve_http<S>(stream: S, peer: Peer, manner: Manner, service: Arc<Service>, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let watch = Watch::new(manner);
    let timeouts = service.timeouts;
    let requests = Arc::clone(&watch);
    // One request at a time needs no bound beside those of all connections.
    let memory = match manner {
        Manner::Sequential => None,
        Manner::Multiplexed => Some(service.engine.request_memory().connection()),
    };
    let held = memory.clone();
    let answering = service_fn(move |request: http::Request<_>| {
        let service = Arc::clone(&service);
        let (serving, memory) = (requests.begin(), memory.clone());
        async move {
            let response = service.handle(request, peer, memory).await;
            if manner == Manner::Sequential {
                after_the_others().await;
            }
            drop(serving);
            Ok::<_, Infallible>(response)
        }
    });
    let io = TokioIo::new(Watched { stream, watch: Arc::clone(&watch) });
    match manner {
        Manner::Sequential => {
            let connection = http1_builder().serve_connection(io, answering);
            watched(watcher.watch(connection), (&watch, held.as_deref()), timeouts, peer).await;
        }
        Manner::Multiplexed => {
            let connection = http2_builder().serve_connection(io, answering);
            watched(watcher.watch(connection), (&watch, held.as_deref()), timeouts, peer).await;
        }
    }
}

/// Lets the tasks that are ready go first, once.
///
/// Answers that were worked out in one turn of the loop are so sent one right after the other: a client with many
/// connections is woken by the first and finds the rest, where sending each at once would wake it for every one, and
/// that costs a quarter of the processor time of a point read. Nothing waits for a timer or for another client.
async fn after_the_others() {
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

/// Carries a connection on until it ends or its watch loses patience.
async fn watched<C, E>(
    connection: C,
    (watch, memory): (&Watch, Option<&ConnectionMemory>),
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
        () = watch.expired(timeouts, memory) => tracing::debug!(event = "connection_timeout", address = %peer.address, "connection closed by a timeout"),
    }
}

/// Slow headers are the watch's business; a timer for each request would cost more than all else here. One buffer for
/// head and body is a copy of a kilobyte and spares the system the work of a list of buffers.
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
    for (first, opening) in [
        (&b"\x16"[..], Some(Opening::Tls)),
        (b"GET /", Some(Opening::Http1)),
        (b"PO", Some(Opening::Http1)),
        (b"PRI", Some(Opening::Http2)),
        (b"PR", None),
        (b"P", None),
        (b"", None),
    ] {
        assert_eq!(Opening::of(first), opening, "{first:?}");
    }
}
