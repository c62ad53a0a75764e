//! Patch: six operations, refusals, all or nothing. The SDK patches at the server or by itself, as it is told.

use azure_data_cosmos::models::{CosmosNumber, PatchInstructions, PatchOperation};
use azure_data_cosmos::options::{ContentResponseOnWrite, OperationOptions, PatchItemOptions, PatchStrategy};
use conformance::{Fixture, good, over_both, plain, refused};
use serde_json::{Value, json};

const STRATEGIES: [PatchStrategy; 2] = [PatchStrategy::ServerSide, PatchStrategy::ClientSide];

fn options(strategy: PatchStrategy) -> Option<PatchItemOptions> {
    let mut operation = OperationOptions::default();
    operation.content_response_on_write = Some(ContentResponseOnWrite::Enabled);
    Some(PatchItemOptions::default().with_operation_options(operation).with_strategy(strategy))
}

fn patch(operations: impl IntoIterator<Item = PatchOperation>) -> PatchInstructions {
    operations.into_iter().fold(PatchInstructions::new(), PatchInstructions::with_operation)
}

async fn make(f: &Fixture, id: &str) {
    let item = json!({ "id": id, "pk": "a", "n": 1, "s": "text", "l": [1, 2, 3], "o": { "x": 1 } });
    f.create(item).await;
}

#[test]
fn all_six_operations_in_order() {
    over_both(async |f| {
        for (strategy, id) in STRATEGIES.into_iter().zip(["server", "client"]) {
            make(f, id).await;
            let operations = patch([
                PatchOperation::add("/l/0", json!(0)),
                PatchOperation::add("/l/-", json!(4)),
                PatchOperation::set("/new", json!({ "deep": [null] })),
                PatchOperation::replace("/n", json!(5)),
                PatchOperation::increment("/n", CosmosNumber::Int(2)),
                PatchOperation::remove("/s"),
                PatchOperation::move_value("/o/x", "/y"),
            ]);
            good(200, f.container.patch_item("a", id, operations, options(strategy)).await);
            let expected = json!({
                "id": id, "pk": "a", "n": 7, "l": [0, 1, 2, 3, 4], "o": {}, "new": { "deep": [null] }, "y": 1,
            });
            let mut after = plain(f.read(id).await.unwrap());
            // Where the SDK patches by itself, it leaves a note for its own retries.
            after.as_object_mut().unwrap().remove("_azsdkPatchTracking");
            assert_eq!(after, expected, "{strategy:?}");
        }
    });
}

#[test]
fn a_refused_operation_changes_nothing() {
    over_both(async |f| {
        make(f, "1").await;
        let before = f.read("1").await.unwrap();
        // Changes of the id and the key are refused by the SDK.
        for bad in [
            PatchOperation::remove("/none"),
            PatchOperation::replace("/none", json!(1)),
            PatchOperation::add("/l/9", json!(1)),
            PatchOperation::increment("/s", CosmosNumber::Int(1)),
            PatchOperation::set("/_ts", json!(1)),
        ] {
            let operations = patch([PatchOperation::set("/first", json!(1)), bad]);
            let answer =
                f.container.patch_item("a", "1", operations, options(PatchStrategy::ServerSide)).await;
            refused(400, 0, answer);
        }
        assert_eq!(f.read("1").await.unwrap(), before);
    });
}

#[test]
fn what_is_absent_cannot_be_patched() {
    over_both(async |f| {
        for strategy in STRATEGIES {
            let operations = patch([PatchOperation::set("/n", json!(1))]);
            refused(404, 0, f.container.patch_item("a", "1", operations, options(strategy)).await);
        }
    });
}

#[test]
fn increments_of_many_are_not_lost() {
    over_both(async |f| {
        for (strategy, id) in STRATEGIES.into_iter().zip(["server", "client"]) {
            make(f, id).await;
            let racers = (0..8).map(|_| {
                let operations = patch([PatchOperation::increment("/n", CosmosNumber::Int(1))]);
                let options =
                    options(strategy).map(|options| options.with_max_attempts(100.try_into().unwrap()));
                f.container.patch_item("a", id, operations, options)
            });
            for answer in futures::future::join_all(racers).await {
                good(200, answer);
            }
            let after: Value = f.read(id).await.unwrap();
            assert_eq!(after["n"], 9, "{strategy:?}");
        }
    });
}
