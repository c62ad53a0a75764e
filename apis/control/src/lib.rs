//! The control API, for operators and tests: the partitions of a container with their load, splits, pauses.
//!
//! ```text
//! GET  /_control/dbs/{database}/colls/{container}/partitions
//! POST /_control/dbs/{database}/colls/{container}/partitions/{id}/split
//! POST /_control/dbs/{database}/colls/{container}/partitions/{id}/throttle?milliseconds={n}
//! ```
//!
//! Requests have no body. `Authorization: Bearer` is followed by an account key, or by a token of the identity
//! provider. All operations are for administrators: they need rights to change the container, since the list shows
//! values of partition keys. Knows nothing of documents and of the NoSQL protocol.

mod faults;
mod partitions;
mod route;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use engine::{Action, Container, Engine, Principal};
use faults::ControlFault;
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use model::{AccessFault, Fault, MissingFault, PartitionOrdinal};
use route::{Operation, Route};
use std::sync::Arc;

/// The beginning of all paths.
pub const PREFIX: &str = "/_control/";

/// Answers one request. Never fails: a fault is an answer too.
pub async fn handle(engine: &Engine, request: &Parts) -> Response<Bytes> {
    let (status, body) = match answer(engine, request).await {
        Ok(body) => (StatusCode::OK, body),
        Err(fault) => (fault.status(), fault.body()),
    };
    let mut response = Response::new(Bytes::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

async fn answer(engine: &Engine, request: &Parts) -> Result<serde_json::Value, ControlFault> {
    let Route { database, container, operation } = Route::of(request)?;
    let principal = principal(engine, request)?;
    let found = engine.find_container(&principal, Action::ChangeMetadata, &database, &container);
    let found: Arc<Container> = match found {
        Err(Fault::Missing(MissingFault::Owner | MissingFault::Resource)) => {
            return Err(ControlFault::NoContainer { database, container });
        }
        found => found?.resource,
    };
    let pass = engine.access().change_catalog(&principal, &*found)?;
    match operation {
        Operation::List => {
            let reading = engine.access().read_catalog(&principal, &*found)?;
            partitions::list(engine, &pass, &reading).await
        }
        Operation::Split(ordinal) => {
            partitions::split(engine, pass, ordinal).await.map_err(|fault| named(fault, &found, ordinal))
        }
        Operation::Pause(ordinal, time) => {
            partitions::pause(engine, &pass, ordinal, time).map_err(|fault| named(fault, &found, ordinal))
        }
    }
}

/// The same fault; of a partition that was split it names those that replaced it.
fn named(fault: ControlFault, container: &Container, id: PartitionOrdinal) -> ControlFault {
    let descendants = container.descendants_of(id);
    let is_missing = matches!(fault, ControlFault::Core(Fault::Missing(MissingFault::Range { .. })));
    if is_missing && !descendants.is_empty() { ControlFault::Split { id, descendants } } else { fault }
}

/// The holder of an account key or of a token of the identity provider.
fn principal(engine: &Engine, request: &Parts) -> Result<Principal, ControlFault> {
    let values: Vec<_> = request.headers.get_all(AUTHORIZATION).iter().collect();
    let [value] = values[..] else { return Err(ControlFault::NoCredential) };
    let text = value.to_str().ok().and_then(|text| text.split_once(' '));
    let Some((scheme, credential)) = text else { return Err(ControlFault::NoCredential) };
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(ControlFault::NoCredential);
    }
    let now = engine.ambient().now_seconds();
    let key = BASE64_STANDARD.decode(credential.trim()).ok();
    if let Some(principal) = key.and_then(|key| engine.access().verify_key(&key, now)) {
        return Ok(principal);
    }
    let held: Result<Principal, AccessFault> = engine.access().verify_bearer(credential.trim(), now);
    held.map_err(|_| ControlFault::WrongCredential)
}
