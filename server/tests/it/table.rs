//! The socket of the Table API: where it listens, and that it speaks both plain HTTP and TLS.

use crate::client::{Answer, Client};
use crate::process::{EMULATOR_KEY, Server, text};
use crate::tls::ask_at;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The account of a development server.
const ACCOUNT: &str = "localhost";

/// A request with a signature by `key`.
fn signed(server: &Server, key: &str, verb: &str, path: &str, body: &str) -> String {
    let date = server.client().date();
    let mut mac = Hmac::<Sha256>::new_from_slice(&BASE64_STANDARD.decode(key.trim()).unwrap()).unwrap();
    mac.update(format!("{date}\n/{ACCOUNT}{path}").as_bytes());
    let signature = BASE64_STANDARD.encode(mac.finalize().into_bytes());
    format!(
        "{verb} {path} HTTP/1.1\r\nhost: localhost\r\nx-ms-date: {date}\r\nconnection: close\r\n\
         authorization: SharedKeyLite {ACCOUNT}:{signature}\r\naccept: application/json\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn plain(server: &Server, request: &str) -> Answer {
    Client::new(server.table_address().unwrap(), EMULATOR_KEY).raw(request)
}

#[test]
fn plain_http_and_tls_share_the_port_of_the_table_api() {
    let server = Server::dev(&["--table", "127.0.0.1:0"]);
    let address = server.table_address().unwrap();
    assert!(address.port() != 0 && address != server.address());
    let request = |verb: &str, path: &str, body: &str| signed(&server, EMULATOR_KEY, verb, path, body);
    let created = plain(&server, &request("POST", "/Tables", r#"{"TableName":"people"}"#));
    assert_eq!(created.status, 201, "{}", created.text());
    let entity = r#"{"PartitionKey":"p","RowKey":"r","a":1}"#;
    assert_eq!(plain(&server, &request("POST", "/people", entity)).status, 201);
    let authority = server.client().unsigned("GET", "/_explorer/emulator.pem").text();
    let read = request("GET", "/people(PartitionKey='p',RowKey='r')", "");
    let answer = ask_at(address, "localhost", &authority, &read).unwrap();
    assert_eq!(answer.status, 200);
    assert!(answer.text().contains(r#""a":1"#), "{}", answer.text());
    assert_eq!(plain(&server, &read).text(), answer.text().replace("https://", "http://"));
    let nosql = server.client().send("GET", "/dbs/TablesDB/colls/people", &[], b"");
    assert_eq!(nosql.status, 200, "a table is a container");
}

#[test]
fn a_server_for_others_takes_its_own_keys_only() {
    let folder = tempfile::tempdir().unwrap();
    let data = text(folder.path());
    let addresses = ["--nosql", "127.0.0.1:0", "--table", "127.0.0.1:0", "--table-account", ACCOUNT];
    let server = Server::start(&[&["serve", "--data", data], &addresses[..]].concat());
    let shown = crate::process::run(&["keys", "show", "primary", "--data", data]);
    let key = String::from_utf8(shown.stdout).unwrap();
    let authority = server.client().unsigned("GET", "/_explorer/emulator.pem").text();
    let status = |key: &str| {
        let request = signed(&server, key, "GET", "/Tables", "");
        ask_at(server.table_address().unwrap(), "localhost", &authority, &request).unwrap().status
    };
    assert_eq!(status(&key), 200);
    assert_eq!(status(EMULATOR_KEY), 401);
}

#[test]
fn the_table_api_can_be_off() {
    let server = Server::dev(&["--table", "off"]);
    assert_eq!(server.table_address(), None);
    server.assert_serves();
    let printed = server.stop();
    assert!(!printed.contains("Table API"), "{printed}");
}

#[test]
fn a_busy_port_of_the_table_api_is_named() {
    let server = Server::dev(&["--table", "127.0.0.1:0"]);
    let taken = server.table_address().unwrap().to_string();
    let second = crate::process::run(&["dev", "--memory", "--nosql", "127.0.0.1:0", "--table", &taken]);
    assert!(!second.status.success());
    let errors = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(errors.contains(&taken) && errors.contains("--table"), "{errors}");
}
