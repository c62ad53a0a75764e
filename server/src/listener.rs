//! Accepts connections, bounded in number, and drains them at shutdown.

use crate::connection;
use crate::failure::Failure;
use crate::mode::Mode;
use crate::service::Service;
use hyper_util::server::graceful::GracefulShutdown;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// Longest time running requests may take at shutdown. The rest of ten seconds is for closing the store.
const DRAIN_MAX: Duration = Duration::from_secs(8);
/// Pause after a failed accept, e.g. for lack of file handles.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The second port of the emulator's NoSQL API.
const EMULATOR_PORT: u16 = 8903;

/// The port of the storage emulator's table service.
const STORAGE_EMULATOR_PORT: u16 = 10002;

/// The API that a socket serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    Nosql,
    Table,
}

impl Api {
    /// The name of its setting.
    fn setting(self) -> &'static str {
        match self {
            Api::Nosql => "nosql",
            Api::Table => "table",
        }
    }

    /// The port that an emulator has besides the main one.
    fn emulator_port(self) -> u16 {
        match self {
            Api::Nosql => EMULATOR_PORT,
            Api::Table => STORAGE_EMULATOR_PORT,
        }
    }
}

/// The sockets of an API.
pub(crate) struct Bound {
    api: Api,
    /// The address published to clients.
    pub(crate) main: SocketAddr,
    /// An additional port that is used by another program.
    pub(crate) taken: Option<SocketAddr>,
    listeners: Vec<TcpListener>,
}

impl Bound {
    /// Binds `address`. In development the emulator's second port is bound too, unless a free port is wanted: then
    /// several servers may run side by side.
    pub(crate) async fn at(mode: Mode, api: Api, address: SocketAddr) -> Result<Bound, Failure> {
        let first = bind(address, api.setting()).await?;
        let main = first.local_addr().map_err(|error| Failure::Failed(error.to_string()))?;
        let mut bound = Bound { api, main, taken: None, listeners: vec![first] };
        if let Some(second) = second_address(mode, api, address) {
            match TcpListener::bind(second).await {
                Ok(listener) => bound.listeners.push(listener),
                Err(_) => bound.taken = Some(second),
            }
        }
        Ok(bound)
    }

    /// The addresses other than the main one.
    pub(crate) fn others(&self) -> impl Iterator<Item = SocketAddr> {
        self.listeners
            .iter()
            .filter_map(|listener| listener.local_addr().ok())
            .filter(|other| *other != self.main)
    }
}

/// The emulator's second address, next to `address` in development.
fn second_address(mode: Mode, api: Api, address: SocketAddr) -> Option<SocketAddr> {
    let port = api.emulator_port();
    let is_wanted = mode == Mode::Dev && address.port() != 0 && address.port() != port;
    is_wanted.then(|| SocketAddr::new(address.ip(), port))
}

/// Binds an address; the failure for a busy port names the flag that changes it.
async fn bind(address: SocketAddr, api: &'static str) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|cause| Failure::Unavailable {
        address: address.to_string(),
        api,
        hint: if cause.kind() == std::io::ErrorKind::AddrInUse {
            format!("another program uses this port; choose another with --{api} {}:0", address.ip())
        } else {
            format!("choose another address with --{api} ADDR")
        },
        cause,
    })
}

/// Serves connections until `stop` completes, then waits for running requests.
pub(crate) async fn serve(
    bound: Vec<Bound>,
    service: Arc<Service>,
    connections_max: usize,
    stop: impl Future<Output = ()>,
) {
    let permits = Arc::new(Semaphore::new(connections_max.min(Semaphore::MAX_PERMITS)));
    let (stopping, stopped) = watch::channel(());
    let mut listening = JoinSet::new();
    for Bound { api, listeners, .. } in bound {
        for listener in listeners {
            let (service, permits) = (Arc::clone(&service), Arc::clone(&permits));
            listening.spawn(serve_one((listener, api), service, permits, stopped.clone()));
        }
    }
    drop(stopped);
    stop.await;
    drop(stopping);
    listening.join_all().await;
}

/// Serves one socket until the sender of `stopped` is dropped.
async fn serve_one(
    (listener, api): (TcpListener, Api),
    service: Arc<Service>,
    permits: Arc<Semaphore>,
    mut stopped: watch::Receiver<()>,
) {
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.changed() => break,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(cause) => {
                tracing::warn!(event = "accept_failed", %cause, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
            service.metrics.connections_refused.inc();
            continue;
        };
        service.metrics.connections.inc();
        service.metrics.connections_open.inc();
        let (service, watcher) = (Arc::clone(&service), graceful.watcher());
        // Boxed, because a task is moved several times when it is started and when it ends, and this one is large.
        tokio::spawn(Box::pin(async move {
            connection::serve(stream, (address, api), Arc::clone(&service), watcher).await;
            service.metrics.connections_open.dec();
            drop(permit);
        }));
    }
    drop(listener);
    if tokio::time::timeout(DRAIN_MAX, graceful.shutdown()).await.is_err() {
        tracing::warn!(event = "connections_aborted", "connections that did not end in time were closed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn development_has_the_emulator_s_second_port_unless_any_port_will_do() {
        let second = |mode, address: &str| second_address(mode, Api::Nosql, address.parse().unwrap());
        let expected = "127.0.0.1:8903".parse().ok();
        assert_eq!(second(Mode::Dev, "127.0.0.1:8081"), expected);
        assert_eq!(second(Mode::Dev, "127.0.0.1:9000"), expected);
        assert_eq!(second(Mode::Dev, "[::1]:9000"), "[::1]:8903".parse().ok());
        for (mode, address) in
            [(Mode::Dev, "127.0.0.1:0"), (Mode::Dev, "127.0.0.1:8903"), (Mode::Serve, "127.0.0.1:8081")]
        {
            assert_eq!(second(mode, address), None, "{address}");
        }
        let table = second_address(Mode::Dev, Api::Table, "127.0.0.1:8902".parse().unwrap());
        assert_eq!(table, "127.0.0.1:10002".parse().ok());
    }
}
