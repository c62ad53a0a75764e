//! Memory is held for bodies of those alone who may send them.

use crate::client::{Call, Client, NOW, READER_KEY, Signing, address, code};
use bytes::Bytes;
use engine::MemoryKind;
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
