//! The read feed: every document once, in a fixed order, page by page.

use crate::harness::{Harness, key, text};
use engine::{Container, FeedRequest, Scope};
use model::{Fault, PartitionKeyDefinition, PartitionKeyKind, PartitionOrdinal};
use std::collections::BTreeSet;

async fn drain(harness: &Harness, container: &Container, scope: Scope, items_max: usize) -> Vec<String> {
    let mut ids = Vec::new();
    let mut continuation = None;
    loop {
        let access = harness.engine.access();
        let pass = access.list_documents(&harness.principal, container, scope.clone()).unwrap();
        let request = FeedRequest { items_max, continuation, session: Vec::new() };
        let page = harness.engine.feed(pass, &request).await.unwrap();
        assert!(page.documents.len() <= items_max);
        let id = |stored: &plan::StoredDocument| {
            stored.document.root().member("id").unwrap().as_str().unwrap().to_owned()
        };
        ids.extend(page.documents.iter().map(id));
        continuation = page.continuation.map(|next| next.text);
        if continuation.is_none() {
            return ids;
        }
    }
}

#[tokio::test]
async fn every_document_comes_once_whatever_the_page_size() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 18_000).await;
    for number in 0..60 {
        harness.create(&container, &format!(r#"{{"id":"{number}","pk":"{}"}}"#, number % 7)).await.unwrap();
    }
    let all = drain(&harness, &container, Scope::Container, 1000).await;
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 60);
    for items_max in [1, 2, 7, 59, 60, 61] {
        assert_eq!(drain(&harness, &container, Scope::Container, items_max).await, all, "{items_max}");
    }
    let mut by_range = Vec::new();
    for ordinal in 0..3 {
        by_range.extend(drain(&harness, &container, Scope::Range(PartitionOrdinal(ordinal), None), 4).await);
    }
    assert_eq!(by_range, all);
    let of_key = drain(&harness, &container, Scope::Key(key(&container, r#"["3"]"#)), 4).await;
    assert_eq!(of_key.len(), (0..60).filter(|number| number % 7 == 3).count());
}

#[tokio::test]
async fn a_prefix_of_a_hierarchical_key_covers_its_documents() {
    let harness = Harness::new().await;
    let levels = PartitionKeyDefinition::new(PartitionKeyKind::MultiHash, ["/t", "/u"]).unwrap();
    let container = harness.container(|draft| draft.partition_key = levels, 400).await;
    for (number, (tenant, user)) in [("a", "1"), ("a", "2"), ("b", "1")].into_iter().enumerate() {
        let json = format!(r#"{{"id":"{number}","t":"{tenant}","u":"{user}"}}"#);
        harness.create(&container, &json).await.unwrap();
    }
    let prefix = Scope::Key(key(&container, r#"["a"]"#));
    assert_eq!(drain(&harness, &container, prefix, 1).await.len(), 2);
    let whole = Scope::Key(key(&container, r#"["b","1"]"#));
    assert_eq!(drain(&harness, &container, whole, 10).await, ["2"]);
}

#[tokio::test]
async fn a_continuation_of_another_request_is_refused() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    for number in 0..3 {
        harness.create(&container, &format!(r#"{{"id":"{number}","pk":"a"}}"#)).await.unwrap();
    }
    let feed = |scope, continuation| {
        let engine = &harness.engine;
        let pass = engine.access().list_documents(&harness.principal, &container, scope).unwrap();
        let request = FeedRequest { items_max: 1, continuation, session: Vec::new() };
        async move { engine.feed(pass, &request).await }
    };
    let first = feed(Scope::Container, None).await.unwrap().continuation.unwrap().text;
    let key = |json| Scope::Key(key(&container, json));
    let of_key = feed(key(r#"["a"]"#), None).await.unwrap().continuation.unwrap().text;
    let other_key = feed(key(r#"["b"]"#), Some(of_key.clone())).await;
    assert!(matches!(other_key.unwrap_err(), Fault::Request(_)));
    // The same documents, named differently.
    for (scope, continuation) in [
        (key(r#"["a"]"#), &first),
        (Scope::Range(PartitionOrdinal(0), None), &first),
        (Scope::Container, &of_key),
        (Scope::Range(PartitionOrdinal(0), None), &of_key),
    ] {
        let page = feed(scope, Some(continuation.clone())).await.unwrap();
        assert_eq!(text(&page.documents[0]), r#"{"id":"1","pk":"a"}"#);
    }
    let mut forged = first;
    forged.pop();
    assert!(matches!(feed(Scope::Container, Some(forged)).await.unwrap_err(), Fault::Request(_)));
    let absent = feed(Scope::Range(PartitionOrdinal(77), None), None).await;
    assert!(matches!(absent.unwrap_err(), Fault::Missing(_)));
}
