//! Bodies and answers of requests in progress stay within their memory limits.

use crate::client::{Call, Client, DOCS, KEY, NOW, Still, container, date_at};
use bytes::Bytes;
use engine::{
    AccountKey, ConnectionMemory, Engine, EngineOptions, KeyName, MemoryKind, RequestMemoryOptions,
    STORE_SPACES,
};
use http::StatusCode;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, SizeHint};
use kv::{CommitMode, Store};
use nosql::ConnectionInfo;
use serde_json::json;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

const MB: usize = 1 << 20;
const READ_KEY: &[u8] = b"a key that only reads";

/// An API with 16 MB for answers and 8 MB for bodies, and a stored document of a megabyte.
async fn small() -> (Client, Arc<Engine>) {
    let store = Store::memory(&STORE_SPACES, CommitMode::Thread);
    let options = EngineOptions {
        keys: vec![AccountKey::new(KEY), AccountKey::named(KeyName::PrimaryReadOnly, READ_KEY)],
        request_memory: RequestMemoryOptions { bodies_bytes: 8 * MB, answers_bytes: 16 * MB },
        ..EngineOptions::default()
    };
    let engine = Engine::open(store, options, Arc::new(Still::default())).await.unwrap();
    let client = Client::over(Arc::clone(&engine));
    client.create("/dbs", json!({ "id": "d" })).await;
    client.create("/dbs/d/colls", container("c")).await;
    let large = json!({ "id": "large", "pk": "a", "text": "x".repeat(MB) });
    let answer = client.send(Call::post(DOCS).key(&json!(["a"])).json(&large)).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    (client, engine)
}

fn read_large() -> Call {
    Call::get("/dbs/d/colls/c/docs/large").key(&json!(["a"]))
}

fn by(memory: Option<&Arc<ConnectionMemory>>) -> ConnectionInfo {
    ConnectionInfo { secure: true, peer: std::net::Ipv4Addr::LOCALHOST.into(), memory: memory.cloned() }
}

#[tokio::test(start_paused = true)]
async fn answers_that_nobody_takes_keep_others_out_and_no_memory_is_lost() {
    let (client, engine) = small().await;
    let reserved = || engine.request_memory().reserved_bytes(MemoryKind::Answer);
    assert_eq!(reserved(), 0, "all answers were taken");
    let mut untaken = Vec::new();
    let refused = loop {
        let answer = client.answered(read_large(), by(None)).await;
        assert!(reserved() <= 16 * MB);
        if answer.status() != StatusCode::OK {
            break answer;
        }
        untaken.push(answer);
        assert!(untaken.len() * MB < reserved());
    };
    // One credential can use half of the memory, and a page needs more than is left of it.
    assert!((5..8).contains(&untaken.len()), "{}", untaken.len());
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers().contains_key("x-ms-retry-after-ms"));
    let query = Call::get(DOCS).header("x-ms-max-item-count", "1");
    assert_eq!(client.send(query.clone()).await.code(), (429, 3200));
    // A piece of an answer keeps the memory of the whole answer reserved.
    let mut first = untaken.pop().unwrap();
    let piece = first.body_mut().frame().await.unwrap().unwrap();
    drop(first);
    let held = reserved();
    drop(piece);
    assert!(reserved() + MB < held);
    untaken.clear();
    assert_eq!(reserved(), 0);
    assert_eq!(client.send(query).await.status, StatusCode::OK);
    assert_eq!(reserved(), 0);
}

#[tokio::test(start_paused = true)]
async fn headers_that_live_on_do_not_keep_the_body() {
    let (client, engine) = small().await;
    let connection = engine.request_memory().connection();
    let answer = client.answered(read_large(), by(Some(&connection))).await;
    let (parts, body) = answer.into_parts();
    drop(body);
    assert_eq!(engine.request_memory().reserved_bytes(MemoryKind::Answer), 0);
    assert!(parts.headers.contains_key("x-ms-activity-id"));
}

#[tokio::test(start_paused = true)]
async fn small_answers_pass_large_ones_that_wait() {
    let (client, _engine) = small().await;
    client.put_item("little", "a").await;
    let mut untaken = Vec::new();
    for _ in 0..20 {
        let answer = client.answered(read_large(), by(None)).await;
        untaken.extend((answer.status() == StatusCode::OK).then_some(answer));
    }
    let waiting = client.answered(read_large(), by(None));
    let little = async {
        tokio::task::yield_now().await;
        let read = Call::get("/dbs/d/colls/c/docs/little").key(&json!(["a"]));
        let query = json!({ "query": "SELECT VALUE 1 FROM c WHERE c.id = 'little'" });
        let query =
            Call::post(DOCS).key(&json!(["a"])).header("x-ms-documentdb-isquery", "true").json(&query);
        let query = query.header("content-type", "application/query+json");
        (client.send(read).await.status, client.send(query).await.status)
    };
    let (refused, answered) = tokio::join!(waiting, little);
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(answered, (StatusCode::OK, StatusCode::OK));
}

#[tokio::test(start_paused = true)]
async fn a_waiting_request_is_answered_when_there_is_room() {
    let (client, engine) = small().await;
    let connection = engine.request_memory().connection();
    let mut untaken = Vec::new();
    for _ in 0..5 {
        let answer = client.answered(read_large(), by(Some(&connection))).await;
        assert_eq!(answer.status(), StatusCode::OK);
        untaken.push(answer);
    }
    let taker = async {
        tokio::task::yield_now().await;
        drop(untaken);
    };
    let (answer, ()) = tokio::join!(client.send_by(read_large(), by(Some(&connection))), taker);
    assert_eq!(answer.status, StatusCode::OK);
    assert!(answer.body.len() > MB);
}

/// A body that never arrives.
struct Absent(usize);

impl Body for Absent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0 as u64)
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_is_kept_for_those_alone_who_may_send_it() {
    let (client, engine) = small().await;
    let post = || Call::post(DOCS).key(&json!(["a"]));
    let late = client.send_body(post(), Absent(MB)).await;
    assert_eq!(late.code(), (400, 0), "a body that does not come is waited for: {}", late.message());
    let signed = |call: Call| {
        let authorization = call.authorization_by(READ_KEY, &date_at(NOW));
        call.header("authorization", authorization)
    };
    let database = Call::post("/dbs");
    let elsewhere = Call::post("/dbs/d/colls/absent/docs").key(&json!(["a"]));
    for (call, expected) in [
        (signed(post()), 403),
        (signed(Call::put("/dbs/d/colls/c/docs/large").key(&json!(["a"]))), 403),
        (signed(database), 403),
        (elsewhere, 404),
    ] {
        let name = format!("{} {}", call.verb, call.path);
        assert_eq!(client.send_body(call, Absent(MB)).await.status.as_u16(), expected, "{name}");
    }
    let query = signed(post().header("x-ms-documentdb-isquery", "true"));
    assert_eq!(client.send_body(query, Absent(100)).await.status.as_u16(), 400, "who may query may send one");
    assert_eq!(engine.request_memory().reserved_bytes(MemoryKind::Body), 0);
}

#[tokio::test(start_paused = true)]
async fn bodies_under_way_are_bounded_together() {
    let (client, engine) = small().await;
    let half_sent = || client.send_body(Call::post(DOCS).key(&json!(["a"])), Absent(3 * MB));
    let (first, second) = tokio::join!(half_sent(), half_sent());
    let mut codes = [first.code(), second.code()];
    codes.sort_unstable();
    assert_eq!(codes, [(400, 0), (429, 3200)], "a credential has half of the eight megabytes");
    assert_eq!(engine.request_memory().reserved_bytes(MemoryKind::Body), 0);
}

/// The server waited as long for the body of a caller without a key as for others, and the connection held its memory.
#[tokio::test(start_paused = true)]
async fn the_body_of_a_stranger_is_not_awaited_for_long() {
    let (client, _engine) = small().await;
    let post = || Call::post(DOCS).key(&json!(["a"]));
    let wrong = "type%3Dmaster%26ver%3D1.0%26sig%3DAAAA";
    for (call, status) in [(post().header("authorization", wrong), 401), (Call::post("/nothing"), 404)] {
        // The clock stands still but for timers.
        let begun = tokio::time::Instant::now();
        let refused = client.send_body(call, Absent(MB)).await;
        assert_eq!(refused.status.as_u16(), status, "{refused:?}");
        assert_eq!(begun.elapsed(), Duration::from_secs(1), "{refused:?}");
    }
}
