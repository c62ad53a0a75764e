//! What the server answers by itself (health, metrics, certificate), and everything else through the REST door.

use crate::metrics::Metrics;
use bytes::Bytes;
use engine::Engine;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use rest::{ConnectionInfo, RestDoor};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Everything that answers requests.
pub(crate) struct Service {
    pub(crate) door: RestDoor,
    pub(crate) engine: Arc<Engine>,
    pub(crate) metrics: Metrics,
    pub(crate) authority_pem: String,
    /// Set when the server has begun to stop: not ready any more.
    pub(crate) stopping: AtomicBool,
}

/// Who is at the other end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pub(crate) secure: bool,
}

impl Service {
    pub(crate) async fn handle(&self, request: Request<Incoming>, peer: Peer) -> Response<Full<Bytes>> {
        let begun = Instant::now();
        let response = match self.own_answer(&request, peer) {
            Some(response) => response,
            None => self.door.handle(request, ConnectionInfo { secure: peer.secure }).await,
        };
        self.metrics.answered(response.status().as_u16(), begun.elapsed());
        response
    }

    fn own_answer(&self, request: &Request<Incoming>, peer: Peer) -> Option<Response<Full<Bytes>>> {
        let path = request.uri().path();
        // Data never lives under these names, so that the door sees all other paths untouched.
        if !(path.starts_with("/health") || path.starts_with("/metrics") || path.starts_with("/_explorer")) {
            return None;
        }
        if request.method() != Method::GET && request.method() != Method::HEAD {
            return Some(text(StatusCode::METHOD_NOT_ALLOWED, "only GET is allowed here\n"));
        }
        Some(match path {
            "/health/live" => text(StatusCode::OK, "live\n"),
            "/health/ready" => self.ready(),
            "/metrics" if peer.address.ip().is_loopback() => text(
                StatusCode::OK,
                &self.metrics.render(self.engine.health().is_ok(), self.engine.disk_bytes()),
            ),
            "/metrics" => text(StatusCode::FORBIDDEN, "metrics are given to this machine only\n"),
            "/_explorer/emulator.pem" => text(StatusCode::OK, &self.authority_pem),
            _ => text(StatusCode::NOT_FOUND, "nothing is here\n"),
        })
    }

    fn ready(&self) -> Response<Full<Bytes>> {
        if self.stopping.load(Ordering::SeqCst) {
            return text(StatusCode::SERVICE_UNAVAILABLE, "stopping\n");
        }
        match self.engine.health() {
            Ok(()) => text(StatusCode::OK, "ready\n"),
            Err(fault) => text(StatusCode::SERVICE_UNAVAILABLE, &format!("{fault}\n")),
        }
    }
}

fn text(status: StatusCode, body: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::copy_from_slice(body.as_bytes())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
