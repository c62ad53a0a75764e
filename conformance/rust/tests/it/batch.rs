//! Transactional batches: all or nothing.

use azure_core::http::Etag;
use azure_data_cosmos::TransactionalBatch;
use azure_data_cosmos::models::TransactionalBatchResponse;
use azure_data_cosmos::options::{BatchReplaceOptions, Precondition};
use conformance::check::common;
use conformance::fixture::ids;
use conformance::{Fixture, over_both, refused};
use serde_json::{Value, json};

async fn run(f: &Fixture, batch: TransactionalBatch) -> TransactionalBatchResponse {
    let answer = f.container.execute_transactional_batch(batch, None).await.unwrap();
    common(answer.headers());
    answer.into_model().unwrap()
}

fn statuses(answer: &TransactionalBatchResponse) -> Vec<u16> {
    answer.results().iter().map(|result| result.status_code()).collect()
}

#[test]
fn all_steps_are_done() {
    over_both(async |f| {
        f.create(json!({ "id": "old", "pk": "a", "v": 1 })).await;
        let batch = TransactionalBatch::new("a")
            .create_item(json!({ "id": "new", "pk": "a" }))
            .unwrap()
            .upsert_item(json!({ "id": "new", "pk": "a", "v": 2 }), None)
            .unwrap()
            .replace_item("old", json!({ "id": "old", "pk": "a", "v": 2 }), None)
            .unwrap()
            .read_item("old", None)
            .delete_item("new", None);
        let answer = run(f, batch).await;
        assert_eq!(statuses(&answer), [201, 200, 200, 200, 204]);
        let read: Value = answer.results()[3].into_model().unwrap().unwrap();
        assert_eq!(read["v"], 2);
        assert!(answer.results()[0].etag().is_some() && answer.results()[0].request_charge().unwrap() > 0.0);
        assert_eq!(ids(&f.container).await, ["old"]);
    });
}

#[test]
fn nothing_is_done_when_one_step_fails() {
    over_both(async |f| {
        f.create(json!({ "id": "there", "pk": "a" })).await;
        let batch = TransactionalBatch::new("a")
            .create_item(json!({ "id": "new", "pk": "a" }))
            .unwrap()
            .create_item(json!({ "id": "there", "pk": "a" }))
            .unwrap()
            .delete_item("there", None);
        assert_eq!(statuses(&run(f, batch).await), [424, 409, 424]);
        assert_eq!(ids(&f.container).await, ["there"]);
    });
}

#[test]
fn steps_are_held_to_their_conditions() {
    over_both(async |f| {
        let old = f.create(json!({ "id": "1", "pk": "a" })).await.headers().etag().cloned().unwrap();
        let current =
            f.container.upsert_item("a", "1", json!({ "id": "1", "pk": "a", "v": 2 }), None).await.unwrap();
        let current = current.headers().etag().cloned().unwrap();
        let batch = |etag: Etag| {
            let options = BatchReplaceOptions::default().with_precondition(Precondition::IfMatch(etag));
            TransactionalBatch::new("a")
                .replace_item("1", json!({ "id": "1", "pk": "a" }), Some(options))
                .unwrap()
        };
        assert_eq!(statuses(&run(f, batch(old)).await), [412]);
        assert_eq!(statuses(&run(f, batch(current)).await), [200]);
    });
}

#[test]
fn a_missing_item_fails_the_batch() {
    over_both(async |f| {
        let batch = TransactionalBatch::new("a").create_item(json!({ "id": "1", "pk": "a" })).unwrap();
        assert_eq!(statuses(&run(f, batch.read_item("none", None)).await), [424, 404]);
        assert!(ids(&f.container).await.is_empty());
    });
}

#[test]
fn a_hundred_steps_are_allowed_and_more_not() {
    let of = |count: usize| {
        (0..count).fold(TransactionalBatch::new("a"), |batch, number| {
            batch.create_item(json!({ "id": number.to_string(), "pk": "a" })).unwrap()
        })
    };
    over_both(async |f| {
        assert_eq!(statuses(&run(f, of(100)).await), [201; 100]);
        refused(400, 0, f.container.execute_transactional_batch(of(101), None).await);
        assert_eq!(ids(&f.container).await.len(), 100);
    });
}
