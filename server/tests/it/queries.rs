//! Long queries, with concurrent requests and at the end of the server or the client.

use crate::client::Answer;
use crate::process::Server;
use std::io::Write as _;
use std::net::TcpStream;

/// Practically endless rows from one item.
const ENDLESS: &[u8] =
    br#"{"query":"SELECT VALUE COUNT(1) FROM c JOIN a IN c.x JOIN b IN c.x JOIN d IN c.x"}"#;

fn running(server: &Server) -> u64 {
    server.metric("perihelion_long_queries_running")
}

/// A server, and a connection with a running query that does not end by itself.
fn with_endless_query() -> (Server, TcpStream) {
    let server = Server::dev(&["--query-threads", "2"]);
    let client = server.client();
    client.make_container();
    let numbers: Vec<String> = (0..2000).map(|number| number.to_string()).collect();
    let item = format!(r#"{{"id":"1","pk":"a","x":[{}]}}"#, numbers.join(","));
    let key = ("x-ms-documentdb-partitionkey", r#"["a"]"#);
    assert_eq!(client.send("POST", "/dbs/d/colls/c/docs", &[key], item.as_bytes()).status, 201);
    let mut stream = client.connect();
    let headers = [key, ("x-ms-documentdb-isquery", "True"), ("content-type", "application/query+json")];
    let head = client.head("POST", "/dbs/d/colls/c/docs", &headers, ENDLESS.len() as u64);
    stream.write_all(&[head.as_bytes(), ENDLESS].concat()).unwrap();
    server.wait_until("the query has not begun", |server| running(server) == 1);
    (server, stream)
}

#[test]
fn a_query_ends_when_its_client_hangs_up() {
    let (server, stream) = with_endless_query();
    for _ in 0..20 {
        server.assert_serves();
    }
    drop(stream);
    server.wait_until("the query goes on", |server| running(server) == 0);
}

#[test]
fn a_query_ends_with_the_server_and_its_client_is_told_to_come_again() {
    let (server, mut stream) = with_endless_query();
    let answer = std::thread::spawn(move || Answer::read(&mut stream).unwrap());
    server.stop();
    let answer = answer.join().unwrap();
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(answer.header("x-ms-retry-after-ms").is_some(), "{answer:?}");
}
