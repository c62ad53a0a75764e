//! Accepts connections, bounded in number, and ends them in order when the server stops.

use crate::connection;
use crate::failure::Failure;
use crate::service::Service;
use hyper_util::server::graceful::GracefulShutdown;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

/// How long requests under way may take when the server stops.
const DRAIN_MAX: Duration = Duration::from_secs(10);
/// Pause after an accept that failed, e.g. for want of file handles.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Binds an address; a busy port is told with the flag that changes it.
pub(crate) async fn bind(address: SocketAddr, door: &'static str) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|cause| Failure::Unavailable {
        address: address.to_string(),
        door,
        hint: if cause.kind() == std::io::ErrorKind::AddrInUse {
            format!(
                "another program uses this port; choose another with --{door} {}:0 or --{door} off",
                address.ip()
            )
        } else {
            format!("choose another address with --{door} ADDR")
        },
        cause,
    })
}

/// Serves connections until `stop` ends, then lets those under way finish.
pub(crate) async fn serve(
    listener: TcpListener,
    service: Arc<Service>,
    tls: TlsAcceptor,
    connections_max: usize,
    stop: impl Future<Output = ()>,
) {
    let permits = Arc::new(Semaphore::new(connections_max));
    let graceful = GracefulShutdown::new();
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(cause) => {
                tracing::warn!(%cause, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
            service.metrics.connections_refused.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        service.metrics.connections_total.fetch_add(1, Ordering::Relaxed);
        service.metrics.connections_open.fetch_add(1, Ordering::Relaxed);
        let (service, tls, watcher) = (Arc::clone(&service), tls.clone(), graceful.watcher());
        tokio::spawn(async move {
            connection::serve(stream, address, Arc::clone(&service), tls, watcher).await;
            service.metrics.connections_open.fetch_sub(1, Ordering::Relaxed);
            drop(permit);
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN_MAX, graceful.shutdown()).await.is_err() {
        tracing::warn!("some connections did not end in time and were cut off");
    }
}
