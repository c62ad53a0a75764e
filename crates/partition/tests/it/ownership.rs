//! Two writers of one partition, and a writer whose container was dropped: only the owner can write.

use crate::{Fixture, TestClock, delete, upsert};
use kv::{Batch, CommitMode, Direction, Durability, KeyRange, ScanLimit, Store};
use model::{Fault, StorageFault};
use partition::delete_owner_row;
use partition::keyspace::{CONTAINER_SPACES, SPACES, container_rows};
use plan::{Condition, StepFault, Target};
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Metadata, Subscriber};

/// Writes that each of two writers tries.
const WRITES: usize = 40;

async fn new_fixture(durability: Durability) -> (Store, Arc<TestClock>, Fixture) {
    let store = Store::memory(&SPACES, CommitMode::Thread);
    let clock = Arc::new(TestClock::default());
    Fixture::create(&store).await;
    let fixture = Fixture::open(&store, &clock, durability).await.unwrap();
    (store, clock, fixture)
}

async fn write(fixture: &Fixture, id: &str) -> Result<(), StepFault> {
    fixture.try_run(&fixture.key, vec![upsert(id)]).await.map(drop)
}

async fn is_there(fixture: &Fixture, id: &str) -> Result<bool, Fault> {
    match fixture.partition.read(&fixture.key, &Target::Id(id.to_owned()), &Condition::None).await {
        Ok(_) => Ok(true),
        Err(Fault::Missing(_)) => Ok(false),
        Err(fault) => Err(fault),
    }
}

/// Whether the fault allows a retry.
fn is_retryable(fault: &Fault) -> bool {
    matches!(fault, Fault::Storage(StorageFault::Unavailable { .. }))
}

/// The names of all logged events.
#[derive(Clone, Default)]
struct LoggedEvents(Arc<Mutex<Vec<String>>>);

impl LoggedEvents {
    /// Listens to the events of this thread.
    fn listen() -> (LoggedEvents, DefaultGuard) {
        // With one listener only, `tracing` asks the thread that first reaches an event whether anybody listens to it,
        // and keeps that answer: a thread of another test must not say no.
        let _ = tracing::subscriber::set_global_default(LoggedEvents::default());
        let logged = LoggedEvents::default();
        let guard = tracing::subscriber::set_default(logged.clone());
        (logged, guard)
    }

    fn has(&self, name: &str) -> bool {
        self.0.lock().unwrap().iter().any(|logged| logged == name)
    }
}

impl Visit for LoggedEvents {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "event" {
            self.0.lock().unwrap().push(value.to_owned());
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

impl Subscriber for LoggedEvents {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn a_second_writer_is_refused_and_nothing_is_lost() {
    let (logged, _guard) = LoggedEvents::listen();
    for durability in [Durability::Sync, Durability::Buffered] {
        let (store, clock, first) = new_fixture(durability).await;
        write(&first, "1").await.unwrap();
        let second = Fixture::open(&store, &clock, durability).await.unwrap();
        write(&second, "2").await.unwrap();
        let refused = write(&first, "3").await.unwrap_err();
        assert!(is_retryable(&refused.fault), "{refused:?}");
        // It serves nothing any more, not even from its cache.
        assert!(first.partition.has_ended());
        assert!(is_retryable(&is_there(&first, "1").await.unwrap_err()));
        assert!(is_retryable(&write(&first, "4").await.unwrap_err().fault));
        write(&second, "5").await.unwrap();
        for (id, expected) in [("1", true), ("2", true), ("3", false), ("4", false), ("5", true)] {
            assert_eq!(is_there(&second, id).await.unwrap(), expected, "{id}");
        }
        second.audited(&store).await;
        assert_eq!(second.partition.audit_index().await.unwrap(), []);
        // Batches without documents are refused too.
        let third = Fixture::open(&store, &clock, durability).await.unwrap();
        write(&third, "6").await.unwrap();
        assert!(is_retryable(
            &second.partition.set_consumer("reader", third.partition.lsn()).await.unwrap_err()
        ));
        assert!(is_retryable(&second.partition.trim_log().await.unwrap_err()));
        third.partition.close().await.unwrap();
    }
    assert!(logged.has("ownership_lost") && !logged.has("partition_dropped"));
}

#[tokio::test]
async fn of_two_writers_at_once_each_acknowledged_write_stays() {
    let (store, clock, first) = new_fixture(Durability::Sync).await;
    let second = Fixture::open(&store, &clock, Durability::Sync).await.unwrap();
    let many = async |fixture: &Fixture, name: &str| {
        let mut done = Vec::new();
        for count in 0..WRITES {
            let id = format!("{name}{count}");
            let written = write(fixture, &id).await;
            assert!(written.as_ref().err().is_none_or(|refused| is_retryable(&refused.fault)), "{written:?}");
            done.push((id, written.is_ok()));
        }
        done
    };
    let (of_first, of_second) = tokio::join!(many(&first, "a"), many(&second, "b"));
    assert!(!(first.partition.has_ended() && second.partition.has_ended()), "nobody is left");
    let third = Fixture::open(&store, &clock, Durability::Sync).await.unwrap();
    for (id, is_done) in of_first.into_iter().chain(of_second) {
        assert_eq!(is_there(&third, &id).await.unwrap(), is_done, "{id}");
    }
    write(&third, "again").await.unwrap();
    third.audited(&store).await;
}

/// Rows that a writer wrote after its container had been deleted used to stay forever.
#[tokio::test]
async fn a_writer_whose_container_was_dropped_leaves_no_row() {
    let (logged, _guard) = LoggedEvents::listen();
    let (store, clock, fixture) = new_fixture(Durability::Sync).await;
    let id = fixture.partition.spec().id;
    for count in 0..WRITES {
        write(&fixture, &count.to_string()).await.unwrap();
    }
    let everything = ScanLimit { rows: usize::MAX, bytes: usize::MAX };
    let mut batch = Batch::default();
    delete_owner_row(id, &mut batch);
    let view = store.view().await.unwrap();
    for space in CONTAINER_SPACES {
        let range: KeyRange = container_rows(id.container);
        let chunk = view.scan(space, range, Direction::Forward, everything).await.unwrap();
        chunk.rows.into_iter().for_each(|(key, _)| batch.delete(space, key));
    }
    drop(view);
    store.submit(&store.lane(), batch, Durability::Sync).await.unwrap();
    let refused = fixture.try_run(&fixture.key, vec![delete("1"), upsert("late")]).await.unwrap_err();
    assert!(is_retryable(&refused.fault), "{refused:?}");
    fixture.partition.close().await.unwrap_err();
    let opened = Fixture::open(&store, &clock, Durability::Sync).await;
    assert!(is_retryable(&opened.err().unwrap()));
    let view = store.view().await.unwrap();
    assert_eq!(partition::stray_containers(&view).await.unwrap(), []);
    // Nothing went wrong.
    assert!(logged.has("partition_dropped"));
    assert!(!logged.has("ownership_lost") && !logged.has("partition_waits"));
}
