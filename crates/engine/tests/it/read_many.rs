//! Many documents by their keys in one request.

use crate::harness::{Harness, key, text};
use engine::{Container, DocumentAddress, DocumentsPass, READ_MANY_MAX};
use model::{Charge, Fault, LimitFault, Lsn, MissingFault, SessionToken};
use plan::Target;

fn address(container: &Container, pk: usize, id: usize) -> DocumentAddress {
    let key = key(container, &format!(r#"["{pk}"]"#));
    DocumentAddress { key, target: Target::Id(id.to_string()) }
}

fn pass<'a>(
    harness: &Harness,
    container: &'a Container,
    addresses: Vec<DocumentAddress>,
) -> DocumentsPass<'a> {
    harness.engine.access().read_documents(&harness.principal, container, addresses).unwrap()
}

#[tokio::test]
async fn documents_come_in_the_order_of_their_addresses() {
    let harness = Harness::new().await;
    // Three partitions.
    let container = harness.container(|_| {}, 18_000).await;
    for id in 0..60 {
        let body = format!(r#"{{"id":"{id}","pk":"{}"}}"#, id % 20);
        harness.create(&container, &body).await.unwrap();
    }
    let asked: Vec<(usize, usize)> =
        [(7, 7), (3, 43), (7, 47), (3, 7), (19, 59), (0, 99), (3, 43), (12, 12)].to_vec();
    let addresses = asked.iter().map(|(pk, id)| address(&container, *pk, *id)).collect();
    let read = harness.engine.read_many(pass(&harness, &container, addresses), &[]).await.unwrap();
    let found: Vec<Option<String>> =
        read.documents.iter().map(|document| document.as_ref().map(text)).collect();
    let expected = |(pk, id): &(usize, usize)| {
        (id % 20 == *pk && *id < 60).then(|| format!(r#"{{"id":"{id}","pk":"{pk}"}}"#))
    };
    assert_eq!(found, asked.iter().map(expected).collect::<Vec<_>>());
    // A token for each partition that was read, and the charge of as many reads.
    assert!((2..=3).contains(&read.session.len()), "{:?}", read.session);
    assert_eq!(read.charge, asked.iter().map(|_| Charge::MINIMUM).sum());
}

#[tokio::test]
async fn a_document_may_be_named_by_its_number() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    let created = harness.create(&container, r#"{"id":"1","pk":"1"}"#).await.unwrap();
    let numbered =
        |pk: usize| DocumentAddress { target: Target::Number(created.number), ..address(&container, pk, 0) };
    let addresses = vec![numbered(1), numbered(2)];
    let read = harness.engine.read_many(pass(&harness, &container, addresses), &[]).await.unwrap();
    assert_eq!(read.documents[0].as_ref().map(text).as_deref(), Some(r#"{"id":"1","pk":"1"}"#));
    assert!(read.documents[1].is_none());
}

#[tokio::test]
async fn bounds_keys_and_sessions_are_checked() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    let read = |addresses, session: Vec<SessionToken>| {
        let (engine, pass) = (&harness.engine, pass(&harness, &container, addresses));
        async move { engine.read_many(pass, &session).await }
    };
    let none = read(Vec::new(), Vec::new()).await.unwrap();
    assert!(none.documents.is_empty() && none.charge == Charge::NONE);
    let many = vec![address(&container, 0, 0); READ_MANY_MAX + 1];
    let expected = LimitFault::TooManyOperations { given: READ_MANY_MAX + 1, limit: READ_MANY_MAX };
    assert_eq!(read(many, Vec::new()).await.unwrap_err(), Fault::Limit(expected));
    harness.create(&container, r#"{"id":"0","pk":"0"}"#).await.unwrap();
    let seen = read(vec![address(&container, 0, 0)], Vec::new()).await.unwrap().session;
    assert!(read(vec![address(&container, 0, 0)], seen.clone()).await.is_ok());
    let ahead = vec![SessionToken { lsn: Lsn(u64::MAX), ..seen[0] }];
    let fault = read(vec![address(&container, 0, 0)], ahead).await.unwrap_err();
    assert_eq!(fault, Fault::Missing(MissingFault::Session));
}

#[tokio::test]
async fn an_answer_has_a_bound_in_bytes() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    let body = format!(r#"{{"id":"0","pk":"0","text":"{}"}}"#, "x".repeat(1 << 20));
    harness.create(&container, &body).await.unwrap();
    let addresses = vec![address(&container, 0, 0); 64];
    let fault = harness.engine.read_many(pass(&harness, &container, addresses), &[]).await.unwrap_err();
    assert!(matches!(fault, Fault::Limit(LimitFault::AnswerBytes { .. })), "{fault}");
}
