//! Clients that are slow, flood or disconnect: they are disconnected, others continue, and memory stays bounded.
//!
//! Timeouts are short, so that the tests are fast. The tests wait for events on a socket or for values of the server's
//! metrics.

use crate::client::{Answer, Client};
use crate::process::{EMULATOR_KEY, Server};
use rustix::process::{Resource, getrlimit};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// Pause between the bytes of a slow client.
const DRIP: Duration = Duration::from_millis(20);
/// Bytes after which a test stops waiting to be disconnected.
const DRIPS_MAX: usize = 2_000;
/// Connections allowed in addition to the idle ones, for the requests of the test.
const SPARE: usize = 50;
const MEBIBYTE: u64 = 1024 * 1024;

/// A server with short timeouts.
fn hasty(arguments: &[&str]) -> Server {
    let times = ["--handshake-timeout-ms", "300", "--header-timeout-ms", "300", "--body-timeout-ms", "300"];
    Server::dev(&[&times[..], arguments].concat())
}

/// Whether the server has closed the connection; waits one pause for it.
fn is_cut(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(DRIP)).unwrap();
    match stream.read(&mut [0; 4096]) {
        Ok(count) => count == 0,
        Err(cause) => !matches!(cause.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    }
}

/// Sends `bytes` one by one until the server closes the connection; returns how many were sent.
fn drip(stream: &mut TcpStream, bytes: impl Iterator<Item = u8>) -> usize {
    for (count, byte) in bytes.take(DRIPS_MAX).enumerate() {
        if stream.write_all(&[byte]).is_err() || is_cut(stream) {
            return count;
        }
    }
    panic!("nobody cut the connection off");
}

#[test]
fn headers_that_drip_are_cut_off_while_others_are_served() {
    let server = hasty(&[]);
    let mut slow = server.client().connect();
    let header = b"GET / HTTP/1.1\r\nx: ".iter().copied().chain(std::iter::repeat(b'y'));
    let dripping = std::thread::spawn(move || drip(&mut slow, header));
    while !dripping.is_finished() {
        server.assert_serves();
    }
    assert!(dripping.join().unwrap() > 0);
    server.wait_until_alone();
}

#[test]
fn a_connection_that_says_nothing_or_half_a_handshake_is_cut_off() {
    let server = hasty(&[]);
    for beginning in [&b""[..], b"\x16", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", b"G", b"PRI * HTTP/2.0\r\n"]
    {
        let mut stream = server.client().connect();
        stream.write_all(beginning).unwrap();
        let mut rest = Vec::new();
        // The connection ends, with or without a response before.
        let _ = stream.read_to_end(&mut rest);
        let mut broken = server.client().connect();
        broken.write_all(beginning).unwrap();
        broken.shutdown(Shutdown::Both).unwrap();
    }
    server.wait_until_alone();
    server.assert_serves();
}

#[test]
fn a_body_that_drips_is_refused_and_its_connection_closed() {
    let server = hasty(&[]);
    let client = server.client();
    client.make_container();
    let head =
        client.head("POST", "/dbs/d/colls/c/docs", &[("x-ms-documentdb-partitionkey", "[\"k\"]")], 100_000);
    let mut slow = client.connect();
    slow.write_all(head.as_bytes()).unwrap();
    drip(&mut slow, std::iter::repeat(b' '));
    server.wait_until_alone();
    server.assert_serves();
}

#[test]
fn an_answer_that_nobody_takes_ends_the_connection() {
    let server = Server::dev(&["--idle-timeout-ms", "500"]);
    let client = server.client();
    client.make_container();
    let item = format!("{{\"id\":\"big\",\"pk\":\"k\",\"text\":\"{}\"}}", "x".repeat(1_900_000));
    let key = [("x-ms-documentdb-partitionkey", "[\"k\"]")];
    assert_eq!(client.send("POST", "/dbs/d/colls/c/docs", &key, item.as_bytes()).status, 201);
    let request = client.head("GET", "/dbs/d/colls/c/docs/big", &key, 0);
    let before = server.resident_bytes();
    let mut deaf: Vec<TcpStream> = (0..20).map(|_| client.connect()).collect();
    for stream in &mut deaf {
        // More responses than all buffers can hold.
        stream.write_all(request.repeat(20).as_bytes()).unwrap();
    }
    server.wait_until_alone();
    let grown = server.resident_bytes().saturating_sub(before);
    assert!(grown < 200 * MEBIBYTE, "{grown} bytes");
    server.assert_serves();
    for mut stream in deaf {
        let mut received = 0;
        let mut bytes = vec![0; 1 << 20];
        while let Ok(count @ 1..) = stream.read(&mut bytes) {
            received += count;
        }
        assert!(received < 20 * item.len(), "the connection was not cut off");
    }
}

#[test]
fn a_gigabyte_is_refused_before_it_is_read() {
    let server = Server::dev(&[]);
    let client = server.client();
    client.make_container();
    let before = server.resident_bytes();
    let key = [("x-ms-documentdb-partitionkey", "[\"k\"]")];
    let mut stream = client.connect();
    stream.write_all(client.head("POST", "/dbs/d/colls/c/docs", &key, 1 << 30).as_bytes()).unwrap();
    assert_eq!(Answer::read(&mut stream).unwrap().status, 413);
    assert!(!matches!(stream.read(&mut [0]), Ok(1..)), "the connection goes on");
    // The same without announcing the length.
    let chunked = client
        .head("POST", "/dbs/d/colls/c/docs", &key, 0)
        .replace("content-length: 0", "transfer-encoding: chunked");
    let mut stream = client.connect();
    stream.write_all(chunked.as_bytes()).unwrap();
    let chunk = [&b"100000\r\n"[..], &vec![b'x'; 1 << 20], b"\r\n"].concat();
    let sent = (0..1024).take_while(|_| stream.write_all(&chunk).is_ok()).count();
    assert!(sent < 200, "{sent} MiB were taken");
    let grown = server.resident_bytes().saturating_sub(before);
    assert!(grown < 64 * MEBIBYTE, "{grown} bytes");
    server.assert_serves();
}

#[test]
fn large_headers_are_refused_with_an_answer() {
    let server = Server::dev(&[]);
    let with = |bytes: usize| {
        let head = server.client().head("GET", "/dbs", &[("x-ms-filler", &"x".repeat(bytes))], 0);
        let mut stream = server.client().connect();
        // The server may close the connection before everything is sent.
        let _ = stream.write_all(head.as_bytes());
        Answer::read(&mut stream).map(|answer| answer.status)
    };
    assert_eq!(with(30_000), Some(200));
    assert_eq!(with(40_000), Some(413));
    assert!(matches!(with(1_000_000), Some(431) | None));
    server.assert_serves();
}

#[test]
fn ten_thousand_idle_connections_cost_little_and_one_more_than_allowed_is_turned_away() {
    // One handle each on the client side; some are left for the test itself.
    let handles = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let count = usize::try_from(handles.saturating_sub(1_000).min(10_000)).unwrap();
    assert!(count >= 20, "this machine allows {handles} open files");
    let allowed = (count + SPARE).to_string();
    let server = Server::dev(&["--handshake-timeout-ms", "600000", "--connections-max", &allowed]);
    server.assert_serves();
    let before = server.resident_bytes();
    let client = Client::new(server.address(), EMULATOR_KEY);
    let mut idle = Vec::new();
    for index in 0..count {
        let mut stream = client.connect();
        if index % 2 == 0 {
            // Half of them have served one request.
            stream.write_all(b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
            assert_eq!(Answer::read(&mut stream).unwrap().status, 200);
        }
        idle.push(stream);
    }
    let held = u64::try_from(count + 1).unwrap();
    server.wait_until("all connections", |server| server.metric("perihelion_connections_open") == held);
    let each = server.resident_bytes().saturating_sub(before) / u64::try_from(count).unwrap();
    assert!(each < 64 * 1024, "{each} bytes for an idle connection");
    server.assert_serves();
    // Twice the remaining number: some of these are too many, whatever is still being closed.
    let mut late: Vec<TcpStream> = (0..2 * SPARE).map(|_| client.connect()).collect();
    let turned_away = (0..DRIPS_MAX).any(|index| is_cut(&mut late[index % (2 * SPARE)]));
    assert!(turned_away, "more connections than allowed");
    drop((idle, late));
    server.wait_until_alone();
    assert!(server.metric("perihelion_connections_refused_total") >= 1);
}
