//! Locks on logical partitions.

use super::*;
use model::ConflictFault;
use partition::{LOCK_TIME_MAX, LOCK_WAIT_MAX};
use std::time::Duration;
use tokio::task::JoinHandle;

/// A partition on a store that commits at once, so that time stands still while requests are served.
async fn fixture() -> Arc<Fixture> {
    let store = Store::memory(&SPACES, CommitMode::Stepped);
    let stepping = store.clone();
    tokio::spawn(async move {
        loop {
            stepping.step_is_due().await;
            stepping.step();
        }
    });
    Arc::new(Fixture::on(store).await)
}

fn write(fixture: &Arc<Fixture>, key: &str, id: &str) -> JoinHandle<Result<Lsn, StepFault>> {
    let item = item(&format!(r#"{{"id":"{id}","pk":"{key}"}}"#));
    let definition = PartitionKeyDefinition::new(PartitionKeyKind::HashV2, ["/pk"]).unwrap();
    let partition_key = definition.key(vec![key.into()]).unwrap();
    let key = LogicalKey { effective: definition.effective_key(&partition_key), partition_key };
    let fixture = Arc::clone(fixture);
    tokio::spawn(async move {
        fixture.try_run(&key, vec![Mutation::Upsert { item, condition: Condition::None }]).await
    })
}

#[tokio::test(start_paused = true)]
async fn others_wait_for_the_holder_and_other_keys_do_not() {
    let fixture = fixture().await;
    let lock = fixture.partition.lock(&fixture.key, LOCK_WAIT_MAX).await.unwrap();
    let mut draft = fixture.partition.begin(fixture.key.clone(), Some(lock)).await.unwrap();
    let (first, second) = (write(&fixture, "a", "1"), write(&fixture, "a", "2"));
    write(&fixture, "b", "1").await.unwrap().unwrap();
    pass_turns().await;
    assert!(!first.is_finished() && !second.is_finished());
    let own = Mutation::Create { item: item(r#"{"id":"own","pk":"a"}"#) };
    draft.execute(DocumentOperation::Write(own)).await.unwrap();
    let committed = fixture.partition.commit(draft).await.unwrap();
    let (first, second) = (first.await.unwrap().unwrap(), second.await.unwrap().unwrap());
    assert!(committed.lsn <= first && first <= second);
    assert_eq!(fixture.partition.counts().documents, 4);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_lock_ends() {
    let fixture = fixture().await;
    let lock = fixture.partition.lock(&fixture.key, LOCK_WAIT_MAX).await.unwrap();
    let waiting = write(&fixture, "a", "1");
    pass_turns().await;
    assert!(!waiting.is_finished());
    let begun = tokio::time::Instant::now();
    drop(lock);
    waiting.await.unwrap().unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

/// The holder has forgotten its lock. Its draft is committed if nobody was waiting, and refused otherwise.
#[tokio::test(start_paused = true)]
async fn a_lock_ends_with_its_time() {
    let fixture = fixture().await;
    let own = || {
        DocumentOperation::Write(Mutation::Upsert {
            item: item(r#"{"id":"own","pk":"a"}"#),
            condition: Condition::None,
        })
    };
    let lock = fixture.partition.lock(&fixture.key, LOCK_WAIT_MAX).await.unwrap();
    let mut draft = fixture.partition.begin(fixture.key.clone(), Some(lock)).await.unwrap();
    draft.execute(own()).await.unwrap();
    tokio::time::sleep(LOCK_TIME_MAX / 2).await;
    let waiting = write(&fixture, "a", "1");
    waiting.await.unwrap().unwrap();
    let late = fixture.partition.commit(draft).await;
    assert!(matches!(late, Err(partition::Unexecuted::Changed)), "{late:?}");

    let lock = fixture.partition.lock(&fixture.key, LOCK_WAIT_MAX).await.unwrap();
    let mut draft = fixture.partition.begin(fixture.key.clone(), Some(lock)).await.unwrap();
    draft.execute(own()).await.unwrap();
    tokio::time::sleep(LOCK_TIME_MAX * 2).await;
    fixture.partition.commit(draft).await.unwrap();
}

/// Each of several locks lasts its full time: a request waits for a bounded time only.
#[tokio::test(start_paused = true)]
async fn who_waits_too_long_is_refused() {
    let fixture = fixture().await;
    let first = fixture.partition.lock(&fixture.key, LOCK_WAIT_MAX).await.unwrap();
    tokio::time::sleep(LOCK_TIME_MAX / 2).await;
    let locking = Arc::clone(&fixture);
    let second = tokio::spawn(async move { locking.partition.lock(&locking.key, LOCK_WAIT_MAX).await });
    pass_turns().await;
    let begun = tokio::time::Instant::now();
    let waiting = write(&fixture, "a", "1");
    let refused = waiting.await.unwrap().unwrap_err().fault;
    assert_eq!(refused, ConflictFault::Locked { waited: LOCK_WAIT_MAX }.into());
    assert!(begun.elapsed() >= LOCK_WAIT_MAX);
    let second = second.await.unwrap().unwrap();
    // One that waits for a lock itself.
    let begun = tokio::time::Instant::now();
    let wait_max = Duration::from_secs(1);
    let third = fixture.partition.lock(&fixture.key, wait_max).await.unwrap_err();
    assert_eq!((third, begun.elapsed()), (ConflictFault::Locked { waited: wait_max }.into(), wait_max));
    drop((first, second));
    // The abandoned request leaves no lock behind.
    write(&fixture, "a", "1").await.unwrap().unwrap();
    assert_eq!(fixture.partition.counts().documents, 1);
}

#[tokio::test(start_paused = true)]
async fn a_closed_partition_returns_those_who_wait() {
    let fixture = fixture().await;
    let lock = fixture.partition.lock(&fixture.key, LOCK_WAIT_MAX).await.unwrap();
    let operations =
        vec![DocumentOperation::Write(Mutation::Create { item: item(r#"{"id":"1","pk":"a"}"#) })];
    let transaction = Transaction { key: fixture.key.clone(), operations, returned: Returned::All };
    let executing = Arc::clone(&fixture);
    let waiting = tokio::spawn(async move { executing.partition.try_execute(transaction).await });
    pass_turns().await;
    fixture.partition.close().await.unwrap();
    assert!(matches!(waiting.await.unwrap(), Err(partition::Unexecuted::Stopped(_))));
    drop(lock);
}
