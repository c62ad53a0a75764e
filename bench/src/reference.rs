//! The reference: the minimal work of a server for a point read. hyper, the HMAC check, one body from a map.
//!
//! It represents the limit of this machine; the server's rate is reported as a share of it.

use crate::Result;
use crate::documents;
use crate::signature::Signer;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::collections::HashMap;
use std::convert::Infallible;
use std::io::Write;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Serves plain HTTP on one port and TLS on another, and prints both.
#[allow(clippy::print_stdout)] // the driver waits for this line
pub(crate) async fn serve(count: usize) -> Result<()> {
    let documents: HashMap<String, Bytes> =
        (0..count).map(|number| (documents::id(number), Bytes::from(documents::json(number)))).collect();
    let documents = Arc::new(documents);
    let signer = Arc::new(Signer::new()?);
    let plain = TcpListener::bind("127.0.0.1:0").await?;
    let secure = TcpListener::bind("127.0.0.1:0").await?;
    println!("ready {} {}", plain.local_addr()?, secure.local_addr()?);
    std::io::stdout().flush()?;
    let acceptor = TlsAcceptor::from(Arc::new(server_config()?));
    loop {
        let (documents, signer) = (Arc::clone(&documents), Arc::clone(&signer));
        tokio::select! {
            accepted = plain.accept() => {
                let stream = accepted?.0;
                stream.set_nodelay(true)?;
                tokio::spawn(async move { connection(TokioIo::new(stream), documents, signer).await });
            }
            accepted = secure.accept() => {
                let stream = accepted?.0;
                stream.set_nodelay(true)?;
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        connection(TokioIo::new(stream), documents, signer).await;
                    }
                });
            }
        }
    }
}

async fn connection<I>(io: I, documents: Arc<HashMap<String, Bytes>>, signer: Arc<Signer>)
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
{
    let service = service_fn(|request: Request<Incoming>| {
        let response = answer(&request, &documents, &signer);
        async move { Ok::<_, Infallible>(response) }
    });
    let _ = http1::Builder::new().serve_connection(io, service).await;
}

fn answer(
    request: &Request<Incoming>,
    documents: &HashMap<String, Bytes>,
    signer: &Signer,
) -> Response<Full<Bytes>> {
    let link = &request.uri().path()[1..];
    let sent = request.headers().get("authorization").map(http::HeaderValue::as_bytes);
    let date = request.headers().get("x-ms-date").and_then(|date| date.to_str().ok()).unwrap_or_default();
    let expected = signer.at(date).authorization("get", "docs", link);
    let id = link.rsplit('/').next().unwrap_or_default();
    let (status, body) = match documents.get(id) {
        Some(body) if sent == Some(expected.as_bytes()) => (200, body.clone()),
        Some(_) => (401, Bytes::new()),
        None => (404, Bytes::new()),
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
    response
}

fn server_config() -> Result<ServerConfig> {
    let key = rcgen::KeyPair::generate()?;
    let certificate = rcgen::CertificateParams::new(vec!["localhost".to_owned()])?.self_signed(&key)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key)?)
}
