//! A replace with another id: the document keeps its number and is found by it in every state.

use crate::{Fixture, TestClock, delete, start_of, upsert};
use kv::{CommitMode, Durability, KeyRange, Store};
use model::{ConflictFault, DocumentNumber, Fault};
use partition::keyspace::SPACES;
use partition::{HistoryKind, LogKind, LogPosition, PartitionView};
use plan::{Condition, Item, Mutation, Outcome, Rename, Target};
use std::sync::Arc;
use value::Document;

fn rename(from: &str, to: &str) -> Mutation {
    let text = format!(r#"{{"id":"{to}","pk":"a","was":"{from}"}}"#);
    let item = Item::new(Document::from_json(text.as_bytes()).unwrap()).unwrap();
    let target = Target::Id(from.to_owned());
    Mutation::Replace { target, item, condition: Condition::None, rename: Rename::Allowed }
}

async fn new_fixture() -> (Store, Fixture) {
    let store = Store::memory(&SPACES, CommitMode::Inline);
    Fixture::create(&store).await;
    let clock = Arc::new(TestClock::default());
    let fixture = Fixture::open(&store, &clock, Durability::Sync).await.unwrap();
    fixture.retain(Some(100));
    (store, fixture)
}

async fn number_of(fixture: &Fixture, id: &str) -> Option<DocumentNumber> {
    match fixture.partition.read(&fixture.key, &Target::Id(id.to_owned()), &Condition::None).await {
        Ok((Outcome::Read(stored), ..)) => Some(stored.number),
        Ok(other) => panic!("{other:?}"),
        Err(Fault::Missing(_)) => None,
        Err(fault) => panic!("{fault}"),
    }
}

/// The ids of documents by their numbers, in `view`.
async fn ids(view: &PartitionView, numbers: &[DocumentNumber]) -> Vec<String> {
    let documents = view.by_numbers(numbers, &KeyRange::all()).await.unwrap();
    let id = |document: Document| document.root().member("id").unwrap().as_str().unwrap().to_owned();
    documents.into_iter().map(|stored| id(stored.document)).collect()
}

#[tokio::test]
async fn a_renamed_document_keeps_its_number_and_leaves_its_id() {
    let (store, fixture) = new_fixture().await;
    fixture.run(vec![upsert("1")]).await;
    fixture.run(vec![upsert("2")]).await;
    let number = number_of(&fixture, "1").await.unwrap();
    let lsn = fixture.run(vec![rename("1", "3")]).await;
    assert_eq!(number_of(&fixture, "1").await, None);
    assert_eq!(number_of(&fixture, "3").await, Some(number));
    let by_number = Target::Number(number);
    assert!(fixture.partition.read(&fixture.key, &by_number, &Condition::None).await.is_ok());
    let (from, to) = (fixture.record_key("1"), fixture.record_key("3"));
    let (at, kind) = fixture.log().await.pop().unwrap();
    assert_eq!((at, kind), (start_of(lsn), LogKind::Rename { from: from.clone(), to: to.clone() }));
    let view = fixture.partition.view().await.unwrap();
    let history = view.history(start_of(lsn)).await.unwrap();
    let [(_, entry)] = &history[..] else { panic!("{history:?}") };
    assert_eq!((&entry.kind, &entry.key), (&HistoryKind::Rename { from }, &to));
    // Its old id is free, and the new one is taken.
    fixture.run(vec![upsert("1")]).await;
    assert_ne!(number_of(&fixture, "1").await, Some(number));
    let taken = fixture.try_run(&fixture.key, vec![rename("3", "2")]).await.unwrap_err();
    assert_eq!(taken.fault, Fault::Conflict(ConflictFault::Id));
    assert_eq!(number_of(&fixture, "3").await, Some(number));
    fixture.audited(&store).await;
}

/// The key cache had one key per number: a reader of a state before or after the change of the id used the wrong one
/// and took the document for deleted.
#[tokio::test]
async fn a_renamed_document_is_found_by_its_number_in_every_state() {
    let (store, fixture) = new_fixture().await;
    fixture.run(vec![upsert("1"), upsert("2")]).await;
    let numbers = [number_of(&fixture, "1").await.unwrap(), number_of(&fixture, "2").await.unwrap()];
    let before = fixture.partition.view().await.unwrap();
    assert_eq!(ids(&before, &numbers).await, ["1", "2"]);
    fixture.run(vec![rename("1", "3")]).await;
    let after = fixture.partition.view().await.unwrap();
    // Each time the cache has the key of the other state.
    for _ in 0..2 {
        assert_eq!(ids(&before, &numbers).await, ["1", "2"]);
        assert_eq!(ids(&after, &numbers).await, ["3", "2"]);
    }
    // Another document under the old id is not mistaken for it.
    fixture.run(vec![upsert("1")]).await;
    fixture.run(vec![rename("1", "4")]).await;
    fixture.run(vec![rename("3", "1")]).await;
    let last = fixture.partition.view().await.unwrap();
    assert_eq!(ids(&last, &numbers).await, ["1", "2"]);
    assert_eq!(ids(&before, &numbers).await, ["1", "2"]);
    fixture.run(vec![delete("1")]).await;
    assert_eq!(ids(&fixture.partition.view().await.unwrap(), &numbers).await, ["2"]);
    fixture.audited(&store).await;
}

#[tokio::test]
async fn renames_of_one_transaction_come_to_one_entry_of_the_log() {
    let (store, fixture) = new_fixture().await;
    fixture.run(vec![upsert("1"), upsert("2"), upsert("3")]).await;
    // Two documents exchange their ids by way of a third id.
    let lsn = fixture.run(vec![rename("1", "x"), rename("2", "1"), rename("x", "2"), delete("3")]).await;
    let at = |position| LogPosition { lsn, position };
    let rename_kind =
        |from, to| LogKind::Rename { from: fixture.record_key(from), to: fixture.record_key(to) };
    let expected = [
        (at(1), rename_kind("2", "1")),
        (at(2), rename_kind("1", "2")),
        (at(3), LogKind::Delete { key: fixture.record_key("3") }),
    ];
    assert_eq!(fixture.log().await, expected);
    let lsn = fixture.run(vec![rename("1", "y"), rename("y", "1"), rename("2", "z"), delete("z")]).await;
    let at = |position| LogPosition { lsn, position };
    let expected = [
        (at(1), LogKind::Replace),
        // A reader of the log knows it by the id that it had before the transaction.
        (at(3), LogKind::Delete { key: fixture.record_key("2") }),
    ];
    assert_eq!(fixture.log().await[1..], expected);
    fixture.audited(&store).await;
}
