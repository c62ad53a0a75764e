//! Merges: given members replace those of the stored document, others stay.

use crate::harness::{Harness, item, key, stored, text, unique_mail};
use engine::{Action, Container, Keyed};
use model::{
    ConflictFault, ContainerDraft, DefaultTtl, Fault, MissingFault, PreconditionFault, RequestFault,
};
use plan::{Condition, DocumentOperation, Mutation, Outcome, WhenAbsent};

fn merge(json: &str, condition: Condition, absent: WhenAbsent) -> Mutation {
    Mutation::Merge { item: item(json), condition, absent, check: None }
}

async fn merged(
    harness: &Harness,
    container: &Container,
    key_text: &str,
    mutation: Mutation,
) -> Result<Outcome, Fault> {
    let keyed = Keyed::new(container, Some(key(container, key_text)), DocumentOperation::Write(mutation))?;
    let written = harness.engine.write(harness.write_pass(keyed)).await;
    written.map(|receipt| receipt.outcome).map_err(|refusal| refusal.fault)
}

#[tokio::test]
async fn given_members_replace_and_others_stay() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    let first = merge(r#"{"id":"1","pk":"a","n":1,"o":{"x":1}}"#, Condition::None, WhenAbsent::Create);
    let first = merged(&harness, &container, r#"["a"]"#, first).await.unwrap();
    let Outcome::Created(first) = first else { panic!("{first:?}") };
    // The key need not be repeated.
    let second = merge(r#"{"o":{"y":2},"m":null,"id":"1"}"#, Condition::None, WhenAbsent::Create);
    let second = merged(&harness, &container, r#"["a"]"#, second).await.unwrap();
    let Outcome::Replaced(second) = second else { panic!("{second:?}") };
    assert_eq!(second.number, first.number);
    let read = harness.read(&container, r#"["a"]"#, "1").await.unwrap();
    assert_eq!(text(&read), r#"{"id":"1","pk":"a","n":1,"o":{"y":2},"m":null}"#);
    assert_eq!(read.etag, second.etag);
}

#[tokio::test]
async fn a_merge_may_ask_for_a_stored_version() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    let at = |json: &str, condition, absent| {
        merged(&harness, &container, r#"["a"]"#, merge(json, condition, absent))
    };
    let body = r#"{"id":"1","pk":"a"}"#;
    let absent = at(body, Condition::IfMatch("\"x\"".to_owned()), WhenAbsent::Refuse).await;
    assert_eq!(absent.unwrap_err(), Fault::Missing(MissingFault::Resource));
    let created = stored(at(body, Condition::None, WhenAbsent::Create).await.unwrap());
    let current = created.etag;
    let stale = at(body, Condition::IfMatch("\"x\"".to_owned()), WhenAbsent::Create).await;
    assert_eq!(stale.unwrap_err(), Fault::Precondition(PreconditionFault::EtagMismatch { current }));
    let fresh = at(r#"{"id":"1","v":2}"#, Condition::IfMatch(current.to_string()), WhenAbsent::Refuse).await;
    assert!(matches!(fresh.unwrap(), Outcome::Replaced(_)));
}

#[tokio::test]
async fn a_merge_never_moves_a_document_to_another_key() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    let at = |json: &str| {
        merged(&harness, &container, r#"["a"]"#, merge(json, Condition::None, WhenAbsent::Create))
    };
    for json in [r#"{"id":"1"}"#, r#"{"id":"1","pk":"b"}"#] {
        assert_eq!(at(json).await.unwrap_err(), Fault::Request(RequestFault::PartitionKeyMismatch), "{json}");
    }
    at(r#"{"id":"1","pk":"a"}"#).await.unwrap();
    let moved = at(r#"{"id":"1","pk":"b"}"#).await;
    let property = "/pk".to_owned();
    assert_eq!(moved.unwrap_err(), Fault::Request(RequestFault::ImmutableProperty { property }));
}

#[tokio::test]
async fn a_merge_keeps_unique_keys_and_takes_a_new_time_to_live() {
    let harness = Harness::new().await;
    let unique = |draft: &mut ContainerDraft| {
        draft.unique_keys = unique_mail();
        draft.default_ttl = DefaultTtl::OnDemand;
    };
    let container = harness.container(unique, 400).await;
    harness.create(&container, r#"{"id":"1","pk":"a","mail":"x"}"#).await.unwrap();
    harness.create(&container, r#"{"id":"2","pk":"a","mail":"y"}"#).await.unwrap();
    let at = |json: &str| {
        merged(&harness, &container, r#"["a"]"#, merge(json, Condition::None, WhenAbsent::Create))
    };
    let taken = at(r#"{"id":"2","mail":"x"}"#).await;
    assert_eq!(taken.unwrap_err(), Fault::Conflict(ConflictFault::UniqueKey { constraint: 0 }));
    at(r#"{"id":"2","ttl":5}"#).await.unwrap();
    harness.ambient.advance_seconds(6);
    let gone = harness.read(&container, r#"["a"]"#, "2").await;
    assert_eq!(gone.unwrap_err(), Fault::Missing(MissingFault::Resource));
    // A merge treats an expired document as absent.
    let again = stored(at(r#"{"id":"2","pk":"a","z":1}"#).await.unwrap());
    assert_eq!(text(&again), r#"{"id":"2","pk":"a","z":1}"#);
}

#[test]
fn a_merge_needs_the_right_of_what_it_may_do() {
    let step = |absent| DocumentOperation::Write(merge(r#"{"id":"1"}"#, Condition::None, absent));
    assert_eq!(Action::of_step(&step(WhenAbsent::Create)), Action::UpsertDocument);
    assert_eq!(Action::of_step(&step(WhenAbsent::Refuse)), Action::ReplaceDocument);
}
