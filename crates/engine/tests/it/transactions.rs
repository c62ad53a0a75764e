//! Interactive transactions: own writes, conflicts, locks, splits, rights and charges.

use crate::harness::{Harness, HeldStore, KEY, TestAmbient, item, key, lowered, pass_turns, stored};
use engine::{
    AccountKey, ChangeMode, ChangeRequest, ChangeStart, Changes, Container, Engine, EngineOptions,
    FeedRequest, KeyName, Keyed, LockWhen, QueryRequest, QueryRow, Scope, SplitAt, Transaction,
    TransactionOptions, TransactionPass,
};
use kv::{CommitMode, Store};
use model::{AccessFault, Charge, ConflictFault, DefaultTtl, Fault, LimitFault, MissingFault, RequestFault};
use partition::LOCK_TIME_MAX;
use partition::keyspace::SPACES;
use plan::{Condition, DocumentOperation, Mutation, Outcome, StoredDocument, Target};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

fn options() -> TransactionOptions {
    TransactionOptions { time_max: Duration::from_secs(5), session: Vec::new(), lock: LockWhen::Conflicts }
}

fn pass<'a>(harness: &'a Harness, container: &'a Container) -> TransactionPass<'a> {
    harness.engine.access().transact(&harness.principal, container, key(container, r#"["a"]"#))
}

fn create(json: &str) -> DocumentOperation {
    DocumentOperation::Write(Mutation::Create { item: item(json) })
}

fn upsert(json: &str) -> DocumentOperation {
    DocumentOperation::Write(Mutation::Upsert { item: item(json), condition: Condition::None })
}

fn read(id: &str) -> DocumentOperation {
    DocumentOperation::Read { target: Target::Id(id.to_owned()), condition: Condition::None }
}

fn delete(id: &str) -> DocumentOperation {
    let target = Target::Id(id.to_owned());
    DocumentOperation::Write(Mutation::Delete { target, condition: Condition::None })
}

fn query(sql: &str, items_max: usize, continuation: Option<String>) -> QueryRequest {
    QueryRequest {
        query: Arc::new(lowered(sql).unwrap()),
        items_max,
        ends_at_ranges: false,
        continuation,
        session: Vec::new(),
        text_bytes: sql.len(),
    }
}

async fn rows(transaction: &mut Transaction, sql: &str, items_max: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let mut continuation = None;
    for _ in 0..100 {
        let page = transaction.query(&query(sql, items_max, continuation)).await.unwrap();
        rows.extend(page.rows.iter().map(|row| match row {
            QueryRow::Value(value) => value.to_json(),
            QueryRow::Document(stored) => stored.document.root().to_value().to_json(),
        }));
        match page.continuation {
            Some(next) => continuation = Some(next.text),
            None => return rows,
        }
    }
    panic!("a query without an end");
}

fn number(stored: &StoredDocument) -> i64 {
    let mut members = stored.document.root().members();
    members.find(|(name, _)| *name == "n").and_then(|(_, value)| value.as_i64()).unwrap()
}

async fn seen(transaction: &mut Transaction, id: &str) -> StoredDocument {
    stored(transaction.execute(read(id)).await.unwrap().outcome)
}

/// Adds one to the member `n` of a document.
async fn increment(transaction: &mut Transaction) -> Result<(), Fault> {
    let before = number(&stored(transaction.execute(read("counter")).await?.outcome));
    transaction.execute(upsert(&format!(r#"{{"id":"counter","pk":"a","n":{}}}"#, before + 1))).await?;
    Ok(())
}

#[tokio::test]
async fn own_writes_are_read_queried_and_listed() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    harness.create(&container, r#"{"id":"1","pk":"a","n":1}"#).await.unwrap();
    harness.create(&container, r#"{"id":"2","pk":"a","n":2}"#).await.unwrap();
    harness.create(&container, r#"{"id":"9","pk":"b","n":9}"#).await.unwrap();
    let mut transaction = harness.engine.begin(&pass(&harness, &container), &options()).await.unwrap();
    let sql = "SELECT VALUE c.n FROM c WHERE c.n > 0 ORDER BY c.n";
    assert_eq!(rows(&mut transaction, sql, 1).await, ["1", "2"]);
    transaction.execute(create(r#"{"id":"3","pk":"a","n":3}"#)).await.unwrap();
    transaction.execute(upsert(r#"{"id":"1","pk":"a","n":10}"#)).await.unwrap();
    transaction.execute(delete("2")).await.unwrap();
    assert_eq!(rows(&mut transaction, sql, 1).await, ["3", "10"]);
    assert_eq!(rows(&mut transaction, "SELECT VALUE COUNT(1) FROM c", 10).await, ["2"]);
    assert_eq!(number(&seen(&mut transaction, "3").await), 3);
    // A refused operation changes nothing, and the transaction goes on.
    let taken = transaction.execute(create(r#"{"id":"3","pk":"a","n":4}"#)).await.unwrap_err();
    assert_eq!(taken, ConflictFault::Id.into());
    let missing = transaction.execute(read("2")).await.unwrap_err();
    assert_eq!(missing, MissingFault::Resource.into());
    let mut listed = Vec::new();
    let mut request = FeedRequest { items_max: 1, continuation: None, session: Vec::new() };
    for _ in 0..10 {
        let page = transaction.feed(&request).await.unwrap();
        listed.extend(page.documents.iter().map(number));
        request.continuation = page.continuation.map(|next| next.text);
        if request.continuation.is_none() {
            break;
        }
    }
    assert_eq!(listed, [10, 3]);
    // Others see none of it before the commit, and all of it after.
    assert!(harness.read(&container, r#"["a"]"#, "3").await.is_err());
    let receipt = transaction.commit().await.unwrap();
    let found = harness.read(&container, r#"["a"]"#, "3").await.unwrap();
    assert_eq!((Some(found.lsn), number(&found)), (receipt.lsn, 3));
    assert_eq!(receipt.lsn, Some(receipt.session.lsn));
    assert_eq!(harness.audit_index(&container).await, []);
}

#[tokio::test]
async fn a_transaction_that_is_dropped_or_fails_leaves_nothing() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    let before = harness.create(&container, r#"{"id":"1","pk":"a"}"#).await.unwrap();
    let mut transaction = harness.engine.begin(&pass(&harness, &container), &options()).await.unwrap();
    transaction.execute(create(r#"{"id":"2","pk":"a"}"#)).await.unwrap();
    drop(transaction);
    let run = |mut transaction: Transaction| async {
        let mut result = Ok(());
        for id in ["3", "4", "1"] {
            let created = transaction.execute(create(&format!(r#"{{"id":"{id}","pk":"a"}}"#))).await;
            result = result.and(created.map(drop));
        }
        (transaction, result)
    };
    let failed = harness.engine.transact(&pass(&harness, &container), &options(), run).await;
    assert_eq!(failed.unwrap_err(), ConflictFault::Id.into());
    for id in ["2", "3", "4"] {
        assert!(harness.read(&container, r#"["a"]"#, id).await.is_err());
    }
    let after = harness.create(&container, r#"{"id":"5","pk":"a"}"#).await.unwrap();
    assert_eq!(after.lsn, before.lsn.next());
}

/// Reads, queries and lists agree on what has expired, also while the time of the partition stands still.
#[tokio::test]
async fn a_transaction_has_one_time() {
    let harness = Harness::new().await;
    let container = harness.container(|draft| draft.default_ttl = DefaultTtl::OnDemand, 400).await;
    harness.create(&container, r#"{"id":"1","pk":"a","n":1,"ttl":2}"#).await.unwrap();
    harness.create(&container, r#"{"id":"2","pk":"a","n":2,"ttl":9}"#).await.unwrap();
    harness.ambient.advance_seconds(3);
    assert!(harness.read(&container, r#"["a"]"#, "1").await.is_err());
    harness.ambient.set_back_seconds(3);
    let mut transaction = harness.engine.begin(&pass(&harness, &container), &options()).await.unwrap();
    let sql = "SELECT VALUE c.n FROM c";
    let list = FeedRequest { items_max: 10, continuation: None, session: Vec::new() };
    assert!(transaction.execute(read("1")).await.is_err());
    assert_eq!(rows(&mut transaction, sql, 10).await, ["2"]);
    assert_eq!(transaction.feed(&list).await.unwrap().documents.len(), 1);
    harness.ambient.advance_seconds(20);
    seen(&mut transaction, "2").await;
    assert_eq!(rows(&mut transaction, sql, 10).await, ["2"]);
    assert_eq!(transaction.feed(&list).await.unwrap().documents.len(), 1);
}

/// Every change of a transaction is in one page of the change feed, at one LSN.
#[tokio::test]
async fn a_transaction_ends_once_in_the_change_feed() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    let pass = pass(&harness, &container);
    let run = |mut transaction: Transaction| async {
        for id in 0..5 {
            transaction.execute(create(&format!(r#"{{"id":"{id}","pk":"a"}}"#))).await.unwrap();
        }
        (transaction, Ok::<_, Fault>(()))
    };
    let ((), receipt) = harness.engine.transact(&pass, &options(), run).await.unwrap();
    let feed = harness.engine.access().read_changes(&harness.principal, &container, Scope::Container);
    let request = ChangeRequest {
        mode: ChangeMode::LatestVersion,
        start: ChangeStart::Beginning,
        items_max: 1,
        session: Vec::new(),
    };
    let page = harness.engine.changes(feed.unwrap(), &request).await.unwrap();
    let Changes::Latest(documents) = page.changes else { panic!("{:?}", page.changes) };
    let lsns: Vec<_> = documents.iter().map(|stored| Some(stored.lsn)).collect();
    assert_eq!(lsns, [receipt.lsn; 5]);
}

/// Read-modify-write from many tasks: each increment counts. The futures can move between threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_transactions_lose_no_update() {
    let harness = Arc::new(Harness::new().await);
    let container = harness.container(|_| {}, 400).await;
    harness.create(&container, r#"{"id":"counter","pk":"a","n":0}"#).await.unwrap();
    let tasks: Vec<_> = (0..6)
        .map(|_| {
            let (harness, container) = (Arc::clone(&harness), Arc::clone(&container));
            tokio::spawn(async move {
                let mut done = 0;
                for _ in 0..20 {
                    let pass = pass(&harness, &container);
                    let run = |mut transaction| async {
                        let result = increment(&mut transaction).await;
                        (transaction, result)
                    };
                    match harness.engine.transact(&pass, &options(), run).await {
                        Ok(_) => done += 1,
                        Err(Fault::Conflict(
                            ConflictFault::Locked { .. } | ConflictFault::ConcurrentChange,
                        )) => {}
                        Err(fault) => panic!("{fault}"),
                    }
                }
                done
            })
        })
        .collect();
    let mut done = 0;
    for task in tasks {
        done += task.await.unwrap();
    }
    let counter = harness.read(&container, r#"["a"]"#, "counter").await.unwrap();
    assert_eq!(number(&counter), done);
    assert!(done > 0);
}

/// Others change the logical partition in each of the first runs. Under the lock they wait.
#[tokio::test(start_paused = true)]
async fn a_transaction_that_is_overtaken_is_run_again_and_then_locks() {
    let held = HeldStore::new();
    let harness = Arc::new(Harness::on(held.store.clone(), TestAmbient::new()).await);
    let container = harness.container(|_| {}, 400).await;
    harness.create(&container, r#"{"id":"counter","pk":"a","n":0}"#).await.unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let pass = pass(&harness, &container);
    let run = |mut transaction| async {
        let run = counted.fetch_add(1, Ordering::SeqCst);
        increment(&mut transaction).await.unwrap();
        let (harness, container) = (Arc::clone(&harness), Arc::clone(&container));
        let other = tokio::spawn(async move {
            harness.create(&container, &format!(r#"{{"id":"{run}","pk":"a"}}"#)).await
        });
        pass_turns().await;
        assert_eq!(other.is_finished(), run < 3, "others wait under a lock only");
        (transaction, Ok::<_, Fault>(other))
    };
    let (other, _) = harness.engine.transact(&pass, &options(), run).await.unwrap();
    other.await.unwrap().unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 4);
    let counter = harness.read(&container, r#"["a"]"#, "counter").await.unwrap();
    assert_eq!(number(&counter), 1);
}

/// Runs a transaction that upserts a document under a lock, after it has obtained one of `turns`.
async fn upsert_in_turn(
    engine: &Arc<Engine>,
    pass: &TransactionPass<'_>,
    turns: &Semaphore,
    document: &str,
) -> Result<(), Fault> {
    let options = TransactionOptions { lock: LockWhen::Begin, ..options() };
    let turn = async || Ok::<_, Fault>(turns.acquire().await.unwrap());
    let run = |mut transaction: Transaction, _turn| async move {
        let run = transaction.execute(upsert(document)).await.map(drop);
        (transaction, run)
    };
    engine.transact_prepared(pass, &options, turn, run).await.map(drop)
}

#[tokio::test]
async fn what_waits_for_a_lock_delays_no_other_key() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    let (engine, turns) = (&harness.engine, Semaphore::new(1));
    let access = engine.access();
    let other = access.transact(&harness.principal, &container, key(&container, r#"["b"]"#));
    let pass = pass(&harness, &container);
    let locking = TransactionOptions { lock: LockWhen::Begin, ..options() };
    let holder = engine.begin(&pass, &locking).await.unwrap();
    let mut waiting = pin!(upsert_in_turn(engine, &pass, &turns, r#"{"id":"1","pk":"a"}"#));
    let free = upsert_in_turn(engine, &other, &turns, r#"{"id":"1","pk":"b"}"#);
    tokio::select! {
        // It is polled first each time, so it has all that it can get.
        biased;
        ended = &mut waiting => panic!("it has ended before the other one: {ended:?}"),
        ended = free => ended.unwrap(),
    }
    drop(holder);
    waiting.await.unwrap();
}

/// Also among more keys than any fixed number of places would keep apart.
#[tokio::test(start_paused = true)]
async fn scripts_wait_for_those_on_their_own_key_only() {
    let held = HeldStore::new();
    let harness = Harness::on(held.store.clone(), TestAmbient::new()).await;
    let container = harness.container(|_| {}, 400).await;
    let pass_of = |n: usize| {
        let key = key(&container, &format!("[{n}]"));
        harness.engine.access().transact(&harness.principal, &container, key)
    };
    let begun = Instant::now();
    let mut places = Vec::new();
    for n in 0..5_000 {
        places.push(harness.engine.script_place(&pass_of(n)).await);
    }
    assert_eq!(begun.elapsed(), Duration::ZERO);
    // For a slow one nobody waits long.
    drop(harness.engine.script_place(&pass_of(7)).await);
    let waited = begun.elapsed();
    assert!(waited > Duration::ZERO && waited < Duration::from_secs(1), "{waited:?}");
    drop(places);
    drop(harness.engine.script_place(&pass_of(7)).await);
    assert_eq!(begun.elapsed(), waited);
}

/// Nobody waits for the whole time of a lock whose holder has no turn yet.
#[tokio::test(start_paused = true)]
async fn a_lock_is_given_back_while_its_run_is_prepared_for_long() {
    let held = HeldStore::new();
    let harness = Harness::on(held.store.clone(), TestAmbient::new()).await;
    let container = harness.container(|_| {}, 400).await;
    let turns = Semaphore::new(0);
    let pass = pass(&harness, &container);
    let begun = Instant::now();
    let mut prepared = pin!(upsert_in_turn(&harness.engine, &pass, &turns, r#"{"id":"1","pk":"a"}"#));
    tokio::select! {
        // It has asked for the lock before the other one is written.
        biased;
        ended = &mut prepared => panic!("it has ended without a turn: {ended:?}"),
        other = harness.create(&container, r#"{"id":"2","pk":"a"}"#) => drop(other.unwrap()),
    }
    let waited = begun.elapsed();
    assert!(waited >= Duration::from_secs(1) && waited < LOCK_TIME_MAX / 2, "{waited:?}");
    turns.add_permits(1);
    prepared.await.unwrap();
    assert!(harness.read(&container, r#"["a"]"#, "1").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn no_run_begins_when_the_time_of_several_has_passed() {
    let held = HeldStore::new();
    let harness = Harness::on(held.store.clone(), TestAmbient::new()).await;
    let container = harness.container(|_| {}, 400).await;
    for (part, expected) in [(0, 6), (1, 2), (2, 1), (4, 1)] {
        let runs = AtomicUsize::new(0);
        let run = |mut transaction: Transaction| {
            runs.fetch_add(1, Ordering::SeqCst);
            async move {
                tokio::time::sleep(options().time_max * part).await;
                transaction.run_again();
                (transaction, Err::<(), Fault>(Fault::Internal("it is run again".to_owned())))
            }
        };
        let ended = harness.engine.transact(&pass(&harness, &container), &options(), run).await;
        assert_eq!(ended.unwrap_err(), ConflictFault::ConcurrentChange.into());
        assert_eq!(runs.into_inner(), expected, "{part}");
    }
}

/// A holder that takes too long is refused, and does not block its key.
#[tokio::test(start_paused = true)]
async fn a_transaction_ends_with_its_time() {
    let held = HeldStore::new();
    let harness = Harness::on(held.store.clone(), TestAmbient::new()).await;
    let container = harness.container(|_| {}, 400).await;
    let mut transaction = harness.engine.begin(&pass(&harness, &container), &options()).await.unwrap();
    transaction.execute(create(r#"{"id":"1","pk":"a"}"#)).await.unwrap();
    tokio::time::sleep(transaction.time_left()).await;
    let limit = Fault::from(LimitFault::TransactionTime { limit: options().time_max });
    assert_eq!(transaction.execute(read("1")).await.unwrap_err(), limit);
    assert_eq!(transaction.query(&query("SELECT * FROM c", 1, None)).await.unwrap_err(), limit);
    assert_eq!(transaction.commit().await.unwrap_err(), limit);
    assert!(harness.read(&container, r#"["a"]"#, "1").await.is_err());
}

#[tokio::test]
async fn documents_of_other_partition_keys_are_refused() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    let other = harness.create(&container, r#"{"id":"1","pk":"b"}"#).await.unwrap();
    let mut transaction = harness.engine.begin(&pass(&harness, &container), &options()).await.unwrap();
    let (own, given) = (key(&container, r#"["a"]"#), key(&container, r#"["b"]"#));
    let refused = Fault::from(RequestFault::OutsideTransaction { own, given: given.clone() });
    let created = transaction.execute(create(r#"{"id":"2","pk":"b"}"#)).await;
    assert_eq!(created.unwrap_err(), refused);
    assert_eq!(Fault::from(transaction.check_key(&given).unwrap_err()), refused);
    // By its number it does not exist in this logical partition.
    let target = Target::Number(other.number);
    let read = DocumentOperation::Read { target: target.clone(), condition: Condition::None };
    assert_eq!(transaction.execute(read).await.unwrap_err(), MissingFault::Resource.into());
    let delete = DocumentOperation::Write(Mutation::Delete { target, condition: Condition::None });
    assert_eq!(transaction.execute(delete).await.unwrap_err(), MissingFault::Resource.into());
    assert_eq!(rows(&mut transaction, "SELECT * FROM c", 10).await, Vec::<String>::new());
    let housekeeping = Mutation::Reschedule { number: other.number };
    let housekeeping = transaction.execute(DocumentOperation::Write(housekeeping)).await;
    assert!(matches!(housekeeping, Err(Fault::Internal(_))));
}

/// A transaction that began before a split is run again on the child.
#[tokio::test]
async fn a_split_is_a_conflict() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    for number in 0..40 {
        let json = format!(r#"{{"id":"1","pk":"key {number}"}}"#);
        harness.create(&container, &json).await.unwrap();
    }
    harness.create(&container, r#"{"id":"counter","pk":"a","n":0}"#).await.unwrap();
    let runs = AtomicUsize::new(0);
    let run = |mut transaction| async {
        increment(&mut transaction).await.unwrap();
        if runs.fetch_add(1, Ordering::SeqCst) == 0 {
            let (pass, ordinal) = (harness.admin(&*container), model::PartitionOrdinal(0));
            harness.engine.split_partition(&pass, ordinal, SplitAt::Middle).await.unwrap();
            // The parent's state can still be read.
            seen(&mut transaction, "counter").await;
            assert_eq!(rows(&mut transaction, "SELECT VALUE c.n FROM c", 10).await, ["1"]);
        }
        (transaction, Ok::<_, Fault>(()))
    };
    let pass = pass(&harness, &container);
    let ((), receipt) = harness.engine.transact(&pass, &options(), run).await.unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    assert_ne!(receipt.session.ordinal, model::PartitionOrdinal(0));
    let counter = harness.read(&container, r#"["a"]"#, "counter").await.unwrap();
    assert_eq!(number(&counter), 1);
    assert_eq!(harness.audit_index(&container).await, []);
}

/// With the rights of its caller each operation is authorised; those of a procedure or a trigger are not.
#[tokio::test]
async fn the_rights_of_a_transaction_are_those_of_its_pass() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    harness.create(&container, r#"{"id":"1","pk":"a"}"#).await.unwrap();
    let access = harness.engine.access();
    access.replace_keys(vec![AccountKey::new(KEY), AccountKey::named(KeyName::PrimaryReadOnly, b"reader")]);
    let reader = access.verify_key(b"reader", 1).unwrap();
    let key = key(&container, r#"["a"]"#);
    let pass = harness.engine.access().transact(&reader, &container, key.clone());
    let mut transaction = harness.engine.begin(&pass, &options()).await.unwrap();
    seen(&mut transaction, "1").await;
    assert_eq!(rows(&mut transaction, "SELECT VALUE c.id FROM c", 10).await, [r#""1""#]);
    let refused = transaction.execute(delete("1")).await.unwrap_err();
    assert!(matches!(refused, Fault::Access(AccessFault::NotPermitted { .. })), "{refused:?}");
    assert_eq!(transaction.commit().await.unwrap().lsn, None);

    // A write that is permitted brings its triggers.
    let operation = create(r#"{"id":"2","pk":"a"}"#);
    let keyed = Keyed::new(&container, None, operation).unwrap();
    let (pass, operation) = harness.write_pass(keyed).transaction();
    let mut transaction = harness.engine.begin(&pass, &options()).await.unwrap();
    transaction.execute(operation).await.unwrap();
    transaction.execute(delete("1")).await.unwrap();
    transaction.commit().await.unwrap();
    assert!(harness.read(&container, r#"["a"]"#, "1").await.is_err());
}

/// Operations and queries are charged like those outside of transactions, once, at the end.
#[tokio::test]
async fn the_charge_is_that_of_the_operations() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    let charged = || {
        let loads = harness.engine.partition_loads(&harness.admin(&*container));
        loads.iter().map(|load| load.charged).sum::<Charge>()
    };
    let mut transaction = harness.engine.begin(&pass(&harness, &container), &options()).await.unwrap();
    let created = transaction.execute(create(r#"{"id":"1","pk":"a"}"#)).await.unwrap();
    assert!(matches!(created.outcome, Outcome::Created(_)));
    let page = transaction.query(&query("SELECT * FROM c", 10, None)).await.unwrap();
    let sum = created.charge + page.charge;
    assert!(created.charge > Charge::MINIMUM && page.charge > Charge::NONE);
    assert_eq!((transaction.charge(), charged()), (sum, Charge::NONE));
    assert_eq!(transaction.commit().await.unwrap().charge, sum);
    assert_eq!(charged(), sum);
    // A transaction that is rolled back has done its work too.
    let mut transaction = harness.engine.begin(&pass(&harness, &container), &options()).await.unwrap();
    let read = transaction.execute(read("1")).await.unwrap();
    drop(transaction);
    assert_eq!(charged(), sum + read.charge);
    // Unless it starts over.
    let mut transaction = harness.engine.begin(&pass(&harness, &container), &options()).await.unwrap();
    transaction.execute(self::read("1")).await.unwrap();
    transaction.start_over();
    drop(transaction);
    assert_eq!(charged(), sum + read.charge);
}

/// The changes of all transactions are limited by the memory of queries, which they return.
#[tokio::test]
async fn the_memory_of_transactions_is_limited() {
    let store = Store::memory(&SPACES, CommitMode::Thread);
    let options_of_engine = EngineOptions { query_memory_bytes: 4 << 20, ..EngineOptions::default() };
    let harness = Harness::with_options(store, TestAmbient::new(), &[KEY], options_of_engine).await;
    let container = harness.container(|_| {}, 400).await;
    let large = |id: usize| create(&format!(r#"{{"id":"{id}","pk":"a","text":"{}"}}"#, "x".repeat(500_000)));
    for _ in 0..3 {
        let mut transaction = harness.engine.begin(&pass(&harness, &container), &options()).await.unwrap();
        let mut refused = None;
        for id in 0..10 {
            refused = transaction.execute(large(id)).await.err();
            if refused.is_some() {
                assert!(id > 1, "{id}");
                break;
            }
        }
        assert!(matches!(refused, Some(Fault::Limit(LimitFault::Overloaded { .. }))), "{refused:?}");
        // What was accepted can be committed or dropped.
    }
}

/// A dropped container ends its transactions.
#[tokio::test]
async fn a_dropped_container_is_not_written() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    let runs = AtomicUsize::new(0);
    let run = |mut transaction: Transaction| async {
        runs.fetch_add(1, Ordering::SeqCst);
        transaction.execute(create(r#"{"id":"1","pk":"a"}"#)).await.unwrap();
        harness.drop_container(&container).await.unwrap();
        (transaction, Ok::<_, Fault>(()))
    };
    let refused = harness.engine.transact(&pass(&harness, &container), &options(), run).await;
    assert_eq!(refused.unwrap_err(), MissingFault::Owner.into());
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}
