//! Long queries: they delay no other requests, stop when nobody waits for them, and return the same results as
//! elsewhere.

use crate::harness::{Harness, KEY, TestAmbient, key};
use crate::query::{ask, drain, request};
use engine::{AdmissionBounds, Container, EngineOptions, QueryPage, Scope};
use kv::{CommitMode, Store};
use model::{Fault, LimitFault};
use partition::keyspace::SPACES;
use serde_json::json;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// A billion rows from one document.
const ENDLESS: &str =
    "SELECT VALUE COUNT(1) FROM c JOIN a IN c.x JOIN b IN c.x JOIN d IN c.x WHERE c.id = 'large'";

/// A query that ends on the thread where it started.
const FEW: &str = "SELECT VALUE c.n FROM c WHERE c.id = '7'";

/// Timeout of a test.
const PATIENCE: Duration = Duration::from_secs(60);

/// A large document, one of medium size and three hundred small ones, over three partitions.
async fn filled(harness: &Harness) -> Arc<Container> {
    let container = harness.container(|_| {}, 18_000).await;
    let numbers: Vec<u32> = (0..1000).collect();
    let large = json!({ "id": "large", "pk": "a", "x": numbers });
    harness.create(&container, &large.to_string()).await.unwrap();
    let middle = json!({ "id": "middle", "pk": "a", "x": numbers[..100] });
    harness.create(&container, &middle.to_string()).await.unwrap();
    for number in 0..300 {
        let key = if number < 200 { "a" } else { "b" };
        let small = json!({ "id": number.to_string(), "pk": key, "n": number % 7 });
        harness.create(&container, &small.to_string()).await.unwrap();
    }
    container
}

/// An engine with separate threads for queries.
struct Setting {
    threads: Runtime,
    harness: Harness,
    container: Arc<Container>,
}

impl Setting {
    async fn new(admission: AdmissionBounds) -> Setting {
        let threads = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let query_threads = Some(threads.handle().clone());
        let options = EngineOptions { query_threads, admission, ..EngineOptions::default() };
        let store = Store::memory(&SPACES, CommitMode::Thread);
        let harness = Harness::with_options(store, TestAmbient::new(), &[KEY], options).await;
        let container = filled(&harness).await;
        Setting { threads, harness, container }
    }

    /// A query that does not end within the duration of a test.
    async fn endless(&self) -> Result<QueryPage, Fault> {
        ask(&self.harness, &self.container, &request(ENDLESS, self.scope(), 100, None)).await
    }

    fn scope(&self) -> Scope {
        Scope::Key(key(&self.container, r#"["a"]"#))
    }

    async fn read(&self) {
        self.harness.read(&self.container, r#"["a"]"#, "7").await.unwrap();
    }

    fn work_under_way(&self) -> usize {
        self.threads.handle().metrics().num_alive_tasks()
    }

    /// Polls a query until it runs on a separate thread.
    async fn begin(&self, mut query: Pin<&mut impl Future>) {
        let begun = async {
            while self.work_under_way() == 0 {
                // Without separate threads this poll would execute the whole query.
                assert!(!poll_once(query.as_mut()).await);
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, begun).await.unwrap();
    }

    /// Waits until no work is running.
    async fn rest(&self) {
        let resting = async {
            while self.work_under_way() > 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, resting).await.unwrap();
    }

    fn end(self) {
        self.threads.shutdown_background();
    }
}

/// Polls once, and returns whether it is done.
async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> bool {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await
}

#[tokio::test]
async fn others_go_on_while_one_document_takes_forever() {
    let setting = Setting::new(AdmissionBounds::of_threads(2)).await;
    {
        let mut endless = pin!(setting.endless());
        setting.begin(endless.as_mut()).await;
        for _ in 0..100 {
            setting.read().await;
        }
        assert!(!poll_once(endless.as_mut()).await);
    }
    // Dropped: nobody waits any more, and the work ends.
    setting.rest().await;
    setting.end();
}

#[tokio::test]
async fn queries_stop_with_the_server() {
    let setting = Setting::new(AdmissionBounds::of_threads(2)).await;
    {
        // One of them runs, the other one waits for its turn.
        let (mut one, mut other) = (pin!(setting.endless()), pin!(setting.endless()));
        setting.begin(one.as_mut()).await;
        assert!(!poll_once(other.as_mut()).await);
        setting.harness.engine.stop_queries();
        for stopped in [one.await, other.await] {
            assert!(matches!(stopped, Err(Fault::Limit(LimitFault::Stopping { .. }))), "{stopped:?}");
        }
        let late = setting.endless().await;
        assert!(matches!(late, Err(Fault::Limit(LimitFault::Stopping { .. }))), "{late:?}");
    }
    setting.read().await;
    setting.end();
}

#[tokio::test]
async fn a_caller_with_too_much_under_way_is_sent_away() {
    let bounds = AdmissionBounds { waiting_per_caller_max: 1, ..AdmissionBounds::of_threads(2) };
    let setting = Setting::new(bounds).await;
    {
        let (mut one, mut other) = (pin!(setting.endless()), pin!(setting.endless()));
        setting.begin(one.as_mut()).await;
        assert!(!poll_once(other.as_mut()).await);
        let third = setting.endless().await;
        assert!(matches!(third, Err(Fault::Limit(LimitFault::Busy { .. }))), "{third:?}");
        // Small queries need no admission.
        let few = drain(&setting.harness, &setting.container, FEW, setting.scope(), 10);
        assert_eq!(few.await, ["0"]);
    }
    setting.rest().await;
    setting.end();
}

#[tokio::test]
async fn moved_queries_give_the_same() {
    let setting = Setting::new(AdmissionBounds::of_threads(2)).await;
    let plain = Harness::new().await;
    let container = filled(&plain).await;
    for sql in [
        // Preempted inside of its document, and restarted.
        "SELECT VALUE COUNT(1) FROM c JOIN a IN c.x JOIN b IN c.x WHERE c.id = 'middle' AND a < 50",
        // Moved between two documents.
        "SELECT c.id, ARRAY(SELECT VALUE a FROM a IN (SELECT VALUE [1,2,3,4,5,6,7,8,9,10]) WHERE a > c.n) AS x FROM c WHERE c.n >= 0",
        "SELECT c.n, COUNT(1) AS k FROM c JOIN a IN (SELECT VALUE [1,2,3,4,5,6,7,8,9,10]) GROUP BY c.n",
        "SELECT VALUE c.id FROM c WHERE c.id LIKE '%1%' ORDER BY c.n DESC",
        "SELECT DISTINCT VALUE c.n FROM c ORDER BY c.n",
        "SELECT TOP 7 VALUE d.id FROM (SELECT c.id FROM c WHERE c.n = 3) AS d",
    ] {
        for items_max in [3, 1000] {
            for scope in [setting.scope(), Scope::Container] {
                let moved = drain(&setting.harness, &setting.container, sql, scope.clone(), items_max).await;
                assert_eq!(moved, drain(&plain, &container, sql, scope, items_max).await, "{sql}");
                assert!(!moved.is_empty(), "{sql}");
            }
        }
    }
    setting.end();
}
