//! Requests of commands to the server on this machine.
//!
//! The server is at the address of the setting `nosql`. The key is one of the data folder or, if it has none, the
//! well-known one. It never leaves the machine: the address must be loopback.

use crate::failure::Failure;
use crate::keys::KeyFile;
use crate::screen::EMULATOR_KEY;
use crate::settings::{Endpoint, Settings};
use engine::KeyName;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// How long an answer may take; a split waits for the writes in progress.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// Limit of the size of an answer.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// A request.
#[derive(Debug, Default)]
pub(super) struct LocalRequest<'a> {
    pub(super) verb: &'a str,
    pub(super) path: &'a str,
    /// Names and values; these are not checked, so callers pass no line breaks.
    pub(super) headers: Vec<(&'a str, String)>,
    pub(super) body: &'a [u8],
}

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LocalAnswer {
    pub(super) status: u16,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl LocalAnswer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| &value[..])
    }

    /// The message of a refusal.
    pub(super) fn refusal(&self) -> Failure {
        Failure::Failed(match self.status {
            401 => format!(
                "{}\n  the key is that of the data folder: is --data (or the settings file) the same as for the server?",
                self.message()
            ),
            _ => self.message(),
        })
    }

    /// The text of a refusal.
    pub(super) fn message(&self) -> String {
        let body = serde_json::from_slice::<serde_json::Value>(&self.body).unwrap_or_default();
        body["message"].as_str().unwrap_or("the server refused").to_owned()
    }
}

/// Sends a request and reads the answer.
pub(super) fn send(settings: &Settings, request: &LocalRequest<'_>) -> Result<LocalAnswer, Failure> {
    let address = address(settings)?;
    let unreachable = |cause: std::io::Error| {
        let hint = "is it running, and is --nosql (or the settings file) the same as for the server?";
        Failure::Failed(format!("cannot reach a server at {address}: {cause}\n  {hint}"))
    };
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5)).map_err(unreachable)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).map_err(unreachable)?;
    let LocalRequest { verb, path, headers, body } = request;
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let head = format!(
        "{verb} {path} HTTP/1.1\r\nHost: {address}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).map_err(unreachable)?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).map_err(unreachable)?;
    read_answer(&answer)
}

fn read_answer(answer: &[u8]) -> Result<LocalAnswer, Failure> {
    let foreign = || Failure::Failed("the answer is not that of a perihelion server".to_owned());
    let head_end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").ok_or_else(foreign)?;
    let head = std::str::from_utf8(&answer[..head_end]).map_err(|_| foreign())?;
    let mut lines = head.split("\r\n");
    let status =
        lines.next().filter(|line| line.starts_with("HTTP/")).and_then(|line| line.split(' ').nth(1));
    let status = status.and_then(|status| status.parse().ok()).ok_or_else(foreign)?;
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    Ok(LocalAnswer {
        status,
        headers: lines.filter_map(header).collect(),
        body: answer[head_end + 4..].to_vec(),
    })
}

/// Where the server on this machine listens.
fn address(settings: &Settings) -> Result<SocketAddr, Failure> {
    let Endpoint::At(mut address) = settings.nosql else {
        return Err(Failure::Configuration(
            "the setting \"nosql\" is off: there is no server to ask".to_owned(),
        ));
    };
    if address.port() == 0 {
        let text = "the setting \"nosql\" has port 0: name the port that the server has printed";
        return Err(Failure::Configuration(text.to_owned()));
    }
    if !address.ip().is_unspecified() && !address.ip().is_loopback() {
        // The key is sent without TLS.
        let text = format!(
            "the server listens on {address} only, which is not loopback: send the request with another program, see \
             docs/control.md"
        );
        return Err(Failure::Configuration(text));
    }
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() {
            Ipv4Addr::LOCALHOST.into()
        } else {
            Ipv6Addr::LOCALHOST.into()
        });
    }
    Ok(address)
}

/// The key of the server, as text.
pub(super) fn key(settings: &Settings) -> Result<String, Failure> {
    let keys = KeyFile::of(&settings.data).read()?.unwrap_or_default();
    let primary = keys.into_iter().find(|key| key.name == KeyName::Primary);
    Ok(primary.map_or_else(|| EMULATOR_KEY.to_owned(), |key| key.text.reveal().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_status_headers_and_body() {
        let read = |text: &str| read_answer(text.as_bytes());
        let answer = read("HTTP/1.1 200 OK\r\nX-A: y: z\r\n\r\n{\"a\":1}").unwrap();
        assert_eq!(
            (answer.status, answer.header("x-a"), &answer.body[..]),
            (200, Some("y: z"), &b"{\"a\":1}"[..])
        );
        let refused = read("HTTP/1.1 404 Not Found\r\n\r\n{\"message\":\"absent\"}").unwrap();
        assert_eq!((refused.status, refused.refusal().to_string()), (404, "absent".to_owned()));
        for text in ["", "SSH-2.0\r\n", "<html>\r\n\r\n"] {
            assert!(read(text).unwrap_err().to_string().contains("perihelion"), "{text}");
        }
    }
}
