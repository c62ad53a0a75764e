//! The line protocol on a store in memory.

#![allow(clippy::unwrap_used)] // a failed expectation ends the test

use engine::{Account, AccountKey, Engine, EngineOptions};
use hmac::{Hmac, KeyInit, Mac};
use kv::{CommitMode, Store};
use line::Session;
use model::{Ambient, ContainerDraft, PartitionKeyDefinition, PartitionKeyKind};
use sha2::Sha256;
use std::sync::Arc;

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

/// Checks the answer to each line.
async fn check(cases: &[(&str, &str)]) {
    let store = Store::memory(&engine::STORE_SPACES, CommitMode::Thread);
    let options = EngineOptions { keys: vec![AccountKey::new(b"key")], ..EngineOptions::default() };
    let engine = Engine::open(store, options, Arc::new(Still)).await.unwrap();
    let mac = Hmac::<Sha256>::new_from_slice(b"key").unwrap().chain_update(b"hello").finalize();
    let principal = engine.access().verify_signature(b"hello", &mac.into_bytes(), 1).unwrap();
    let pass = engine.access().change_catalog(&principal, Account).unwrap();
    let database = engine.create_database(pass, "d", None).await.unwrap();
    let key = PartitionKeyDefinition::new(PartitionKeyKind::HashV2, ["/pk"]).unwrap();
    let definition = ContainerDraft::new("c", key).checked().unwrap();
    let pass = engine.access().change_catalog(&principal, &*database).unwrap();
    engine.create_container(pass, definition, None).await.unwrap();
    let session = |container| Session::open(Arc::clone(&engine), principal.clone(), ("d", container));
    assert!(session("absent").is_err());
    let session = session("c").unwrap();
    for (line, expected) in cases {
        assert_eq!(session.answer(line).await, *expected, "{line}");
    }
}

#[tokio::test]
async fn documents_are_created_read_merged_and_queried() {
    check(&[
        (r#"create {"id":"1","pk":"a","n":1}"#, "{\"id\":\"1\",\"pk\":\"a\",\"n\":1}\nok\n"),
        (r#"create {"id":"1","pk":"a"}"#, "error conflict another resource has this id\n"),
        (r#"merge "a" {"id":"1","m":[]}"#, "{\"id\":\"1\",\"pk\":\"a\",\"n\":1,\"m\":[]}\nok\n"),
        (r#"merge "b" {"id":"2","pk":"b"}"#, "{\"id\":\"2\",\"pk\":\"b\"}\nok\n"),
        (r#"read "b" 2 "b" 1"#, "{\"id\":\"2\",\"pk\":\"b\"}\nnone\nok\n"),
        ("query SELECT VALUE c.n + 1 FROM c WHERE c.pk = 'a'", "2\nok\n"),
        ("query SELECT VALUE COUNT(1) FROM c", "2\nok\n"),
        ("query SELECT", "error invalid the query is invalid: the text ends too early (at 6 to 6)\n"),
        ("more x SELECT * FROM c", "error invalid the continuation token is invalid: it is not base64\n"),
    ])
    .await;
}

#[tokio::test]
async fn a_batch_is_all_or_nothing() {
    check(&[
        (
            r#"batch "a" [{"create":{"id":"1","pk":"a"}},{"merge":{"id":"1","n":2}},{"read":"1"}]"#,
            "{\"id\":\"1\",\"pk\":\"a\"}\n{\"id\":\"1\",\"pk\":\"a\",\"n\":2}\n{\"id\":\"1\",\"pk\":\"a\",\"n\":2}\nok\n",
        ),
        (
            r#"batch "a" [{"delete":"1"},{"delete":"1"}]"#,
            "error missing the resource does not exist\n",
        ),
        ("query SELECT VALUE c.n FROM c", "2\nok\n"),
    ])
    .await;
}
