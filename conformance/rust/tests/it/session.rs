//! Session tokens and consistency.

use azure_data_cosmos::options::{ItemReadOptions, OperationOptions, ReadConsistencyStrategy, SessionToken};
use conformance::fixture::SHARED;
use conformance::{good, over_both};
use serde_json::json;

fn lsn(token: &SessionToken) -> u64 {
    token.as_str().split('#').nth(1).unwrap().parse().unwrap()
}

#[test]
fn tokens_grow_with_writes() {
    over_both(async |f| {
        let first = f.create(json!({ "id": "1", "pk": "a" })).await;
        let second = f.create(json!({ "id": "2", "pk": "a" })).await;
        let token =
            |answer: &azure_data_cosmos::models::ItemResponse| lsn(answer.headers().session_token().unwrap());
        assert!(token(&second) > token(&first));
    });
}

#[test]
fn a_token_of_one_client_serves_another() {
    over_both(async |f| {
        let token =
            f.create(json!({ "id": "1", "pk": "a" })).await.headers().session_token().cloned().unwrap();
        let name = f.container.read(None).await.unwrap().into_model().unwrap().id.to_string();
        let other = SHARED.client(f.scheme).await.database_client(f.database.name().unwrap().to_owned());
        let mirror = other.container_client(name, None).await.unwrap();
        good(
            200,
            mirror.read_item("a", "1", Some(ItemReadOptions::default().with_session_token(token))).await,
        );
    });
}

#[test]
fn a_token_of_the_future_is_not_served() {
    over_both(async |f| {
        let token =
            f.create(json!({ "id": "1", "pk": "a" })).await.headers().session_token().cloned().unwrap();
        let later = format!("{}#{}", token.as_str().split('#').next().unwrap(), lsn(&token) + 1_000_000);
        let options = ItemReadOptions::default().with_session_token(later);
        // The server says 404/1002; the SDK tries again for a while and then speaks for itself.
        let error = f.container.read_item("a", "1", Some(options)).await.err().unwrap();
        let substatus = error.status().sub_status().map(|substatus| substatus.value());
        assert_eq!((u16::from(error.status().status_code()), substatus), (503, Some(20310)), "{error}");
    });
}

#[test]
fn weaker_reads_are_accepted() {
    over_both(async |f| {
        f.create(json!({ "id": "1", "pk": "a" })).await;
        for strategy in [ReadConsistencyStrategy::Session, ReadConsistencyStrategy::Eventual] {
            let mut operation = OperationOptions::default();
            operation.read_consistency_strategy = Some(strategy);
            let options = ItemReadOptions::default().with_operation_options(operation);
            good(200, f.container.read_item("a", "1", Some(options)).await);
        }
    });
}
