//! TLS with the local authority and with a user's certificate, renewed while the server runs.

use crate::client::Answer;
use crate::process::{Server, run, text};
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

/// Sends a request over TLS, trusting `trusted` only; `None` if the server's certificate is not trusted.
fn ask(server: &Server, name: &str, trusted: &str) -> Option<Answer> {
    let request = "GET /ready HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    ask_at(server.address(), name, trusted, request)
}

/// Sends this request to `address` over TLS, trusting `trusted` only.
pub(crate) fn ask_at(address: SocketAddr, name: &str, trusted: &str, request: &str) -> Option<Answer> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(builder.with_root_certificates(roots).with_no_client_auth());
    let connection = ClientConnection::new(config, ServerName::try_from(name.to_owned()).unwrap()).unwrap();
    let mut stream = StreamOwned::new(connection, TcpStream::connect(address).unwrap());
    stream.write_all(request.as_bytes()).ok()?;
    Answer::read(&mut stream)
}

/// Writes a new certificate for `name` and returns its text.
fn write_certificate(folder: &Path, name: &str) -> String {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap();
    std::fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
    std::fs::write(folder.join("chain.pem"), certificate.pem()).unwrap();
    certificate.pem()
}

#[test]
fn the_local_authority_is_enough_to_trust_the_server_by_any_of_its_names() {
    let folder = tempfile::tempdir().unwrap();
    let data = ["--data", text(folder.path()), "--nosql", "127.0.0.1:0"];
    let server = Server::start(&[&["serve", "--public-endpoint", "https://db.example/"], &data[..]].concat());
    let authority = server.client().unsigned("GET", "/_explorer/emulator.pem").text();
    for name in ["localhost", "127.0.0.1", "db.example"] {
        assert_eq!(ask(&server, name, &authority).unwrap().status, 200, "{name}");
    }
    assert!(ask(&server, "other.example", &authority).is_none());
    server.stop();
    let again = Server::start(&[&["serve"], &data[..]].concat());
    assert_eq!(ask(&again, "localhost", &authority).unwrap().status, 200, "the authority stays");
}

#[test]
fn a_damaged_authority_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let serve = ["serve", "--data", text(folder.path()), "--nosql", "127.0.0.1:0"];
    Server::start(&serve).stop();
    let other = KeyPair::generate().unwrap().serialize_pem();
    for (name, content) in
        [("authority.pem", "junk\n"), ("authority-key.pem", "junk\n"), ("authority-key.pem", &other)]
    {
        let path = folder.path().join("tls").join(name);
        let kept = std::fs::read(&path).unwrap();
        std::fs::write(&path, content).unwrap();
        let refused = run(&serve);
        let printed = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(78), "{printed}");
        assert!(printed.contains("tls/authority") && printed.contains("cannot be used"), "{printed}");
        std::fs::write(&path, kept).unwrap();
    }
    Server::start(&serve).stop();
}

#[test]
fn a_renewed_certificate_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let first = write_certificate(folder.path(), "db.example");
    let (chain, key) = (folder.path().join("chain.pem"), folder.path().join("key.pem"));
    let data = folder.path().join("data");
    let server = Server::start(&[
        "serve",
        "--data",
        text(&data),
        "--nosql",
        "127.0.0.1:0",
        "--tls-certificate",
        text(&chain),
        "--tls-key",
        text(&key),
    ]);
    assert_eq!(ask(&server, "db.example", &first).unwrap().status, 200);
    let second = write_certificate(folder.path(), "db.example");
    server.wait_until("the new certificate", |server| ask(server, "db.example", &second).is_some());
    assert!(ask(&server, "db.example", &first).is_none());
    std::fs::write(&chain, "damaged").unwrap();
    server.wait_until("the warning", |_| ask(&server, "db.example", &second).is_some());
    assert_eq!(ask(&server, "db.example", &second).unwrap().status, 200, "a damaged file changes nothing");
}
