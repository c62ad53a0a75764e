//! Answers health, metrics and certificate requests; passes the others to the API of the socket.

use crate::backoff::Backoff;
use crate::listener::Api;
use crate::metrics::{self, Metrics};
use crate::settings::Timeouts;
use crate::tls::Tls;
use api_http::{AnswerBody, ConnectionInfo};
use bytes::Bytes;
use engine::{ConnectionMemory, Engine};
use http::header::{CONTENT_TYPE, HOST, HeaderValue};
use http::uri::Authority;
use http::{Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use nosql::NosqlApi;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use table::TableApi;

/// Shared state of all request handlers.
pub(crate) struct Service {
    pub(crate) nosql: NosqlApi,
    pub(crate) table: TableApi,
    pub(crate) engine: Arc<Engine>,
    pub(crate) metrics: Metrics,
    pub(crate) tls: Arc<Tls>,
    /// Whether requests without TLS are accepted from other machines too.
    pub(crate) plain_from_everywhere: bool,
    pub(crate) timeouts: Timeouts,
    /// Delays responses to repeated wrong credentials; `None` if disabled.
    pub(crate) backoff: Option<Backoff>,
    /// Set at shutdown: the server is no longer ready.
    pub(crate) stopping: AtomicBool,
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pub(crate) secure: bool,
    /// The API that it has connected to.
    pub(crate) api: Api,
}

impl Peer {
    /// Whether it is a program on the same machine, also if an IPv6 socket accepted its IPv4 connection.
    pub(crate) fn is_this_machine(self) -> bool {
        self.address.ip().to_canonical().is_loopback()
    }

    /// Whether the transport is allowed: TLS, loopback, or plain HTTP by setting.
    fn has_allowed_transport(self, plain_from_everywhere: bool) -> bool {
        self.secure || plain_from_everywhere || self.is_this_machine()
    }
}

impl Service {
    pub(crate) async fn handle(
        &self,
        request: Request<Incoming>,
        peer: Peer,
        memory: Option<Arc<ConnectionMemory>>,
    ) -> Response<AnswerBody> {
        let begun = Instant::now();
        // Over HTTP/1.1 the connection omits it by itself.
        let has_no_body = request.method() == Method::HEAD && request.version() >= Version::HTTP_2;
        let mut response = match self.own_answer(&request, peer) {
            Some(response) => response,
            None => self.api_answer(request, peer, memory).await,
        };
        if is_authentication_failure(&response) {
            self.delay_response(peer).await;
        }
        if has_no_body {
            *response.body_mut() = AnswerBody::default();
        }
        self.metrics.answered(response.status().as_u16(), begun.elapsed());
        response
    }

    async fn api_answer(
        &self,
        request: Request<Incoming>,
        peer: Peer,
        memory: Option<Arc<ConnectionMemory>>,
    ) -> Response<AnswerBody> {
        let connection = ConnectionInfo { secure: peer.secure, peer: peer.address.ip(), memory };
        match peer.api {
            Api::Nosql if request.uri().path().starts_with(control::PREFIX) => {
                let (parts, _) = request.into_parts();
                control::handle(&self.engine, &parts).await.map(AnswerBody::new)
            }
            Api::Nosql => self.nosql.handle(request, connection).await,
            Api::Table => self.table.handle(request, connection).await,
        }
    }

    /// Delays the response to a caller that has sent too many wrong credentials.
    async fn delay_response(&self, peer: Peer) {
        self.metrics.auth_failures.inc();
        let delay =
            self.backoff.as_ref().and_then(|backoff| backoff.failed(peer.address.ip(), Instant::now()));
        if let Some(delay) = delay {
            tokio::time::sleep(delay).await;
        }
    }

    fn own_answer(&self, request: &Request<Incoming>, peer: Peer) -> Option<Response<AnswerBody>> {
        if !peer.has_allowed_transport(self.plain_from_everywhere) {
            return Some(text(StatusCode::FORBIDDEN, "this server requires https\n"));
        }
        if !has_one_host(request) {
            return Some(text(StatusCode::BAD_REQUEST, "a request must name exactly one host\n"));
        }
        let path = request.uri().path();
        // The APIs use none of these names, so they see all other paths unchanged.
        let is_own = match peer.api {
            Api::Nosql => {
                path.starts_with("/health")
                    || path == "/ready"
                    || path.starts_with("/metrics")
                    || path.starts_with("/_explorer")
            }
            // A table may have any other of the names.
            Api::Table => matches!(path, "/health/live" | "/health/ready" | "/_explorer/emulator.pem"),
        };
        if !is_own {
            return None;
        }
        if request.method() != Method::GET && request.method() != Method::HEAD {
            return Some(text(StatusCode::METHOD_NOT_ALLOWED, "only GET is allowed here\n"));
        }
        Some(match path {
            "/health/live" => text(StatusCode::OK, "live\n"),
            // The second path is the emulator's.
            "/health/ready" | "/ready" => self.ready(),
            // A page in a local browser can resolve its own host name to this address, but cannot send another host
            // name than its own.
            "/metrics" if peer.is_this_machine() && names_this_machine(request) => self.rendered_metrics(),
            "/metrics" => text(StatusCode::FORBIDDEN, "metrics are available on this machine only\n"),
            "/_explorer/emulator.pem" => text(StatusCode::OK, &self.tls.trust_pem),
            _ => text(StatusCode::NOT_FOUND, "not found\n"),
        })
    }

    fn rendered_metrics(&self) -> Response<AnswerBody> {
        match self.metrics.render() {
            Ok(rendered) => {
                let mut response = text(StatusCode::OK, &rendered);
                let kind = HeaderValue::from_static(metrics::CONTENT_TYPE);
                response.headers_mut().insert(CONTENT_TYPE, kind);
                response
            }
            Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error}\n")),
        }
    }

    fn ready(&self) -> Response<AnswerBody> {
        if self.stopping.load(Ordering::SeqCst) {
            return text(StatusCode::SERVICE_UNAVAILABLE, "stopping\n");
        }
        match self.engine.health() {
            Ok(()) => text(StatusCode::OK, "ready\n"),
            Err(fault) => text(StatusCode::SERVICE_UNAVAILABLE, &format!("{fault}\n")),
        }
    }
}

/// Whether a caller was not authenticated. The Table API says that with another status in some accounts.
fn is_authentication_failure(response: &Response<AnswerBody>) -> bool {
    match response.status() {
        StatusCode::UNAUTHORIZED => true,
        // Other statuses need no search in the headers, which a point read would pay for.
        StatusCode::FORBIDDEN => {
            response.headers().get("x-ms-error-code").is_some_and(|code| code == "AuthenticationFailed")
        }
        _ => false,
    }
}

/// Whether a request names exactly one host as HTTP requires: a proxy and this server could interpret two names
/// differently.
fn has_one_host<B>(request: &Request<B>) -> bool {
    let count = request.headers().get_all(HOST).iter().count();
    match request.version() {
        Version::HTTP_11 => count == 1,
        _ => count <= 1,
    }
}

/// Whether the host name in a request always means the local machine.
fn names_this_machine<B>(request: &Request<B>) -> bool {
    let host = match request.uri().authority() {
        Some(authority) => Some(authority.clone()),
        None => request.headers().get(HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok()),
    };
    host.is_some_and(|host| {
        let name = host.host().trim_matches(['[', ']']);
        let is_loopback = name.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback());
        is_loopback || name.eq_ignore_ascii_case("localhost")
    })
}

fn text(status: StatusCode, body: &str) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::new(Bytes::copy_from_slice(body.as_bytes())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

#[test]
fn metrics_are_for_names_of_this_machine() {
    let request = |uri: &str, host: &str| Request::builder().uri(uri).header(HOST, host).body(()).unwrap();
    for (uri, host, near) in [
        ("/metrics", "127.0.0.1:8081", true),
        ("/metrics", "LOCALHOST", true),
        ("/metrics", "[::1]:8081", true),
        ("/metrics", "evil.example", false),
        ("/metrics", "evil.example:8081", false),
        ("/metrics", "127.0.0.1.evil.example", false),
        ("/metrics", "localhost@evil.example", false),
        ("/metrics", "", false),
        ("http://evil.example/metrics", "127.0.0.1", false),
        ("http://127.0.0.1/metrics", "127.0.0.1", true),
    ] {
        assert_eq!(names_this_machine(&request(uri, host)), near, "{uri} {host}");
    }
}

#[test]
fn a_request_names_its_host_once() {
    let request = |version, hosts: &[&str]| {
        let request = Request::builder().version(version);
        hosts.iter().fold(request, |request, host| request.header(HOST, *host)).body(()).unwrap()
    };
    assert!(has_one_host(&request(Version::HTTP_11, &["a"])));
    assert!(!has_one_host(&request(Version::HTTP_11, &[])));
    assert!(!has_one_host(&request(Version::HTTP_11, &["a", "a"])));
    assert!(has_one_host(&request(Version::HTTP_2, &[])) && has_one_host(&request(Version::HTTP_10, &[])));
    assert!(!has_one_host(&request(Version::HTTP_2, &["a", "b"])));
}

#[test]
fn only_this_machine_may_do_without_tls() {
    let peer = |address: &str, secure| Peer { address: address.parse().unwrap(), secure, api: Api::Nosql };
    for (address, near) in [
        ("127.0.0.1:5", true),
        ("[::1]:5", true),
        ("[::ffff:127.0.0.1]:5", true),
        ("10.0.0.7:5", false),
        ("[fe80::1]:5", false),
    ] {
        assert_eq!(peer(address, false).has_allowed_transport(false), near, "{address}");
        assert!(
            peer(address, true).has_allowed_transport(false)
                && peer(address, false).has_allowed_transport(true),
            "{address}"
        );
    }
}
