//! The index of a partition after the death of the process.

use crate::index::{IndexFixture, SMALL, nothing_unnamed, open_with, policy, with_order};
use model::policy::IndexingPolicy;
use partition::index::{Coverage, IndexMemory, IndexOptions, IndexPath, IndexStep};
use plan::{Condition, DocumentOperation, Item, Mutation, Returned, Transaction};
use value::Document;

/// Before the first flush nothing of an index is stored. After a crash it serves at once all the same, so that queries
/// cost what they did before.
#[tokio::test]
async fn an_index_that_was_never_flushed_serves_after_a_restart() {
    let mut fixture = IndexFixture::in_memory().await;
    let options = IndexOptions { flush_documents: 300, ..SMALL };
    fixture.partition =
        open_with(&fixture.store, &fixture.shape, &fixture.clock, IndexMemory::new(options)).await.unwrap();
    for id in 0..250 {
        fixture.put(id, id % 7).await.unwrap();
    }
    assert!(fixture.index_rows().await.is_empty());
    fixture.partition =
        open_with(&fixture.store, &fixture.shape, &fixture.clock, IndexMemory::new(options)).await.unwrap();
    assert_eq!(fixture.partition.index_progress(), 100);
    assert_eq!(fixture.count("odd", 1).await.unwrap(), 125);
    fixture.audit().await;
}

/// An opening used to drop the stored index of an older policy, and queries had none until the new one was built.
/// An opening indexes what fits the memory of all indexes; the rest is built while the partition serves.
#[tokio::test]
async fn an_opening_indexes_no_more_than_fits_in_memory() {
    let mut fixture = IndexFixture::in_memory().await;
    let options = IndexOptions { flush_documents: 3000, ..SMALL };
    let open = async |fixture: &IndexFixture, memory_bytes_max: usize| {
        let memory = IndexMemory::new(IndexOptions { memory_bytes_max, ..options });
        open_with(&fixture.store, &fixture.shape, &fixture.clock, memory).await.unwrap()
    };
    fixture.partition = open(&fixture, 1 << 28).await;
    for id in 0..2500 {
        fixture.put(id, id % 7).await.unwrap();
    }
    fixture.partition = open(&fixture, 1 << 16).await;
    assert!(fixture.partition.index_progress() < 100);
    fixture.wait_until_stable().await;
    fixture.audit().await;
}

#[tokio::test]
async fn the_index_of_an_older_policy_serves_after_a_restart_until_the_new_one_is_ready() {
    let mut fixture = IndexFixture::in_memory().await;
    for id in 0..300 {
        fixture.put(id, id % 7).await.unwrap();
    }
    fixture.wait_until_stable().await;
    let version = IndexPath::property([IndexStep::Name("v")]);
    let policies = [
        policy(&["/odd/?"], &["/*"]),
        with_order(policy(&["/v/?", "/tags/*"], &["/*"])),
        IndexingPolicy::default(),
    ];
    for (round, policy) in policies.iter().enumerate() {
        let before = fixture.partition.view().await.unwrap().index().unwrap().covers(&version);
        fixture.replace_policy(policy);
        fixture.partition.reshape();
        let mut openings = 0;
        for turns in 0..12 {
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
            fixture.restart().await;
            if fixture.partition.index_progress() == 100 {
                break;
            }
            openings += 1;
            let view = fixture.partition.view().await.unwrap();
            let index = view.index().expect("an index of the older policy");
            assert_eq!(index.covers(&version), before, "in round {round}");
            fixture.audit().await;
            // It is updated by later writes and saved with its older policy.
            for id in 0..30 {
                fixture.put((turns * 31 + id * 7) % 300, id % 7).await.unwrap();
            }
            fixture.delete(turns).await.ok();
            fixture.audit().await;
        }
        assert!(openings > 0, "no opening came before the new index");
        fixture.wait_until_stable().await;
        fixture.audit().await;
        assert_eq!(fixture.partition.index_progress(), 100);
        let expected = if round == 0 { Coverage::None } else { Coverage::Whole };
        assert_eq!(fixture.partition.view().await.unwrap().index().unwrap().covers(&version), expected);
        nothing_unnamed(&fixture).await;
    }
    let counts = [fixture.count("odd", 0).await.unwrap(), fixture.count("odd", 1).await.unwrap()];
    assert_eq!(counts[0] + counts[1], fixture.partition.counts().documents);
}

/// The index follows the log in steps; a transaction may have more entries than one step.
#[tokio::test]
async fn a_large_transaction_is_found_again_after_a_restart() {
    const COUNT: usize = 3_000;
    let mut fixture = IndexFixture::in_memory().await;
    // The manifest is older than the transaction, which is replayed from the log.
    for id in 0..2 * SMALL.flush_documents {
        fixture.put(id, 0).await.unwrap();
    }
    let upsert = |id: usize| {
        let text = format!(r#"{{"id":"{id}","pk":"a","v":1}}"#);
        let item = Item::new(Document::from_json(text.as_bytes()).unwrap()).unwrap();
        DocumentOperation::Write(Mutation::Upsert { item, condition: Condition::None })
    };
    let operations = (0..COUNT).map(upsert).collect();
    let transaction = Transaction { key: fixture.key.clone(), operations, returned: Returned::Reads };
    fixture.partition.execute(transaction).await.unwrap();
    fixture.restart().await;
    assert_eq!(fixture.partition.counts().documents, COUNT as u64);
    assert_eq!(fixture.partition.audit_index().await.unwrap(), []);
}
