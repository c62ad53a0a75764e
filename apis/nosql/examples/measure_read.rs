//! Measures the time that the API itself takes for a point read: no sockets, a store in memory, one thread.
//!
//! `cargo run --release -p perihelion-nosql --example measure_read [SECONDS]`

#![allow(clippy::print_stdout, clippy::unwrap_used)] // a tool for the developer's terminal

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use engine::{AccountKey, Engine, EngineOptions};
use hmac::{Hmac, KeyInit, Mac};
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use kv::{CommitMode, Store};
use model::Ambient;
use nosql::{ConnectionInfo, NosqlApi, NosqlOptions};
use partition::keyspace::SPACES;
use sha2::Sha256;
use std::sync::Arc;
use std::time::{Duration, Instant};

const KEY: &[u8] = b"a key";
const DATE: &str = "Tue, 14 Nov 2023 22:13:20 GMT";
const DOCUMENTS: usize = 1_000;

#[derive(Debug)]
struct Still;

impl Ambient for Still {
    fn now_ms(&self) -> u64 {
        1_700_000_000_000
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

fn request(verb: &Method, path: &str, kind: &str, link: &str, body: String) -> Request<Full<Bytes>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(KEY).unwrap();
    let verb_text = verb.as_str().to_lowercase();
    mac.update(format!("{verb_text}\n{kind}\n{link}\n{}\n\n", DATE.to_lowercase()).as_bytes());
    let signature = BASE64_STANDARD.encode(mac.finalize().into_bytes());
    let authorization = format!("type%3Dmaster%26ver%3D1.0%26sig%3D{}", signature.replace('+', "%2B"));
    let key: usize = link.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or_default();
    Request::builder()
        .method(verb)
        .uri(path)
        .header("host", "127.0.0.1:8081")
        .header("authorization", authorization)
        .header("x-ms-date", DATE)
        .header("x-ms-version", "2020-07-15")
        .header("x-ms-documentdb-partitionkey", format!("[\"pk-{}\"]", key % 100))
        .header("x-ms-activity-id", "6d3f0000-aaaa-bbbb-cccc-0123456789ab")
        .header("content-type", "application/json")
        .header("accept", "application/json")
        .header("user-agent", "measure")
        .body(Full::new(Bytes::from(body)))
        .unwrap()
}

/// A document of about a kilobyte with some twenty properties.
fn document(number: usize) -> String {
    let mut text = format!("{{\"id\":\"item-{number}\",\"pk\":\"pk-{}\"", number % 100);
    for property in 0..16 {
        text.push_str(&format!(
            ",\"property{property}\":\"a value of some {} length, not too short\"",
            property * 7
        ));
    }
    text.push_str(&format!(",\"count\":{number},\"price\":{}.25}}", number % 1000));
    text
}

async fn must(api: &NosqlApi, request: Request<Full<Bytes>>, status: StatusCode) {
    let response = api
        .handle(
            request,
            ConnectionInfo { secure: false, peer: std::net::Ipv4Addr::LOCALHOST.into(), memory: None },
        )
        .await;
    assert_eq!(response.status(), status, "{response:?}");
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(3);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::memory(&SPACES, CommitMode::Thread);
        let options = EngineOptions { keys: vec![AccountKey::new(KEY)], ..EngineOptions::default() };
        let engine = Engine::open(store, options, Arc::new(Still)).await.unwrap();
        let api = NosqlApi::new(engine, NosqlOptions::default());
        let created = StatusCode::CREATED;
        must(&api, request(&Method::POST, "/dbs", "dbs", "", "{\"id\":\"d\"}".into()), created).await;
        let container =
            "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}";
        must(&api, request(&Method::POST, "/dbs/d/colls", "colls", "dbs/d", container.into()), created).await;
        for number in 0..DOCUMENTS {
            let mut create =
                request(&Method::POST, "/dbs/d/colls/c/docs", "docs", "dbs/d/colls/c", document(number));
            create.headers_mut().remove("x-ms-documentdb-partitionkey");
            must(&api, create, created).await;
        }
        let reads: Vec<_> = (0..DOCUMENTS)
            .map(|number| {
                let path = format!("dbs/d/colls/c/docs/item-{number}");
                request(&Method::GET, &format!("/{path}"), "docs", &path, String::new())
            })
            .collect();
        let end = Instant::now() + Duration::from_secs(seconds);
        let (mut count, mut spent) = (0_u32, Duration::ZERO);
        while Instant::now() < end {
            let round: Vec<_> = reads.clone();
            let begun = Instant::now();
            for read in round {
                must(&api, read, StatusCode::OK).await;
                count += 1;
            }
            spent += begun.elapsed();
        }
        println!("{count} reads, {} ns each", (spent / count).as_nanos());
    });
}
