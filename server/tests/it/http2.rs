//! HTTP/2 written by hand: incomplete frames, streams that are opened and reset, idle connections.

use crate::process::{DEADLINE, Server};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const ACK: u8 = 1;
const END_STREAM_AND_HEADERS: u8 = 5;

/// Length, kind, flags and stream, then the payload.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The header block of `GET /health/live`: names of the static table, literal values.
fn request_block() -> Vec<u8> {
    let path = b"/health/live";
    let mut block = vec![0x82, 0x86, 0x04, u8::try_from(path.len()).unwrap()];
    block.extend_from_slice(path);
    block.extend_from_slice(&[0x01, 9]);
    block.extend_from_slice(b"localhost");
    block
}

/// The header block of a GET with these headers.
fn get_block(path: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut block = vec![0x82, 0x86, 0x04, u8::try_from(path.len()).unwrap()];
    block.extend_from_slice(path.as_bytes());
    for (name, value) in [(":authority", "localhost")].iter().chain(headers) {
        // A literal with a literal name. Lengths above seven bits continue in the next byte.
        block.push(0);
        for text in [name, value] {
            match text.len() {
                short @ ..127 => block.push(u8::try_from(short).unwrap()),
                long => block.extend([
                    127,
                    u8::try_from((long - 127) % 128 + 128).unwrap(),
                    u8::try_from((long - 127) / 128).unwrap(),
                ]),
            }
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// Sends one request with these headers; returns whether the status was 200.
pub(crate) fn get(server: &Server, path: &str, headers: &[(&str, &str)]) -> bool {
    let mut stream = connect(server);
    stream.write_all(&frame(HEADERS, END_STREAM_AND_HEADERS, 1, &get_block(path, headers))).unwrap();
    while let Some((kind, _, payload)) = read_frame(&mut stream) {
        if kind == HEADERS {
            // The first field of a response is its status; 200 has its own entry in the static table.
            return payload.first() == Some(&0x88);
        }
    }
    false
}

fn connect(server: &Server) -> TcpStream {
    let mut stream = server.client().connect();
    stream.write_all(PREFACE).unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).unwrap();
    stream
}

/// Reads one frame: kind, flags, payload.
fn read_frame(stream: &mut TcpStream) -> Option<(u8, u8, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).ok()?;
    let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload).ok()?;
    Some((head[3], head[4], payload))
}

/// The first byte of the next answer's headers; `None` when the connection has ended.
fn next_status(stream: &mut TcpStream) -> Option<u8> {
    loop {
        let (kind, _, payload) = read_frame(stream)?;
        if kind == HEADERS {
            return payload.first().copied();
        }
    }
}

#[test]
fn half_a_frame_is_not_waited_for() {
    let server = Server::dev(&["--header-timeout-ms", "300", "--idle-timeout-ms", "600"]);
    let block = request_block();
    let whole = frame(HEADERS, END_STREAM_AND_HEADERS, 1, &block);
    for length in [1, 8, 9, 10, whole.len() - 1] {
        let mut stream = connect(&server);
        stream.write_all(&whole[..length]).unwrap();
        while read_frame(&mut stream).is_some() {}
    }
    server.wait_until_alone();
    server.assert_serves();
}

#[test]
fn streams_that_are_opened_and_reset_end_the_connection() {
    let server = Server::dev(&[]);
    let before = server.resident_bytes();
    let mut stream = connect(&server);
    let mut reader = stream.try_clone().unwrap();
    let frames = std::thread::spawn(move || {
        let mut last = None;
        while let Some((kind, _, payload)) = read_frame(&mut reader) {
            if kind == GOAWAY {
                last = Some(payload);
            }
        }
        last
    });
    let block = request_block();
    let mut sent = 0;
    for id in (1..2_000_000).step_by(2) {
        let open = frame(HEADERS, END_STREAM_AND_HEADERS, id, &block);
        let reset = frame(RST_STREAM, 0, id, &8_u32.to_be_bytes());
        if stream.write_all(&[open, reset].concat()).is_err() {
            break;
        }
        sent += 1;
    }
    assert!(sent < 999_999, "nobody stopped the flood");
    // If the GOAWAY frame was not lost with the connection, it names the reason: ENHANCE_YOUR_CALM.
    if let Some(farewell) = frames.join().unwrap() {
        assert_eq!(farewell[4..8], 11_u32.to_be_bytes());
    }
    server.wait_until_alone();
    assert!(server.resident_bytes().saturating_sub(before) < 64 * 1024 * 1024);
    server.assert_serves();
}

#[test]
fn a_resting_client_that_only_answers_pings_is_no_slow_request() {
    let server = Server::dev(&["--header-timeout-ms", "200", "--idle-timeout-ms", "60000"]);
    let mut stream = connect(&server);
    stream.write_all(&frame(SETTINGS, ACK, 0, &[])).unwrap();
    stream.write_all(&frame(HEADERS, END_STREAM_AND_HEADERS, 1, &request_block())).unwrap();
    let mut answered = false;
    while !answered {
        answered = matches!(read_frame(&mut stream).unwrap(), (HEADERS, ..));
    }
    // These bytes follow the response and belong to no request. A sequential client that sends them is disconnected.
    let mut sequential = server.client().connect();
    sequential.write_all(b"G").unwrap();
    stream.write_all(&frame(PING, 0, 0, b"12345678")).unwrap();
    let _ = sequential.read_to_end(&mut Vec::new());
    stream.write_all(&frame(HEADERS, END_STREAM_AND_HEADERS, 3, &request_block())).unwrap();
    let mut answered = false;
    while !answered {
        answered = matches!(read_frame(&mut stream).expect("the connection was cut off"), (HEADERS, ..));
    }
}

#[test]
fn an_answer_that_is_not_taken_ends_a_connection_that_goes_on_asking() {
    let server = Server::dev(&["--idle-timeout-ms", "400"]);
    let client = server.client();
    client.make_container();
    let item = format!("{{\"id\":\"big\",\"pk\":\"k\",\"text\":\"{}\"}}", "x".repeat(200_000));
    let key = ("x-ms-documentdb-partitionkey", "[\"k\"]");
    assert_eq!(client.send("POST", "/dbs/d/colls/c/docs", &[key], item.as_bytes()).status, 201);
    let head = client.head("GET", "/dbs/d/colls/c/docs/big", &[key], 0);
    let signed: Vec<(&str, &str)> = head.lines().skip(1).filter_map(|line| line.split_once(": ")).collect();
    let signed: Vec<_> = signed.into_iter().filter(|(name, _)| !name.eq_ignore_ascii_case("host")).collect();
    let lower: Vec<(String, &str)> =
        signed.iter().map(|(name, value)| (name.to_lowercase(), *value)).collect();
    let headers: Vec<(&str, &str)> = lower.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let mut stream = client.connect();
    stream.write_all(PREFACE).unwrap();
    // No byte of any response may be sent.
    stream.write_all(&frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0])).unwrap();
    let block = get_block("/dbs/d/colls/c/docs/big", &headers);
    stream.write_all(&frame(HEADERS, END_STREAM_AND_HEADERS, 1, &block)).unwrap();
    assert_eq!(next_status(&mut stream), Some(0x88), "the item was read");
    // Responses to HEAD have no body and are read completely.
    let mut asked = request_block();
    asked.splice(0..1, [0x02, 4, b'H', b'E', b'A', b'D']);
    let begun = Instant::now();
    let mut id = 3;
    while stream.write_all(&frame(HEADERS, END_STREAM_AND_HEADERS, id, &asked)).is_ok()
        && next_status(&mut stream).is_some()
    {
        assert!(begun.elapsed() < DEADLINE, "the connection was not cut off");
        id += 2;
    }
    server.wait_until_alone();
    assert_eq!(server.metric("perihelion_memory_reserved_bytes{share=\"answers\"}"), 0);
}
