//! One connection from its first byte to its end: TLS or plain, HTTP/1.1 or HTTP/2.

use crate::service::{Peer, Service};
use crate::watch::{Manner, Watch, Watched};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::Watcher;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// The first byte of every TLS connection; no HTTP request begins with it.
const TLS_HANDSHAKE_BYTE: u8 = 0x16;
/// Largest URL and headers that are read, with room for the door's own, smaller bound to answer.
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

/// Serves a connection until either side ends it.
pub(crate) async fn serve(stream: TcpStream, address: SocketAddr, service: Arc<Service>, watcher: Watcher) {
    let _ = stream.set_nodelay(true);
    let patience = service.timeouts.handshake;
    let mut first = [0];
    let Ok(Ok(1)) = tokio::time::timeout(patience, stream.peek(&mut first)).await else { return };
    if first[0] != TLS_HANDSHAKE_BYTE {
        let peer = Peer { address, secure: false };
        return serve_http(stream, peer, Manner::Sequential, service, watcher).await;
    }
    let acceptor = TlsAcceptor::from(service.tls.config.load_full());
    match tokio::time::timeout(patience, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => {
            let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            let manner = if is_http2 { Manner::Multiplexed } else { Manner::Sequential };
            serve_http(stream, Peer { address, secure: true }, manner, service, watcher).await;
        }
        Ok(Err(cause)) => tracing::debug!(%address, %cause, "TLS handshake failed"),
        Err(_) => tracing::debug!(%address, "TLS handshake took too long"),
    }
}

async fn serve_http<S>(stream: S, peer: Peer, manner: Manner, service: Arc<Service>, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let watch = Watch::new(manner);
    let timeouts = service.timeouts;
    let answering = service_fn(|request: http::Request<_>| {
        let service = Arc::clone(&service);
        let serving = watch.begin(request.version());
        async move {
            let response = service.handle(request, peer).await;
            drop(serving);
            Ok::<_, Infallible>(response)
        }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    // Slow headers are the watch's business; a timer for each request would cost more than all else here. One
    // buffer for head and body is a copy of a kilobyte and spares the system the work of a list of buffers.
    builder.http1().header_read_timeout(None).writev(false).max_buf_size(HEADER_BYTES_MAX);
    builder
        .http2()
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
    let io = TokioIo::new(Watched { stream, watch: Arc::clone(&watch) });
    let connection = watcher.watch(builder.serve_connection(io, answering).into_owned());
    tokio::select! {
        result = connection => if let Err(cause) = result {
            tracing::debug!(address = %peer.address, %cause, "connection ended");
        },
        () = watch.expired(timeouts) => tracing::debug!(address = %peer.address, "connection was cut off for silence"),
    }
}
