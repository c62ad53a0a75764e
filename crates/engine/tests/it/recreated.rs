//! A container that is dropped and created again under its name.

use crate::harness::{Harness, TestAmbient, key};
use engine::{Container, DocumentAddress, ReadOptions};
use kv::{Batch, CommitMode, Durability, Store};
use model::{Fault, MissingFault, PartitionOrdinal, SessionToken};
use partition::keyspace::{META, PartitionId, SPACES, container_rows, head_key};
use plan::{Condition, Target};
use serde_json::json;

/// Lets the one partition of a container, which nobody has opened yet, have given so many LSNs.
async fn age(harness: &Harness, container: &Container, lsn: u64) {
    let head = head_key(PartitionId { container: container.number(), ordinal: PartitionOrdinal(0) });
    let mut row = harness.store.view().await.unwrap().get(META, &head).await.unwrap().unwrap().to_vec();
    // The LSN and the reserved LSN are the first fields behind the format byte.
    row[1..9].copy_from_slice(&lsn.to_be_bytes());
    row[9..17].copy_from_slice(&lsn.to_be_bytes());
    let mut batch = Batch::default();
    batch.put(META, head, row);
    harness.store.submit(&harness.store.lane(), batch, Durability::Sync).await.unwrap();
}

/// LSNs began at the number of the container times 2³²: a partition that had used up more of them was followed by one
/// that began below it.
#[tokio::test(start_paused = true)]
async fn a_container_that_is_created_again_begins_above_its_predecessor() {
    let store = Store::memory(&SPACES, CommitMode::Inline);
    let mut harness = Harness::on(store.clone(), TestAmbient::new()).await;
    let mut stamps = std::collections::BTreeSet::new();
    for (round, is_gone) in [(1, false), (2, true), (3, false)] {
        let old = harness.container(json!({}), 400).await;
        age(&harness, &old, round << 40).await;
        let written = harness.create(&old, r#"{"id":"1","pk":"a"}"#).await.unwrap();
        assert!(stamps.insert(written.etag.stamp));
        assert!(written.lsn.0 > round << 40);
        harness.engine.delete_container(harness.admin(), &old, &Condition::None).await.unwrap();
        if is_gone {
            let range = container_rows(old.number());
            let limit = kv::ScanLimit { rows: 1, bytes: usize::MAX };
            for _ in 0..60 {
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            }
            let view = harness.store.view().await.unwrap();
            let heads = view.scan(META, range, kv::Direction::Forward, limit).await.unwrap();
            assert!(heads.rows.is_empty(), "the head is still there");
            // What is known of the old LSNs outlives the process, too.
            harness = Harness::on(store.clone(), TestAmbient::new()).await;
        }
        let new = harness.container(json!({}), 400).await;
        let seen = SessionToken { ordinal: PartitionOrdinal(0), lsn: written.lsn };
        let address =
            DocumentAddress { key: Some(key(&new, r#"["a"]"#)), target: Target::Id("1".to_owned()) };
        let options = ReadOptions { session: vec![seen], ..ReadOptions::default() };
        let absent = harness.engine.read(harness.read_pass(&new), address, &options).await.unwrap_err();
        assert_eq!(absent, Fault::Missing(MissingFault::Resource), "not that the session is ahead");
        let again = harness.create(&new, r#"{"id":"1","pk":"a"}"#).await.unwrap();
        assert!(again.lsn > written.lsn && stamps.insert(again.etag.stamp), "{again:?}");
        harness.engine.delete_container(harness.admin(), &new, &Condition::None).await.unwrap();
    }
}
