//! Requests written byte by byte: signed or not, complete or in parts.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a client waits for a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// Sends requests over plain HTTP/1.1, each on its own connection.
pub(crate) struct Client {
    address: SocketAddr,
    key: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().filter_map(|line| line.split_once(": "));
        headers.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Reads a response to its end; `None` if the connection ends before.
    pub(crate) fn read(stream: &mut impl Read) -> Option<Answer> {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            match stream.read(&mut byte) {
                Ok(1) => bytes.push(byte[0]),
                Ok(_) | Err(_) => return None,
            }
        }
        let head = String::from_utf8(bytes).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut answer = Answer { status, head, body: Vec::new() };
        let length = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
        answer.body = vec![0; length];
        stream.read_exact(&mut answer.body).ok()?;
        Some(answer)
    }
}

impl Client {
    pub(crate) fn new(address: SocketAddr, key: &str) -> Client {
        Client { address, key: BASE64_STANDARD.decode(key.trim()).unwrap() }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(RESPONSE_TIMEOUT)).unwrap();
        stream
    }

    /// Sends a signed request and reads the answer.
    #[track_caller]
    pub(crate) fn send(&self, verb: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut stream = self.connect();
        stream.write_all(self.head(verb, path, headers, body.len() as u64).as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        Answer::read(&mut stream).unwrap()
    }

    /// Sends a request without a credential.
    #[track_caller]
    pub(crate) fn unsigned(&self, verb: &str, path: &str) -> Answer {
        self.raw(&format!("{verb} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"))
    }

    /// Sends these bytes and reads one answer.
    #[track_caller]
    pub(crate) fn raw(&self, text: &str) -> Answer {
        let mut stream = self.connect();
        stream.write_all(text.as_bytes()).unwrap();
        Answer::read(&mut stream).unwrap()
    }

    /// The first lines of a signed request with a body of `length` bytes.
    pub(crate) fn head(&self, verb: &str, path: &str, headers: &[(&str, &str)], length: u64) -> String {
        let date = self.date();
        let authorization = self.authorization(verb, path, &date);
        let mut head = format!(
            "{verb} {path} HTTP/1.1\r\nhost: localhost\r\nx-ms-date: {date}\r\nauthorization: {authorization}\r\n\
             content-length: {length}\r\n"
        );
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        head
    }

    /// The server's time, which is the only relevant clock.
    pub(crate) fn date(&self) -> String {
        self.unsigned("GET", "/health/live").header("date").unwrap().to_owned()
    }

    /// The credential for a request at `date`.
    pub(crate) fn authorization(&self, verb: &str, path: &str, date: &str) -> String {
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let (kind, link) = match &segments[..] {
            [] => ("", String::new()),
            all if all.len() % 2 == 0 => (all[all.len() - 2], all.join("/")),
            [owner @ .., kind] => (*kind, owner.join("/")),
        };
        let payload = format!("{}\n{kind}\n{link}\n{}\n\n", verb.to_lowercase(), date.to_lowercase());
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).unwrap();
        mac.update(payload.as_bytes());
        let signature = BASE64_STANDARD.encode(mac.finalize().into_bytes());
        encoded(&format!("type=master&ver=1.0&sig={signature}"))
    }

    /// Makes a database `d` with a container `c`, keyed by `/pk`.
    #[track_caller]
    pub(crate) fn make_container(&self) {
        assert_eq!(self.send("POST", "/dbs", &[], br#"{"id":"d"}"#).status, 201);
        let definition = br#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
        assert_eq!(self.send("POST", "/dbs/d/colls", &[], definition).status, 201);
    }
}

pub(crate) fn encoded(text: &str) -> String {
    text.replace('%', "%25").replace('=', "%3d").replace('&', "%26").replace('+', "%2b").replace('/', "%2f")
}
