//! Small words for assertions.

use azure_data_cosmos::CosmosError;
use azure_data_cosmos::models::{ItemResponse, ResponseHeaders};
use serde_json::Value;
use std::time::{Duration, Instant};

const SYSTEM: [&str; 5] = ["_rid", "_self", "_etag", "_ts", "_attachments"];

/// The item without system properties.
pub fn plain(mut item: Value) -> Value {
    if let Value::Object(members) = &mut item {
        members.retain(|name, _| !SYSTEM.contains(&name.as_str()));
    }
    item
}

/// The headers that every good answer carries.
#[track_caller]
pub fn common(headers: &ResponseHeaders) {
    assert!(headers.request_charge().unwrap().value() > 0.0);
    assert_eq!(headers.activity_id().unwrap().as_str().len(), 36);
}

/// A good answer has this status, a charge, an activity id, a session token, and an ETag unless it deleted.
#[track_caller]
pub fn good(status: u16, answer: azure_data_cosmos::Result<ItemResponse>) -> ItemResponse {
    let answer = answer.unwrap();
    assert_eq!(u16::from(answer.status().status_code()), status);
    common(answer.headers());
    assert!(answer.headers().session_token().unwrap().as_str().contains('#'));
    assert_eq!(answer.headers().etag().is_some(), status != 204);
    answer
}

/// Status and substatus of what must be refused by the server.
#[track_caller]
pub fn refused<T>(status: u16, substatus: u32, answer: azure_data_cosmos::Result<T>) -> CosmosError {
    let Err(error) = answer else {
        panic!("not refused");
    };
    let found = error.status();
    let found_substatus = found.sub_status().map_or(0, |substatus| u32::from(substatus.value()));
    assert_eq!((u16::from(found.status_code()), found_substatus), (status, substatus), "{error}");
    assert!(error.is_from_wire(), "{error}");
    error
}

/// Waits until the condition holds; the bound is only for a server that never gets there.
pub async fn eventually(condition: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline {
        if condition().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not within 20 s");
}
