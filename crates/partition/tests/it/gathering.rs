//! How a writer gathers the transactions of several clients into batches.

use super::*;
use std::sync::atomic::AtomicUsize;

/// Transactions of each client.
const ROUNDS: usize = 50;

/// A partition on a store that counts its commit groups. All tasks share one thread, so the count does not depend on
/// timing.
async fn counted() -> (Arc<Fixture>, Arc<AtomicUsize>) {
    let store = Store::memory(&SPACES, CommitMode::Stepped);
    let groups = Arc::new(AtomicUsize::new(0));
    let (stepping, counter) = (store.clone(), Arc::clone(&groups));
    tokio::spawn(async move {
        loop {
            stepping.step_is_due().await;
            counter.fetch_add(1, Ordering::Relaxed);
            stepping.step();
        }
    });
    (Arc::new(Fixture::on(store).await), groups)
}

/// Commit groups for clients that each write `ROUNDS` documents one after another. Client `n` waits for `n` other tasks
/// between an answer and its next transaction, as a client behind a connection does.
async fn groups_of(clients: usize) -> usize {
    let (fixture, groups) = counted().await;
    let before = groups.load(Ordering::Relaxed);
    let clients: Vec<_> = (0..clients)
        .map(|client| {
            let fixture = Arc::clone(&fixture);
            tokio::spawn(async move {
                for _ in 0..ROUNDS {
                    fixture.run(vec![upsert(&client.to_string())]).await;
                    for _ in 0..client {
                        tokio::spawn(async {}).await.unwrap();
                    }
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    groups.load(Ordering::Relaxed) - before
}

#[tokio::test(start_paused = true)]
async fn clients_that_were_answered_together_stay_together() {
    let groups = groups_of(2).await;
    // Without the yield the second client misses every batch, and each of them gets batches of its own.
    assert!(groups < ROUNDS * 3 / 2, "{groups} commit groups for {} transactions", 2 * ROUNDS);
}

#[tokio::test(start_paused = true)]
async fn a_single_client_gets_a_batch_for_every_transaction() {
    assert_eq!(groups_of(1).await, ROUNDS);
}
