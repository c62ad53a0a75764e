//! Memory of bodies and answers: bodies are awaited for those alone who may send them, and batches wait for room.

use crate::batches::{batch, part};
use crate::client::{Call, Client, NOW, READER_KEY, Signing, address, code};
use bytes::Bytes;
use engine::{EngineOptions, MemoryKind, RequestMemoryOptions};
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

const MB: usize = 1 << 20;

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
async fn a_late_body_is_awaited_for_those_alone_who_may_send_it() {
    let client = Client::with_table().await;
    let reserved = || client.engine.request_memory().reserved_bytes(MemoryKind::Body);
    let calls = || {
        [
            Call::new("POST", "people"),
            Call::new("PUT", address("p", "r")),
            Call::new("MERGE", address("p", "r")).header("if-match", "*"),
            Call::new("POST", "Tables"),
        ]
    };
    for call in calls() {
        let name = format!("{} {}", call.verb, call.path);
        let late = client.send_body(call.cosmos(), Absent(MB)).await;
        assert_eq!(late.refusal(), code(400, "InvalidInput"), "it is waited for: {name}");
    }
    for call in calls() {
        let name = format!("{} {}", call.verb, call.path);
        let refused = client.send_body(call.cosmos().key(READER_KEY), Absent(MB)).await;
        assert_eq!(refused.status.as_u16(), 403, "{name}: {refused:?}");
    }
    let absent = client.send_body(Call::new("POST", "absent"), Absent(MB)).await;
    assert_eq!(absent.refusal(), code(404, "TableNotFound"));
    for path in ["?restype=service&comp=properties", "people?comp=acl"] {
        let refused = client.send_body(Call::new("PUT", path).cosmos(), Absent(MB)).await;
        assert_eq!(refused.refusal(), code(501, "NotImplemented"), "{path}");
    }
    let batch = Call::new("POST", "$batch").cosmos().key(READER_KEY);
    let late = client.send_body(batch, Absent(MB)).await;
    assert_eq!(late.refusal(), code(400, "InvalidInput"), "who reads may send a query");
    assert_eq!(reserved(), 0);
}

/// The server waited as long for the body of a caller without a key as for others, and the connection held its memory.
#[tokio::test(start_paused = true)]
async fn the_body_of_a_stranger_is_not_awaited_for_long() {
    let client = Client::with_table().await;
    for path in ["people", "$batch", "Tables", "a/b"] {
        let call = Call::new("POST", path);
        let strange = [
            call.clone().signing(Signing::None),
            call.clone().signing(Signing::Header("SharedKey storage:AAAA".to_owned())),
            call.clone().cosmos().key(b"another key"),
            call.clone().at(NOW - 1000),
        ];
        for stranger in strange {
            // The clock stands still but for timers.
            let begun = tokio::time::Instant::now();
            let refused = client.send_body(stranger.clone(), Absent(MB)).await;
            let expected = if stranger.path == "a/b" { "ResourceNotFound" } else { "AuthenticationFailed" };
            assert_eq!(refused.refusal().1, expected, "{stranger:?}");
            assert_eq!(refused.header("connection"), Some("close"), "{stranger:?}");
            assert_eq!(begun.elapsed(), Duration::from_secs(1), "{stranger:?}");
        }
    }
}

/// A batch cannot be executed twice, so it was executed and its answer was held whether there was room or not.
#[tokio::test(start_paused = true)]
async fn a_batch_waits_for_room_for_its_answer() {
    let request_memory = RequestMemoryOptions { bodies_bytes: 8 * MB, answers_bytes: 16 * MB };
    let client = Client::with(EngineOptions { request_memory, ..EngineOptions::default() }).await;
    client.send(Call::new("POST", "Tables").json(r#"{"TableName":"people"}"#)).await.expect(201);
    let texts = (0..15).map(|number| format!(r#","p{number}":"{}""#, "x".repeat(30_000))).collect::<String>();
    client.insert(&format!(r#"{{"PartitionKey":"p","RowKey":"large"{texts}}}"#)).await;
    let request = format!("GET https://tables.example/storage/{} HTTP/1.1", address("p", "large"));
    let retrieval = format!("--b\r\nContent-Type: application/http\r\n\r\n{request}\r\n\r\n--b--\r\n");
    let retrieval = Call::new("POST", "$batch").body("multipart/mixed; boundary=b", &retrieval);
    let reserved = || client.engine.request_memory().reserved_bytes(MemoryKind::Answer);
    let mut untaken = Vec::new();
    loop {
        let answer = client.answered(retrieval.clone(), Full::from(retrieval.body.clone())).await;
        if answer.status().as_u16() == 503 {
            break;
        }
        untaken.push(answer);
        // One credential can use half of the memory.
        assert!(
            (untaken.len() * 450_000..8 * MB).contains(&reserved()),
            "{} of {}",
            reserved(),
            untaken.len()
        );
    }
    let insertion = batch(&[part("POST", "people", "", r#"{"PartitionKey":"p","RowKey":"late"}"#)]);
    assert_eq!(client.refusal(insertion.clone()).await, code(503, "ServerBusy"));
    untaken.clear();
    assert!(client.entity("p", "late").await.is_none());
    client.send(insertion).await.expect(202);
    assert!(client.entity("p", "late").await.is_some());
    assert_eq!(reserved(), 0);
}
