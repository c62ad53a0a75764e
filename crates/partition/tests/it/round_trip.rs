//! A partition on a store where every call takes a round trip and answers may be lost.

use super::{Fixture, delete, upsert};
use kv::{Link, Store};
use model::{Fault, StorageFault};
use partition::keyspace::SPACES;
use plan::{Condition, Target};

/// Whether a document exists in the view that readers have.
async fn is_there(fixture: &Fixture, id: &str) -> bool {
    let target = Target::Id(id.to_owned());
    fixture.partition.read(&fixture.key, &target, &Condition::None).await.is_ok()
}

/// The writer learns from its head whether the batch was committed, and continues either way.
#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_resolved_by_the_head() {
    for is_applied in [true, false] {
        let link = Link::seeded(3);
        let fixture = Fixture::on(Store::round_trip(&SPACES, link.clone())).await;
        let first = fixture.run(vec![upsert("before")]).await;
        if is_applied {
            link.lose_next_answer();
        } else {
            link.lose_next_request();
        }
        let fault =
            fixture.try_run(&fixture.key, vec![upsert("doubtful"), delete("before")]).await.unwrap_err();
        assert!(matches!(fault.fault, Fault::Storage(StorageFault::Uncertain { .. })), "{fault:?}");
        let after = fixture.run(vec![upsert("after")]).await;
        assert!(after > first);
        assert_eq!(is_there(&fixture, "doubtful").await, is_applied);
        assert_eq!(is_there(&fixture, "before").await, !is_applied);
        assert!(is_there(&fixture, "after").await);
        assert_eq!(fixture.partition.counts().documents, 2);
        let findings = fixture.partition.audit_index().await.unwrap();
        assert!(findings.is_empty(), "{:?}", findings.first());
    }
}

/// While a batch may still arrive, nothing is evaluated on top of it.
#[tokio::test(start_paused = true)]
async fn a_late_batch_is_waited_for() {
    let link = Link::seeded(3);
    let fixture = Fixture::on(Store::round_trip(&SPACES, link.clone())).await;
    link.delay_next_request();
    fixture.try_run(&fixture.key, vec![upsert("late")]).await.unwrap_err();
    let fault = fixture.try_run(&fixture.key, vec![delete("late")]).await.unwrap_err();
    assert!(matches!(fault.fault, Fault::Storage(StorageFault::Unavailable { .. })), "{fault:?}");
    link.deliver();
    fixture.run(vec![delete("late")]).await;
    assert!(!is_there(&fixture, "late").await);
    assert_eq!(fixture.partition.counts().documents, 0);
}
