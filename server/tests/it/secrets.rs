//! What must never be printed: the server's output at its most verbose level is searched for planted secrets.

use crate::client::{Client, encoded};
use crate::http2;
use crate::process::{Server, run, text};
use std::io::{Read as _, Write as _};
use std::path::Path;

/// In documents, keys and queries.
const VALUE: &str = "plantedvalue";
/// In credentials of every kind.
const TOKEN: &str = "plantedtoken";
/// In URLs and headers that the server does not use.
const STRAY: &str = "plantedstray";

fn key(name: &str, data: &Path) -> String {
    let output = run(&["keys", "show", name, "--data", text(data)]);
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Requests that succeed, and requests that are refused for every kind of reason.
fn talk(client: &Client) -> Vec<u16> {
    client.make_container();
    let partition_key = format!("[\"{VALUE}\"]");
    let header = [("x-ms-documentdb-partitionkey", partition_key.as_str())];
    let docs = "/dbs/d/colls/c/docs";
    let item = format!("{{\"id\":\"{VALUE}\",\"pk\":\"{VALUE}\",\"text\":\"{VALUE}\"}}");
    let one = format!("{docs}/{VALUE}");
    let query = format!("{{\"query\":\"SELECT * FROM c WHERE c.text = '{VALUE}'\"}}");
    let is_query =
        [header[0], ("x-ms-documentdb-isquery", "True"), ("content-type", "application/query+json")];
    let mut statuses = vec![
        client.send("POST", docs, &header, item.as_bytes()).status,
        client.send("POST", docs, &header, item.as_bytes()).status,
        client.send("POST", docs, &header, format!("{{\"id\":{VALUE}").as_bytes()).status,
        client.send("POST", docs, &is_query, query.as_bytes()).status,
        client.send("POST", docs, &is_query, query.replace("WHERE", "WHERE NOSUCH(").as_bytes()).status,
        client.send("GET", &one, &header, b"").status,
        client.send("GET", &format!("{one}{VALUE}"), &header, b"").status,
        client.send("GET", docs, &[("x-ms-continuation", STRAY), ("x-ms-session-token", STRAY)], b"").status,
        client.send("GET", &one, &[header[0], ("if-none-match", STRAY)], b"").status,
        client.send("DELETE", &one, &[header[0], ("if-match", STRAY)], b"").status,
    ];
    for kind in ["master", "resource", "aad", "other"] {
        let credential = encoded(&format!("type={kind}&ver=1.0&sig={TOKEN}.{TOKEN}.{TOKEN}"));
        let request = format!(
            "GET /dbs?code={STRAY} HTTP/1.1\r\nhost: localhost\r\nauthorization: {credential}\r\n\
             x-ms-date: {STRAY}\r\ncookie: {STRAY}\r\n\r\n"
        );
        statuses.push(client.raw(&request).status);
    }
    statuses.push(client.unsigned("GET", &format!("/{STRAY}?{TOKEN}")).status);
    statuses
}

/// Bytes that are not HTTP, some of them after the start of a TLS handshake.
fn babble(client: &Client) {
    for beginning in
        [&b"\x16\x03\x01\x00\x20"[..], b"", b"GET / HTTP/9.9\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
    {
        let mut stream = client.connect();
        stream.write_all(&[beginning, format!("{STRAY}\r\n\r\n").as_bytes()].concat()).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    }
}

#[test]
fn nothing_secret_is_printed_at_the_most_verbose_level() {
    for format in ["text", "json"] {
        let folder = tempfile::tempdir().unwrap();
        let data = text(folder.path());
        let server = Server::start(&[
            "serve",
            "--data",
            data,
            "--nosql",
            "127.0.0.1:0",
            "--log",
            "trace",
            "--log-format",
            format,
            "--header-timeout-ms",
            "300",
            "--handshake-timeout-ms",
            "300",
        ]);
        let primary = key("primary", folder.path());
        let client = Client::new(server.address(), &primary);
        let statuses = talk(&client);
        assert_eq!(
            statuses,
            [201, 409, 400, 200, 400, 200, 404, 400, 200, 412, 401, 401, 401, 401, 404],
            "{format}"
        );
        babble(&client);
        let (date, path) = (client.date(), "/dbs");
        let credential = client.authorization("GET", path, &date);
        let answered = http2::get(
            &server,
            path,
            &[("authorization", &credential), ("x-ms-date", &date), ("cookie", STRAY)],
        );
        assert!(answered, "the request over HTTP/2");
        let keys = ["primary", "secondary", "primary-readonly", "secondary-readonly"]
            .map(|name| key(name, folder.path()));
        assert!(run(&["keys", "rotate", "secondary", "--data", data]).status.success());
        let renewed = key("secondary", folder.path());
        let fresh = Client::new(server.address(), &renewed);
        server.wait_until("the new key", |_| fresh.send("GET", "/dbs", &[], b"").status == 200);
        // An invalid file is reported, but not quoted.
        std::fs::write(folder.path().join("account-keys.toml"), format!("[primary]\nkey = {TOKEN}\n"))
            .unwrap();
        let printed = server.stop();
        assert!(printed.contains("DEBUG"), "{format}: the log says little");
        // The signature as sent and decoded, without the padding at its end.
        let (_, sent) = credential.split_once("sig%3d").unwrap();
        let sent = sent.trim_end_matches("%3d");
        let bare = sent.replace("%2b", "+").replace("%2f", "/");
        assert!(bare.len() > 40, "{bare}");
        let others = [VALUE, TOKEN, STRAY, &renewed, sent, &bare];
        let secrets = others.into_iter().chain(keys.iter().map(String::as_str));
        for secret in secrets {
            let line = printed.lines().find(|line| line.contains(secret));
            assert_eq!(line, None, "{format}: {secret} was printed");
        }
    }
}
