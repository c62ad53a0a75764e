//! Single documents and batches.

use crate::harness::{Harness, item, key, stored, text, unique_mail};
use model::{
    ConflictFault, ContainerDraft, DefaultTtl, Fault, MissingFault, PreconditionFault, RequestFault,
};
use plan::{Condition, DocumentOperation, Mutation, Outcome, Rename, Returned, Target};

#[tokio::test]
async fn what_is_created_can_be_read_until_it_is_deleted() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    let created = harness.create(&container, r#"{"id":"1","pk":"a","n":1}"#).await.unwrap();
    let read = harness.read(&container, r#"["a"]"#, "1").await.unwrap();
    assert_eq!(text(&read), r#"{"id":"1","pk":"a","n":1}"#);
    assert_eq!(read.etag, created.etag);
    let again = harness.create(&container, r#"{"id":"1","pk":"a"}"#).await;
    assert_eq!(again.unwrap_err(), Fault::Conflict(ConflictFault::Id));
    let delete = Mutation::Delete { target: Target::Id("1".to_owned()), condition: Condition::None };
    harness.write(&container, delete).await.unwrap();
    let gone = harness.read(&container, r#"["a"]"#, "1").await;
    assert_eq!(gone.unwrap_err(), Fault::Missing(MissingFault::Resource));
}

#[tokio::test]
async fn a_document_is_found_by_its_number_in_its_own_partition_only() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    let created = harness.create(&container, r#"{"id":"1","pk":"a"}"#).await.unwrap();
    let read = |key_text: &'static str| {
        let target = Target::Number(created.number);
        let address = engine::DocumentAddress { key: key(&container, key_text), target };
        let engine = &harness.engine;
        let pass = engine.access().read_document(&harness.principal, &container, address).unwrap();
        async move { engine.read(pass, &engine::ReadOptions::default()).await }
    };
    assert!(read(r#"["a"]"#).await.is_ok());
    assert_eq!(read(r#"["b"]"#).await.unwrap_err().fault, Fault::Missing(MissingFault::Resource));
}

#[tokio::test]
async fn replace_checks_version_and_id() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    let first = harness.create(&container, r#"{"id":"1","pk":"a"}"#).await.unwrap();
    let replace = |id: &str, json: &str, condition: Condition| Mutation::Replace {
        target: Target::Id(id.to_owned()),
        item: item(json),
        condition,
        rename: Rename::Allowed,
    };
    let matching = Condition::IfMatch(first.etag.to_string());
    let second =
        harness.write(&container, replace("1", r#"{"id":"1","pk":"a","v":2}"#, matching.clone())).await;
    let second = stored(second.unwrap().outcome);
    assert_eq!(second.number, first.number);
    assert_ne!(second.etag, first.etag);
    let stale = harness.write(&container, replace("1", r#"{"id":"1","pk":"a","v":3}"#, matching)).await;
    let current = second.etag;
    assert_eq!(stale.unwrap_err(), Fault::Precondition(PreconditionFault::EtagMismatch { current }));
    let absent = harness.write(&container, replace("9", r#"{"id":"9","pk":"a"}"#, Condition::None)).await;
    assert_eq!(absent.unwrap_err(), Fault::Missing(MissingFault::Resource));
    let moved = harness.write(&container, replace("1", r#"{"id":"1","pk":"b"}"#, Condition::None)).await;
    assert_eq!(moved.unwrap_err(), Fault::Request(RequestFault::PartitionKeyMismatch));
}

#[tokio::test]
async fn replace_may_change_the_id() {
    let harness = Harness::new().await;
    let expiring = |draft: &mut ContainerDraft| {
        draft.default_ttl = DefaultTtl::OnDemand;
        draft.unique_keys = unique_mail();
    };
    let container = harness.container(expiring, 400).await;
    let replace = |id: &str, json: &str, condition: Condition| Mutation::Replace {
        target: Target::Id(id.to_owned()),
        item: item(json),
        condition,
        rename: Rename::Allowed,
    };
    let first = harness.create(&container, r#"{"id":"1","pk":"a","mail":"x"}"#).await.unwrap();
    harness.create(&container, r#"{"id":"taken","pk":"a","mail":"y"}"#).await.unwrap();
    let stale = Condition::IfMatch("\"none\"".to_owned());
    let refused = harness.write(&container, replace("1", r#"{"id":"2","pk":"a","mail":"x"}"#, stale)).await;
    assert!(matches!(refused.unwrap_err(), Fault::Precondition(PreconditionFault::EtagMismatch { .. })));
    let taken = replace("1", r#"{"id":"taken","pk":"a","mail":"x"}"#, Condition::None);
    assert_eq!(harness.write(&container, taken).await.unwrap_err(), Fault::Conflict(ConflictFault::Id));
    let violating = replace("1", r#"{"id":"2","pk":"a","mail":"y"}"#, Condition::None);
    let violated = harness.write(&container, violating).await.unwrap_err();
    assert_eq!(violated, Fault::Conflict(ConflictFault::UniqueKey { constraint: 0 }));
    let matching = Condition::IfMatch(first.etag.to_string());
    let renamed =
        harness.write(&container, replace("1", r#"{"id":"2","pk":"a","mail":"x"}"#, matching)).await;
    let renamed = stored(renamed.unwrap().outcome);
    assert_eq!(renamed.number, first.number, "the RID stays");
    let gone = harness.read(&container, r#"["a"]"#, "1").await;
    assert_eq!(gone.unwrap_err(), Fault::Missing(MissingFault::Resource));
    assert_eq!(harness.read(&container, r#"["a"]"#, "2").await.unwrap().etag, renamed.etag);
    // An expired document does not conflict.
    harness.create(&container, r#"{"id":"old","pk":"a","mail":"z","ttl":1}"#).await.unwrap();
    harness.ambient.advance_seconds(2);
    let over =
        harness.write(&container, replace("2", r#"{"id":"old","pk":"a","mail":"z"}"#, Condition::None));
    assert_eq!(stored(over.await.unwrap().outcome).number, first.number);
    assert_eq!(harness.read(&container, r#"["a"]"#, "old").await.unwrap().number, first.number);
}

#[tokio::test]
async fn upsert_creates_and_replaces() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    let upsert = |json: &str, condition| Mutation::Upsert { item: item(json), condition };
    let body = r#"{"id":"1","pk":"a"}"#;
    let absent = harness.write(&container, upsert(body, Condition::IfExists)).await;
    assert_eq!(absent.unwrap_err(), Fault::Precondition(PreconditionFault::Absent));
    let created = harness.write(&container, upsert(body, Condition::None)).await.unwrap();
    assert!(matches!(created.outcome, Outcome::Created(_)));
    let replaced = harness.write(&container, upsert(body, Condition::None)).await.unwrap();
    assert!(matches!(replaced.outcome, Outcome::Replaced(_)));
    assert!(replaced.session.lsn > created.session.lsn);
    let exists = harness.write(&container, upsert(body, Condition::IfAbsent)).await;
    assert_eq!(exists.unwrap_err(), Fault::Precondition(PreconditionFault::Exists));
}

#[tokio::test]
async fn a_patch_changes_all_or_nothing_and_never_the_key() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    harness.create(&container, r#"{"id":"1","pk":"a","n":1}"#).await.unwrap();
    let patch = |operations: &str| {
        let list = value::Value::from_json(operations.as_bytes()).unwrap();
        Mutation::Patch {
            target: Target::Id("1".to_owned()),
            operations: value::PatchOperation::list_from_json(value::ValueRef::from(&list)).unwrap(),
            condition: Condition::None,
            filter: None,
        }
    };
    let done = harness.write(
        &container,
        patch(r#"[{"op":"incr","path":"/n","value":2},{"op":"add","path":"/x","value":[]}]"#),
    );
    assert_eq!(text(&stored(done.await.unwrap().outcome)), r#"{"id":"1","pk":"a","n":3,"x":[]}"#);
    for operations in [
        r#"[{"op":"set","path":"/n","value":9},{"op":"remove","path":"/absent"}]"#,
        r#"[{"op":"set","path":"/pk","value":"b"}]"#,
        r#"[{"op":"set","path":"/id","value":"2"}]"#,
        r#"[{"op":"set","path":"/_ts","value":2}]"#,
        r#"[{"op":"move","from":"/id","path":"/y"}]"#,
    ] {
        let refused = harness.write(&container, patch(operations)).await;
        assert!(matches!(refused, Err(Fault::Request(_))), "{operations}: {refused:?}");
    }
    assert_eq!(
        text(&harness.read(&container, r#"["a"]"#, "1").await.unwrap()),
        r#"{"id":"1","pk":"a","n":3,"x":[]}"#
    );
}

#[tokio::test]
async fn a_batch_is_all_or_nothing_and_reads_its_own_writes() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    let create = |json: &str| DocumentOperation::Write(Mutation::Create { item: item(json) });
    let read =
        |id: &str| DocumentOperation::Read { target: Target::Id(id.to_owned()), condition: Condition::None };
    let run = |operations: Vec<DocumentOperation>| {
        let (access, key) = (harness.engine.access(), key(&container, r#"["a"]"#));
        let pass = access.batch(&harness.principal, &container, key, operations).unwrap();
        harness.engine.batch(pass, Returned::All, &[])
    };
    let done = run(vec![create(r#"{"id":"1","pk":"a"}"#), read("1"), create(r#"{"id":"2","pk":"a"}"#)])
        .await
        .unwrap();
    assert_eq!(done.result.unwrap().len(), 3);
    let refused =
        run(vec![create(r#"{"id":"3","pk":"a"}"#), create(r#"{"id":"1","pk":"a"}"#)]).await.unwrap();
    let refusal = refused.result.unwrap_err();
    assert_eq!((refusal.index, refusal.fault), (1, Fault::Conflict(ConflictFault::Id)));
    assert!(harness.read(&container, r#"["a"]"#, "3").await.is_err());
    let foreign = run(vec![create(r#"{"id":"4","pk":"b"}"#)]).await.unwrap().result.unwrap_err();
    assert_eq!(foreign.fault, Fault::Request(RequestFault::PartitionKeyMismatch));
}

#[tokio::test]
async fn unique_keys_hold_inside_a_logical_partition() {
    let harness = Harness::new().await;
    let container = harness.container(|draft| draft.unique_keys = unique_mail(), 400).await;
    harness.create(&container, r#"{"id":"1","pk":"a","mail":"x"}"#).await.unwrap();
    let twice = harness.create(&container, r#"{"id":"2","pk":"a","mail":"x"}"#).await;
    assert_eq!(twice.unwrap_err(), Fault::Conflict(ConflictFault::UniqueKey { constraint: 0 }));
    harness.create(&container, r#"{"id":"1","pk":"b","mail":"x"}"#).await.unwrap();
    harness.create(&container, r#"{"id":"3","pk":"a"}"#).await.unwrap();
    let both_lack_it = harness.create(&container, r#"{"id":"4","pk":"a"}"#).await;
    assert!(both_lack_it.is_err());
    // A replace that keeps its values does not conflict with itself, and one that changes them releases the old ones.
    let upsert = |json: &str| Mutation::Upsert { item: item(json), condition: Condition::None };
    harness.write(&container, upsert(r#"{"id":"1","pk":"a","mail":"x","n":1}"#)).await.unwrap();
    harness.write(&container, upsert(r#"{"id":"1","pk":"a","mail":"y"}"#)).await.unwrap();
    harness.create(&container, r#"{"id":"2","pk":"a","mail":"x"}"#).await.unwrap();
    let delete = Mutation::Delete { target: Target::Id("2".to_owned()), condition: Condition::None };
    harness.write(&container, delete).await.unwrap();
    harness.create(&container, r#"{"id":"5","pk":"a","mail":"x"}"#).await.unwrap();
    let long = "z".repeat(10_000);
    harness.create(&container, &format!(r#"{{"id":"6","pk":"a","mail":"{long}"}}"#)).await.unwrap();
    let long_twice = harness.create(&container, &format!(r#"{{"id":"7","pk":"a","mail":"{long}"}}"#)).await;
    assert!(long_twice.is_err());
}

#[tokio::test]
async fn deleting_a_logical_partition_leaves_the_others() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    for number in 0..250 {
        harness.create(&container, &format!(r#"{{"id":"{number}","pk":"a"}}"#)).await.unwrap();
    }
    harness.create(&container, r#"{"id":"1","pk":"b"}"#).await.unwrap();
    let (access, key) = (harness.engine.access(), key(&container, r#"["a"]"#));
    let pass = access.delete_logical_partition(&harness.principal, &container, key).unwrap();
    harness.engine.delete_logical_partition(pass).await.unwrap();
    assert!(harness.read(&container, r#"["a"]"#, "7").await.is_err());
    assert!(harness.read(&container, r#"["b"]"#, "1").await.is_ok());
}

#[tokio::test]
async fn a_batch_of_nothing_is_not_permitted() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    let (access, key) = (harness.engine.access(), key(&container, r#"["a"]"#));
    assert!(access.batch(&harness.principal, &container, key, Vec::new()).is_err());
}
