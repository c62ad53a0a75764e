//! An older copy of a data folder that is used again: what clients remember of the lost writes is neither served as if
//! they were there nor assigned again.

use crate::client::{Answer, Client};
use crate::process::{Server, run, text};
use serde_json::Value as Json;
use std::fs;
use std::path::Path;

const PARTITION_KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", "[\"a\"]");

fn start(data: &Path) -> Server {
    Server::start(&["dev", "--nosql", "127.0.0.1:0", "--data", text(data)])
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn create(client: &Client, id: &str) -> Answer {
    create_at(client, id, "a")
}

fn create_at(client: &Client, id: &str, key: &str) -> Answer {
    let body = format!(r#"{{"id":"{id}","pk":"{key}"}}"#);
    let key = ("x-ms-documentdb-partitionkey", &*format!("[\"{key}\"]"));
    let answer = client.send("POST", "/dbs/d/colls/c/docs", &[key], body.as_bytes());
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer
}

fn create_container(client: &Client, id: &str) -> Answer {
    let body = format!(r#"{{"id":"{id}","partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}}}}"#);
    let answer = client.send("POST", "/dbs/d/colls", &[], body.as_bytes());
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer
}

/// A member of the answer's body.
fn member(answer: &Answer, name: &str) -> String {
    let text = answer.text();
    let (_, rest) = text.split_once(&format!("\"{name}\":\"")).unwrap();
    rest.split('"').next().unwrap().to_owned()
}

/// What a client remembers of the writes that the copy does not have.
struct Remembered {
    session: String,
    etag: String,
    document_rid: String,
    container_rid: String,
    feed_position: String,
    ranges: Vec<String>,
}

fn changes(client: &Client, position: &str) -> Answer {
    let headers = [("A-IM", "Incremental Feed"), ("If-None-Match", position)];
    client.send("GET", "/dbs/d/colls/c/docs", &headers, b"")
}

/// Splits the only partition; returns the ids of the two new ones.
fn split(server: &Server, data: &Path) -> Vec<String> {
    let address = server.address().to_string();
    let common = ["--database", "d", "--container", "c", "--nosql", &address, "--data", text(data)];
    let output = run(&[&["partitions", "split", "--partition", "0"], &common[..]].concat());
    assert!(output.status.success(), "{output:?}");
    let ranges = server.client().send("GET", "/dbs/d/colls/c/pkranges", &[], b"");
    let ranges: Json = serde_json::from_slice(&ranges.body).unwrap();
    let ranges = ranges["PartitionKeyRanges"].as_array().unwrap();
    ranges.iter().map(|range| range["id"].as_str().unwrap().to_owned()).collect()
}

fn write_what_is_lost(data: &Path) -> Remembered {
    let server = start(data);
    let client = server.client();
    (0..50).for_each(|number| drop(create(&client, &format!("lost {number}"))));
    let last = create(&client, "lost");
    let container = create_container(&client, "lost");
    let ranges = split(&server, data);
    let feed = changes(&client, "*");
    assert_eq!(feed.status, 304);
    let remembered = Remembered {
        session: last.header("x-ms-session-token").unwrap().to_owned(),
        etag: last.header("etag").unwrap().to_owned(),
        document_rid: member(&last, "_rid"),
        container_rid: member(&container, "_rid"),
        feed_position: feed.header("etag").unwrap().to_owned(),
        ranges,
    };
    drop(server.stop());
    remembered
}

#[test]
fn a_restored_copy_continues_after_what_clients_remember() {
    let folder = tempfile::tempdir().unwrap();
    let (data, backup) = (folder.path().join("data"), folder.path().join("backup"));
    let server = start(&data);
    let client = server.client();
    assert_eq!(client.send("POST", "/dbs", &[], br#"{"id":"d"}"#).status, 201);
    create_container(&client, "c");
    create(&client, "kept");
    (0..9).for_each(|number| drop(create_at(&client, &format!("kept {number}"), &number.to_string())));
    drop(server.stop());
    copy(&data, &backup);
    let remembered = write_what_is_lost(&data);

    let read_kept = |client: &Client| {
        let session = ("x-ms-session-token", remembered.session.as_str());
        client.send("GET", "/dbs/d/colls/c/docs/kept", &[PARTITION_KEY, session], b"")
    };
    // A copy of its own, since a start changes it.
    let unprepared = folder.path().join("unprepared");
    copy(&backup, &unprepared);
    let server = start(&unprepared);
    let behind = read_kept(&server.client());
    assert_eq!((behind.status, behind.header("x-ms-substatus")), (404, Some("1002")));
    drop(server.stop());

    let prepared = run(&["repair", "--restored", "--data", text(&backup)]);
    assert!(prepared.status.success(), "{prepared:?}");
    let server = start(&backup);
    let client = server.client();
    assert_eq!(read_kept(&client).status, 200);
    let ranges = split(&server, &backup);
    for lost in &remembered.ranges {
        assert!(!ranges.contains(lost), "{ranges:?}");
        let headers = [("x-ms-documentdb-partitionkeyrangeid", lost.as_str())];
        let gone = client.send("GET", "/dbs/d/colls/c/docs", &headers, b"");
        assert_eq!((gone.status, gone.header("x-ms-substatus")), (410, Some("1002")), "{}", gone.text());
    }
    let new: Vec<Answer> = (0..60).map(|number| create(&client, &format!("new {number}"))).collect();
    for answer in &new {
        assert_ne!(answer.header("etag"), Some(&*remembered.etag));
        assert_ne!(member(answer, "_rid"), remembered.document_rid);
    }
    assert_ne!(member(&create_container(&client, "new"), "_rid"), remembered.container_rid);
    let page = changes(&client, &remembered.feed_position);
    assert_eq!((page.status, page.text().matches("\"id\":\"new ").count()), (200, new.len()));
    drop(server.stop());
    let verified = run(&["verify", "--data", text(&backup)]);
    assert!(verified.status.success(), "{verified:?}");
}
