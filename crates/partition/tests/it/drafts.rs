//! Drafts: what they see, when they are committed, and what is left of those that are not.

use super::*;
use model::DefaultTtl;
use partition::{Draft, Unexecuted};
use plan::StoredDocument;
use std::time::Duration;
use tokio::task::JoinSet;

fn create(id: &str, members: &str) -> DocumentOperation {
    DocumentOperation::Write(Mutation::Create {
        item: item(&format!(r#"{{"id":"{id}","pk":"a"{members}}}"#)),
    })
}

fn upsert(id: &str, members: &str) -> DocumentOperation {
    let item = item(&format!(r#"{{"id":"{id}","pk":"a"{members}}}"#));
    DocumentOperation::Write(Mutation::Upsert { item, condition: Condition::None })
}

fn read(id: &str) -> DocumentOperation {
    DocumentOperation::Read { target: Target::Id(id.to_owned()), condition: Condition::None }
}

fn stored(outcome: Outcome) -> StoredDocument {
    match outcome {
        Outcome::Created(stored) | Outcome::Replaced(stored) | Outcome::Read(stored) => stored,
        Outcome::Deleted | Outcome::NotModified(_) | Outcome::Nothing => panic!("no document in {outcome:?}"),
    }
}

fn has_n(stored: &StoredDocument) -> bool {
    stored.document.root().members().any(|(name, _)| name == "n")
}

async fn done(draft: &mut Draft, operation: DocumentOperation) -> StoredDocument {
    stored(draft.execute(operation).await.unwrap().0)
}

fn is_changed(result: &Result<partition::Executed, Unexecuted>) -> bool {
    matches!(result, Err(Unexecuted::Changed))
}

impl Fixture {
    async fn draft(&self) -> Draft {
        self.partition.begin(self.key.clone(), None).await.unwrap()
    }

    async fn write(&self, operation: DocumentOperation) -> StoredDocument {
        let transaction =
            Transaction { key: self.key.clone(), operations: vec![operation], returned: Returned::All };
        let mut executed = self.partition.execute(transaction).await.unwrap();
        stored(executed.outcomes.pop().unwrap().0)
    }

    async fn found(&self, id: &str) -> Option<StoredDocument> {
        let target = Target::Id(id.to_owned());
        let read = self.partition.read(&self.key, &target, &Condition::None).await;
        read.ok().map(|(outcome, ..)| stored(outcome))
    }

    /// The key of another logical partition.
    fn other_key(&self) -> LogicalKey {
        let definition = PartitionKeyDefinition::new(PartitionKeyKind::HashV2, ["/pk"]).unwrap();
        let partition_key = definition.key(vec!["b".into()]).unwrap();
        let effective = definition.effective_key(&partition_key);
        LogicalKey { partition_key, effective }
    }

    async fn write_elsewhere(&self, id: &str) {
        let item = item(&format!(r#"{{"id":"{id}","pk":"b"}}"#));
        self.try_run(&self.other_key(), vec![Mutation::Create { item }]).await.unwrap();
    }
}

/// What the owner of a draft has seen is what is committed: numbers, ETags and times, whatever others write meanwhile.
#[tokio::test]
async fn a_draft_is_committed_as_it_was_seen() {
    let store = Store::memory(&SPACES, CommitMode::Thread);
    let fixture = Fixture::on(store.clone()).await;
    let before = fixture.write(create("old", "")).await;
    let mut draft = fixture.draft().await;
    let first = done(&mut draft, create("x", "")).await;
    fixture.write_elsewhere("between").await;
    let second = done(&mut draft, upsert("x", r#","n":1"#)).await;
    assert_eq!((first.number, has_n(&second)), (second.number, true));
    assert!(first.etag != second.etag && first.number > before.number);
    assert_eq!(done(&mut draft, read("x")).await.etag, second.etag);
    // Conditions on versions that only the draft has seen.
    let matching = DocumentOperation::Write(Mutation::Delete {
        target: Target::Number(first.number),
        condition: Condition::IfMatch(first.etag.to_string()),
    });
    assert!(matches!(draft.execute(matching).await, Err(Fault::Precondition(_))));
    let patch = DocumentOperation::Write(Mutation::Replace {
        target: Target::Number(second.number),
        item: item(r#"{"id":"y","pk":"a"}"#),
        condition: Condition::IfMatch(second.etag.to_string()),
        rename: plan::Rename::Allowed,
    });
    let last = done(&mut draft, patch).await;
    let delete = Mutation::Delete { target: Target::Id("old".to_owned()), condition: Condition::IfExists };
    draft.execute(DocumentOperation::Write(delete)).await.unwrap();
    assert!(fixture.found("y").await.is_none() && fixture.found("old").await.is_some());
    let executed = fixture.partition.commit(draft).await.unwrap();
    let found = fixture.found("y").await.unwrap();
    assert_eq!((found.number, found.etag, found.ts()), (last.number, last.etag, last.ts()));
    assert!(fixture.found("old").await.is_none() && fixture.found("x").await.is_none());
    // One LSN for all changes, and the numbers of others are not repeated.
    let lsns: Vec<_> = fixture.log().await.into_iter().map(|(at, _)| at.lsn).collect();
    assert_eq!(lsns.iter().filter(|lsn| **lsn == executed.lsn).count(), 2, "{lsns:?}");
    let after = fixture.write(create("z", "")).await;
    assert!(after.number > last.number && after.etag.stamp > last.etag.stamp);
    fixture.audited(&store).await;
}

#[tokio::test]
async fn a_dropped_draft_leaves_nothing() {
    let store = Store::memory(&SPACES, CommitMode::Thread);
    let fixture = Fixture::on(store.clone()).await;
    let lsn = fixture.run(vec![Mutation::Create { item: item(r#"{"id":"1","pk":"a"}"#) }]).await;
    let mut draft = fixture.draft().await;
    done(&mut draft, upsert("1", r#","n":1"#)).await;
    done(&mut draft, create("2", "")).await;
    drop(draft);
    assert_eq!(fixture.partition.view().await.unwrap().lsn(), lsn);
    assert!(fixture.found("2").await.is_none());
    assert_eq!(fixture.write(create("3", "")).await.lsn, lsn.next());
    fixture.audited(&store).await;
}

/// Any write of the logical partition is a conflict, also of documents that the draft has not read. Others are not.
#[tokio::test]
async fn a_draft_is_committed_unless_its_logical_partition_has_changed() {
    let fixture = Fixture::new().await;
    fixture.write(create("1", "")).await;
    let mut draft = fixture.draft().await;
    done(&mut draft, upsert("1", "")).await;
    fixture.write(create("unrelated", "")).await;
    assert!(is_changed(&fixture.partition.commit(draft).await));

    let mut draft = fixture.draft().await;
    done(&mut draft, upsert("1", "")).await;
    for number in 0..20 {
        fixture.write_elsewhere(&number.to_string()).await;
    }
    fixture.partition.commit(draft).await.unwrap();

    // A draft that another draft has overtaken.
    let (mut first, mut second) = (fixture.draft().await, fixture.draft().await);
    done(&mut first, upsert("1", "")).await;
    done(&mut second, create("2", "")).await;
    fixture.partition.commit(second).await.unwrap();
    assert!(is_changed(&fixture.partition.commit(first).await));
    assert!(fixture.found("2").await.is_some());
}

/// The write was submitted before the writer knew of the draft.
#[tokio::test]
async fn a_write_in_flight_when_a_draft_begins_is_a_conflict() {
    let store = Store::memory(&SPACES, CommitMode::Stepped);
    let stepping = store.clone();
    let steps = tokio::spawn(async move {
        loop {
            stepping.step_is_due().await;
            stepping.step();
        }
    });
    let fixture = Arc::new(Fixture::on(store.clone()).await);
    fixture.write(create("1", "")).await;
    steps.abort();
    let writing = Arc::clone(&fixture);
    let write = tokio::spawn(async move { writing.write(upsert("1", r#","n":1"#)).await });
    pass_turns().await;
    let mut draft = fixture.draft().await;
    let seen = done(&mut draft, read("1")).await;
    assert!(!has_n(&seen), "the write is not durable yet");
    done(&mut draft, upsert("1", r#","n":2"#)).await;
    let committing = Arc::clone(&fixture);
    let commit = tokio::spawn(async move { committing.partition.commit(draft).await });
    pass_turns().await;
    for _ in 0..3 {
        store.step();
        pass_turns().await;
    }
    write.await.unwrap();
    assert!(is_changed(&commit.await.unwrap()));
}

#[tokio::test]
async fn a_draft_of_an_earlier_opening_is_not_committed() {
    let store = Store::memory(&SPACES, CommitMode::Thread);
    let fixture = Fixture::on(store.clone()).await;
    fixture.write(create("1", "")).await;
    let (mut draft, mut other) = (fixture.draft().await, fixture.draft().await);
    done(&mut draft, upsert("1", "")).await;
    done(&mut other, upsert("1", "")).await;
    fixture.partition.close().await.unwrap();
    let again = Fixture::open(&store, &Arc::default(), Durability::Sync).await.unwrap();
    let closed = fixture.partition.commit(draft).await;
    assert!(matches!(closed, Err(Unexecuted::Stopped(_))));
    // Nothing was written since, but its numbers may have been assigned again.
    assert!(is_changed(&again.partition.commit(other).await));
    let mut draft = again.draft().await;
    done(&mut draft, upsert("1", "")).await;
    again.partition.commit(draft).await.unwrap();
}

/// What has expired since a draft began would be seen differently now.
#[tokio::test]
async fn an_expiry_in_the_logical_partition_is_a_conflict() {
    let store = Store::memory(&SPACES, CommitMode::Thread);
    Fixture::create(&store).await;
    let clock = Arc::new(TestClock::default());
    let fixture = Fixture::open(&store, &clock, Durability::Sync).await.unwrap();
    let mut shape = ContainerShape::clone(&fixture.shape.load());
    shape.change += 1;
    shape.default_ttl = DefaultTtl::OnDemand;
    fixture.shape.adopt(shape);
    fixture.write(create("lasting", "")).await;
    fixture.write(create("short", r#","ttl":3"#)).await;
    let elsewhere = item(r#"{"id":"short","pk":"b","ttl":1}"#);
    fixture.try_run(&fixture.other_key(), vec![Mutation::Create { item: elsewhere }]).await.unwrap();

    let mut draft = fixture.draft().await;
    done(&mut draft, read("short")).await;
    done(&mut draft, upsert("lasting", "")).await;
    clock.advance_ms(2_000);
    fixture.partition.commit(draft).await.unwrap();

    let mut draft = fixture.draft().await;
    let number = done(&mut draft, read("short")).await.number;
    done(&mut draft, upsert("lasting", "")).await;
    clock.advance_ms(2_000);
    assert!(fixture.found("short").await.is_none());
    assert_eq!(done(&mut draft, read("short")).await.number, number, "its time stands still");
    assert!(is_changed(&fixture.partition.commit(draft).await));

    // The sweep is a write.
    let mut draft = fixture.draft().await;
    assert!(draft.execute(read("short")).await.is_err());
    done(&mut draft, upsert("lasting", "")).await;
    let second = clock.now_ms() / 1000 - 1;
    fixture.try_run(&fixture.other_key(), vec![Mutation::Expire { number, second }]).await.unwrap();
    assert!(is_changed(&fixture.partition.commit(draft).await));
}

#[tokio::test]
async fn a_replaced_definition_is_a_conflict() {
    let fixture = Fixture::new().await;
    let mut draft = fixture.draft().await;
    done(&mut draft, create("1", "")).await;
    fixture.retain(Some(100));
    assert!(is_changed(&fixture.partition.commit(draft).await));
    let mut draft = fixture.draft().await;
    done(&mut draft, create("1", "")).await;
    fixture.partition.commit(draft).await.unwrap();
}

/// The bounds are those of one transaction, for all operations together.
#[tokio::test]
async fn a_draft_is_as_large_as_a_transaction_at_most() {
    let fixture = Fixture::new().await;
    let mut draft = fixture.draft().await;
    let large = format!(r#","text":"{}""#, "x".repeat(1_500_000));
    let mut refused = None;
    for number in 0..40 {
        if let Err(fault) = draft.execute(create(&number.to_string(), &large)).await {
            refused = Some((number, fault));
            break;
        }
    }
    let Some((count, Fault::Limit(model::LimitFault::TransactionBytes { .. }))) = refused else {
        panic!("{refused:?}");
    };
    // It continues with what is smaller.
    done(&mut draft, create("small", "")).await;
    fixture.partition.commit(draft).await.unwrap();
    assert_eq!(fixture.partition.counts().documents, count + 1);
}

/// Drafts that say that others follow wait for them, but neither when there are enough nor beside other writes.
#[tokio::test(start_paused = true)]
async fn drafts_that_are_followed_wait_a_moment_for_company() {
    let fixture = Arc::new(Fixture::on(Store::memory(&SPACES, CommitMode::Inline)).await);
    // How long the commit of some drafts, and of a write beside them, takes.
    let commit = async |name: &str, count: usize, is_followed: bool, has_write: bool| {
        let mut drafts = Vec::new();
        for number in 0..count {
            let mut draft = fixture.draft().await;
            done(&mut draft, create(&format!("{name}{number}"), "")).await;
            if is_followed {
                draft.set_followed();
            }
            drafts.push(draft);
        }
        let begun = tokio::time::Instant::now();
        let mut commits = JoinSet::new();
        for draft in drafts {
            let fixture = Arc::clone(&fixture);
            commits.spawn(async move { fixture.partition.commit(draft).await });
        }
        if has_write {
            fixture.write_elsewhere(name).await;
        }
        let committed = commits.join_all().await;
        // All are on one logical partition, so only one of them is committed.
        assert_eq!(committed.iter().filter(|result| is_changed(result)).count(), count - 1);
        begun.elapsed()
    };
    assert_eq!(commit("alone", 1, false, false).await, Duration::ZERO);
    let waited = commit("followed", 2, true, false).await;
    assert!(waited >= Duration::from_millis(1) && waited < Duration::from_millis(5), "{waited:?}");
    assert_eq!(commit("enough", 8, true, false).await, Duration::ZERO);
    assert_eq!(commit("other", 2, true, true).await, Duration::ZERO);
}
