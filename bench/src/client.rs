//! A light HTTP/1.1 client: one request at a time on a keep-alive connection, plain or TLS.
//!
//! It must cost less than the measured server, so it writes prepared bytes and parses only status and length.

use crate::Result;
use rustls::ClientConfig;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

trait Stream: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Stream for T {}

pub(crate) struct Client {
    stream: Box<dyn Stream>,
    buffer: Vec<u8>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    head: usize,
    pub(crate) body: std::ops::Range<usize>,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr, secure: bool) -> Result<Client> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let stream: Box<dyn Stream> = if secure {
            let connector = TlsConnector::from(Arc::new(trusting_config()?));
            Box::new(connector.connect(ServerName::try_from("localhost")?, stream).await?)
        } else {
            Box::new(stream)
        };
        Ok(Client { stream, buffer: Vec::with_capacity(16 * 1024) })
    }

    /// Sends a request and reads the complete response.
    pub(crate) async fn send(&mut self, request: &[u8]) -> Result<Answer> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err("the server closed the connection".into());
            }
            if let Some(answer) = whole(&self.buffer)? {
                return Ok(answer);
            }
        }
    }

    /// The value of a header, by its name in lower case.
    pub(crate) fn header(&self, answer: &Answer, name: &str) -> Option<String> {
        let head = std::str::from_utf8(&self.buffer[..answer.head]).ok()?;
        let value = |line: &str| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        };
        head.split("\r\n").find_map(value)
    }

    pub(crate) fn body(&self, answer: &Answer) -> String {
        String::from_utf8_lossy(&self.buffer[answer.body.clone()]).into_owned()
    }
}

/// The end of a body that is sent in chunks.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The response, once its body is complete.
fn whole(buffer: &[u8]) -> Result<Option<Answer>> {
    let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&buffer[..end])?;
    let status = head.get(9..12).ok_or("no status line")?.parse()?;
    let mut length = 0;
    for line in head.split("\r\n") {
        let Some((name, value)) = line.split_once(':') else { continue };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse()?;
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            // Only a peer sends chunks, and no body that is measured contains this end.
            let Some(rest) = buffer[end + 4..].strip_suffix(LAST_CHUNK) else { return Ok(None) };
            length = rest.len();
        }
    }
    let body = end + 4..end + 4 + length;
    Ok((buffer.len() >= body.end).then_some(Answer { status, head: end, body }))
}

/// Trusts any certificate: the peer is a server this program started.
#[derive(Debug)]
struct TrustAll(Arc<rustls::crypto::CryptoProvider>);

fn trusting_config() -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    Ok(builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(TrustAll(provider)))
        .with_no_client_auth())
}

impl ServerCertVerifier for TrustAll {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
