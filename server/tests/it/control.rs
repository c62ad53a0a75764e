//! The control API and the commands over it, against a running server.

use crate::client::{Answer, Client};
use crate::identity::{Issuer, write_identity};
use crate::process::{EMULATOR_KEY, Server, run, text};
use serde_json::{Value as Json, json};
use std::path::Path;

const LIST: &str = "/_control/dbs/d/colls/c/partitions";
const DOCS: &str = "/dbs/d/colls/c/docs";
const ITEM: &str = "/dbs/d/colls/c/docs/1";

/// Sends a request with these lines of headers and a body.
fn send(client: &Client, verb: &str, path: &str, headers: &str, body: &str) -> Answer {
    let length = body.len();
    client.raw(&format!(
        "{verb} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    ))
}

fn bearer(credential: &str) -> String {
    format!("authorization: Bearer {credential}\r\n")
}

fn json(answer: &Answer) -> Json {
    serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{answer:?}"))
}

/// The body of a refusal says the same as its status and explains it.
#[track_caller]
fn check_refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    let body = json(answer);
    assert_eq!(body["code"], code);
    assert!(body["message"].as_str().is_some_and(|message| !message.is_empty()), "{body}");
    assert!(!answer.text().contains("a-secret-key"), "{body}");
}

fn create(client: &Client, id: &str, key: &str) {
    let headers = [("x-ms-documentdb-partitionkey", &*format!("[\"{key}\"]"))];
    let item = json!({ "id": id, "pk": key }).to_string();
    assert_eq!(client.send("POST", DOCS, &headers, item.as_bytes()).status, 201);
}

fn read(client: &Client, id: &str, key: &str) -> Answer {
    let headers = [("x-ms-documentdb-partitionkey", &*format!("[\"{key}\"]"))];
    client.send("GET", &format!("{DOCS}/{id}"), &headers, b"")
}

/// The partitions, seen with the well-known key.
fn partitions(client: &Client) -> Vec<Json> {
    let answer = send(client, "GET", LIST, &bearer(EMULATOR_KEY), "");
    assert_eq!(answer.status, 200, "{answer:?}");
    json(&answer)["partitions"].as_array().unwrap().clone()
}

fn key(name: &str, data: &Path) -> String {
    let shown = run(&["keys", "show", name, "--data", text(data)]);
    String::from_utf8(shown.stdout).unwrap().trim().to_owned()
}

#[test]
fn only_administrators_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let issuer = Issuer::new("issuer");
    issuer.write_key_set(folder.path());
    write_identity(folder.path(), "reader");
    let identity = folder.path().join("identity.toml");
    let arguments = [
        "serve",
        "--data",
        text(&data),
        "--nosql",
        "127.0.0.1:0",
        "--auth-failures-max",
        "off",
        "--identity",
    ];
    let server = Server::start(&[&arguments[..], &[text(&identity)]].concat());
    let [primary, secondary, reader] =
        ["primary", "secondary", "primary-readonly"].map(|name| key(name, &data));
    let client = Client::new(server.address(), &primary);
    client.make_container();
    create(&client, "1", "a-secret-key");
    assert_eq!(client.send("POST", "/dbs/d/users", &[], br#"{"id":"u"}"#).status, 201);
    let permission = json!({ "id": "p", "permissionMode": "All", "resource": "dbs/d/colls/c" }).to_string();
    let permission = client.send("POST", "/dbs/d/users/u/permissions", &[], permission.as_bytes());
    let token = json(&permission)["_token"].as_str().unwrap().to_owned();

    let split = format!("{LIST}/0/split");
    let throttle = format!("{LIST}/0/throttle?milliseconds=60000");
    let requests = [("GET", LIST), ("POST", &*split), ("POST", &*throttle)];
    let unknown = [
        String::new(),
        bearer(&primary) + &bearer(&primary),
        "authorization: Bearer\r\n".to_owned(),
        format!("authorization: Basic {primary}\r\n"),
        format!("authorization: {}\r\n", client.authorization("GET", LIST, &client.date())),
        bearer("x"),
        bearer(EMULATOR_KEY),
        bearer(&primary[..primary.len() - 8]),
        bearer(&token),
        format!("authorization: {token}\r\n"),
        bearer(&Issuer::new("issuer").token("writer")),
    ];
    for (verb, path) in requests {
        for headers in &unknown {
            check_refused(&send(&client, verb, path, headers, ""), 401, "Unauthorized");
        }
        // Known callers without rights to change the container.
        for credential in [&reader, &issuer.token("reader"), &issuer.token("writer"), &issuer.token("eve")] {
            check_refused(&send(&client, verb, path, &bearer(credential), ""), 403, "Forbidden");
        }
    }
    // Nothing of all this was done.
    assert_eq!(read(&client, "1", "a-secret-key").status, 200);
    for credential in [&primary, &secondary] {
        let list = send(&client, "GET", LIST, &bearer(credential), "");
        assert_eq!((list.status, json(&list)["partitions"].as_array().unwrap().len()), (200, 1), "{list:?}");
    }
}

#[test]
fn malformed_requests_are_refused() {
    let server = Server::dev(&[]);
    let client = server.client();
    client.make_container();
    create(&client, "1", "a");
    let of = |verb: &str, path: &str, body: &str| send(&client, verb, path, &bearer(EMULATOR_KEY), body);
    for (verb, path) in [
        ("POST", LIST.to_owned()),
        ("DELETE", LIST.to_owned()),
        ("GET", format!("{LIST}/0/split")),
        ("PUT", format!("{LIST}/0/split")),
        ("GET", format!("{LIST}/0/throttle?milliseconds=1")),
        ("BREW", LIST.to_owned()),
    ] {
        check_refused(&of(verb, &path, ""), 405, "MethodNotAllowed");
    }
    for path in [
        "/_control/",
        "/_control/dbs",
        "/_control/dbs/d",
        "/_control/dbs/d/colls/c",
        "/_control/dbs//colls/c/partitions",
        "/_control/dbs/d/colls/%FF/partitions",
        "/_control/dbs/d/colls/other/partitions",
        "/_control/dbs/other/colls/c/partitions",
        "/_control/dbs/d/colls/c/partitions/0",
        "/_control/dbs/d/colls/c/partitions/0/merge",
        "/_control/dbs/d/colls/c/partitions/0/split/now",
    ] {
        check_refused(&of("GET", path, ""), 404, "NotFound");
    }
    for path in ["9/split", "9/throttle?milliseconds=1"] {
        check_refused(&of("POST", &format!("{LIST}/{path}"), ""), 404, "NotFound");
    }
    for path in [
        "x/split",
        "-1/split",
        "4294967296/split",
        "0/throttle",
        "0/throttle?milliseconds=60001",
        "0/throttle?milliseconds=-1",
        "0/throttle?milliseconds=1.5",
        "0/throttle?milliseconds=",
        "0/throttle?seconds=1",
        // It has one partition key.
        "0/split",
    ] {
        check_refused(&of("POST", &format!("{LIST}/{path}"), ""), 400, "BadRequest");
    }
    // Requests have no body; one that is sent is not read.
    for body in ["{", "\u{0}", r#"{"milliseconds":60000}"#, &"x".repeat(1 << 20)] {
        check_refused(&of("POST", &format!("{LIST}/0/throttle"), body), 400, "BadRequest");
    }
    assert_eq!(read(&client, "1", "a").status, 200);
    server.assert_serves();
}

#[test]
fn a_throttled_partition_refuses_for_its_time_only() {
    let server = Server::dev(&[]);
    let client = server.client();
    client.make_container();
    create(&client, "1", "a");
    let other = br#"{"id":"other","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    assert_eq!(client.send("POST", "/dbs/d/colls", &[], other).status, 201);
    let throttle = |milliseconds: u64| {
        let path = format!("{LIST}/0/throttle?milliseconds={milliseconds}");
        let answer = send(&client, "POST", &path, &bearer(EMULATOR_KEY), "");
        assert_eq!((answer.status, json(&answer)), (200, json!({ "throttledMilliseconds": milliseconds })));
    };
    throttle(60_000);
    let refused = read(&client, "1", "a");
    assert_eq!((refused.status, refused.header("x-ms-substatus")), (429, Some("3200")), "{refused:?}");
    let delay_ms: u64 = refused.header("x-ms-retry-after-ms").unwrap().parse().unwrap();
    assert!((1..=60_001).contains(&delay_ms), "{delay_ms}");
    assert_eq!(refused.header("x-ms-request-charge"), Some("0.00"));
    let query = [
        ("x-ms-documentdb-isquery", "true"),
        ("content-type", "application/query+json"),
        ("x-ms-documentdb-query-enablecrosspartition", "true"),
    ];
    let query = client.send("POST", DOCS, &query, br#"{"query":"SELECT * FROM c"}"#);
    assert_eq!(query.status, 429, "{query:?}");
    // Others are served, and so are requests on the container itself.
    assert_eq!(client.send("GET", "/dbs/d/colls/other/docs", &[], b"").status, 200);
    assert_eq!(client.send("GET", "/dbs/d/colls/c", &[], b"").status, 200);
    assert!(partitions(&client)[0]["throttledRequests"].as_u64().unwrap() >= 2);
    throttle(0);
    assert_eq!(read(&client, "1", "a").status, 200);
    // Without being ended it is over by itself.
    throttle(100);
    server.wait_until("the partition serves again", |_| read(&client, "1", "a").status == 200);
}

#[test]
fn load_and_hottest_keys_are_listed() {
    let server = Server::dev(&[]);
    let client = server.client();
    client.make_container();
    create(&client, "1", "hot");
    create(&client, "2", "cold");
    let mut seen = Json::Null;
    server.wait_until("the load is listed", |_| {
        for _ in 0..32 {
            assert_eq!(read(&client, "1", "hot").status, 200);
        }
        read(&client, "2", "cold");
        seen = partitions(&client).remove(0);
        let hottest = &seen["hottestKeys"][0];
        hottest["partitionKey"] == json!(["hot"])
            && hottest["share"].as_f64().is_some_and(|share| share > 0.5)
            && seen["requestUnitsLastSecond"].as_f64().is_some_and(|units| units > 0.0)
    });
    assert_eq!(
        (&seen["id"], &seen["state"], &seen["documents"]),
        (&json!("0"), &json!("serving"), &json!(2))
    );
    assert!(seen["requestUnits"].as_f64().unwrap() >= seen["requestUnitsLastSecond"].as_f64().unwrap());
}

#[test]
fn commands_list_and_split_partitions() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::dev(&[]);
    let client = server.client();
    client.make_container();
    for number in 0..20 {
        create(&client, &number.to_string(), &format!("k{number}"));
    }
    let address = server.address().to_string();
    let command = |subcommand: &[&str]| {
        let common =
            ["--database", "d", "--container", "c", "--nosql", &address, "--data", text(folder.path())];
        run(&[&["partitions"], subcommand, &common].concat())
    };
    let printed = |subcommand: &[&str]| {
        let output = command(subcommand);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let table = printed(&["list"]);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 2, "{table}");
    assert!(lines[0].starts_with("ID") && lines[1].starts_with("0 "), "{table}");
    assert_eq!(printed(&["split", "--partition", "0"]), "split into 1 and 2\n");
    let listed: Json = serde_json::from_str(&printed(&["list", "--json"])).unwrap();
    let listed = listed["partitions"].as_array().unwrap();
    assert_eq!(listed.iter().map(|partition| &partition["id"]).collect::<Vec<_>>(), ["1", "2"]);
    assert!(listed.iter().all(|partition| partition["parents"] == json!(["0"])));
    assert_eq!(listed.iter().map(|partition| partition["documents"].as_u64().unwrap()).sum::<u64>(), 20);
    assert_eq!(client.send("GET", ITEM, &[("x-ms-documentdb-partitionkey", "[\"k1\"]")], b"").status, 200);
    // Refusals of the server are shown.
    let gone = command(&["split", "--partition", "0"]);
    assert_eq!(gone.status.code(), Some(1));
    let shown = String::from_utf8(gone.stderr).unwrap();
    assert!(shown.contains("was split; its documents are in 1, 2"), "{shown}");
    assert_eq!(command(&["split", "--partition", "x"]).status.code(), Some(1));
    let common =
        ["--database", "d", "--container", "absent", "--nosql", &address, "--data", text(folder.path())];
    let absent = run(&[&["partitions", "list"], &common[..]].concat());
    assert_eq!(absent.status.code(), Some(1));
    assert!(String::from_utf8(absent.stderr).unwrap().contains("there is no container \"absent\""));
}
