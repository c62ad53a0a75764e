//! Limits of a transaction; a refused transaction does not affect others in its batch.

use crate::{Fixture, padded, upsert};
use model::{Fault, KeyComponent, LimitFault, PartitionKey};
use partition::{TRANSACTION_BYTES_MAX, TRANSACTION_DOCUMENTS_MAX};
use plan::{LogicalKey, Mutation, StepFault};

/// Documents of a transaction that is just too large, and bytes of text in each.
const LARGE_DOCUMENTS: usize = 17;
const LARGE_PAD: usize = 2_000_000;

/// Runs a transaction between two others; all three wait when the writer gathers a batch.
async fn between_others(
    fixture: &Fixture,
    key: &LogicalKey,
    mutations: Vec<Mutation>,
) -> Result<(), StepFault> {
    let lsn = fixture.partition.lsn();
    let (before, result, after) = tokio::join!(
        fixture.try_run(&fixture.key, vec![upsert("before")]),
        fixture.try_run(key, mutations),
        fixture.try_run(&fixture.key, vec![upsert("after")]),
    );
    before.unwrap();
    after.unwrap();
    let taken = if result.is_ok() { 3 } else { 2 };
    assert_eq!(fixture.partition.lsn().0, lsn.0 + taken, "a refusal takes no LSN");
    result.map(drop)
}

fn large(last_pad: usize) -> Vec<Mutation> {
    let pad = |index| if index + 1 == LARGE_DOCUMENTS { last_pad } else { LARGE_PAD };
    (0..LARGE_DOCUMENTS).map(|index| padded(&index.to_string(), pad(index))).collect()
}

#[tokio::test]
async fn a_transaction_with_too_many_bytes_is_refused_alone() {
    let fixture = Fixture::new().await;
    let refused = between_others(&fixture, &fixture.key, large(LARGE_PAD)).await.unwrap_err();
    let Fault::Limit(LimitFault::TransactionBytes { bytes, limit: TRANSACTION_BYTES_MAX }) = refused.fault
    else {
        panic!("{refused:?}");
    };
    assert_eq!(refused.index, LARGE_DOCUMENTS - 1);
    let excess = bytes - TRANSACTION_BYTES_MAX;
    let refused = between_others(&fixture, &fixture.key, large(LARGE_PAD - excess + 1)).await;
    let bytes = TRANSACTION_BYTES_MAX + 1;
    let fault = LimitFault::TransactionBytes { bytes, limit: TRANSACTION_BYTES_MAX };
    assert_eq!(refused.unwrap_err().fault, fault.into());
    assert_eq!(fixture.partition.counts().documents, 2);
    between_others(&fixture, &fixture.key, large(LARGE_PAD - excess)).await.unwrap();
    assert_eq!(fixture.partition.counts().documents, 2 + LARGE_DOCUMENTS as u64);
}

#[tokio::test]
async fn a_transaction_with_too_many_documents_is_refused_alone() {
    let fixture = Fixture::new().await;
    let documents = |count: usize| (0..count).map(|id| upsert(&id.to_string())).collect::<Vec<_>>();
    let refused = between_others(&fixture, &fixture.key, documents(TRANSACTION_DOCUMENTS_MAX + 1)).await;
    let fault = LimitFault::TransactionDocuments {
        documents: TRANSACTION_DOCUMENTS_MAX + 1,
        limit: TRANSACTION_DOCUMENTS_MAX,
    };
    assert_eq!(refused.unwrap_err().fault, fault.into());
    assert_eq!(fixture.partition.counts().documents, 2);
    between_others(&fixture, &fixture.key, documents(TRANSACTION_DOCUMENTS_MAX)).await.unwrap();
    assert_eq!(fixture.partition.counts().documents, 2 + TRANSACTION_DOCUMENTS_MAX as u64);
    // The batch had more documents than one index segment can have; none is missing.
    assert_eq!(fixture.partition.audit_index().await.unwrap(), []);
}

/// The store would refuse the whole batch.
#[tokio::test]
async fn a_transaction_with_a_key_that_is_too_long_is_refused_alone() {
    let fixture = Fixture::new().await;
    let partition_key = PartitionKey { components: vec![KeyComponent::String("x".repeat(70_000))] };
    let key = LogicalKey { partition_key, effective: fixture.key.effective.clone() };
    let refused = between_others(&fixture, &key, vec![upsert("1")]).await.unwrap_err();
    let Fault::Limit(LimitFault::KeyBytes { bytes, limit }) = refused.fault else { panic!("{refused:?}") };
    assert!(bytes > 70_000 && limit < kv::KEY_BYTES_MAX);
    assert_eq!(fixture.partition.counts().documents, 2);
    fixture.run(vec![upsert("1")]).await;
}
