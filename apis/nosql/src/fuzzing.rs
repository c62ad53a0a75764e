//! Entry points for fuzzing: what is parsed before a caller is authenticated, and the bodies of queries. Not part of
//! the public API.

use crate::auth::{Signed, authenticate as judge};
use crate::client_plan::{Extent, client_plan, hybrid_plan};
use crate::faults::text_errors;
use crate::lower::{QueryText, TextCache, advice};
use crate::resource_token;
use crate::route::Path;
use crate::wire::definition::{container, encryption_key, permission, script, throughput};
use crate::wire::request_headers::RequestHeaders;
use crate::wire::{key_header, names, permission_link, session};
use engine::{Access, AccountKey, pinned_keys};
use http::{HeaderMap, HeaderValue, Method};
use model::{PartitionKeyDefinition, PartitionKeyKind, ScriptKind};
use serde_json::Value as Json;

/// The server's time while fuzzing.
const NOW_SECONDS: u64 = 1_700_000_000;

/// Checks an authorization header, a date and a path as in a request. Authentication must never succeed.
pub fn authenticate(authorization: &[u8], date: &[u8], path: &str) {
    let mut headers = HeaderMap::new();
    let authorization = HeaderValue::from_bytes(authorization).ok();
    if let Ok(value) = HeaderValue::from_bytes(date) {
        headers.insert(&names::X_MS_DATE, value);
    }
    resource_token::of(authorization.as_ref()).ok();
    let Ok(path) = Path::parse(path) else { return };
    let access = Access::new(vec![AccountKey::new(b"a key that no input knows")], [0; 32]);
    let signed = Signed {
        verb: &Method::GET,
        path: &path,
        headers: &headers.into(),
        authorization: authorization.as_ref(),
    };
    assert!(judge(&access, NOW_SECONDS, &signed, true).is_err(), "a forged signature was accepted");
}

/// Parses session tokens and partition keys as in headers.
pub fn header_texts(text: &str) {
    if let Ok(tokens) = session::parse_list(text) {
        let mut written = Vec::new();
        session::push_list(&tokens, &mut written);
        let written = String::from_utf8_lossy(&written);
        assert_eq!(session::parse_list(&written), Ok(tokens), "{text}");
    }
    key_header::parse(&PartitionKeyDefinition::system(), text).ok();
}

/// Writes the faults of a query text as in the message of a refusal.
pub fn query_faults(faults: &sql::SqlFaults) {
    let text = text_errors(faults);
    serde_json::from_str::<serde_json::Value>(&text).expect("faults are written as JSON");
}

/// What clients substitute in a rewritten query.
const FILLED: [(&str, &str); 4] = [
    ("{documentdb-formattableorderbyquery-filter}", "true"),
    ("{documentdb-formattablehybridsearchquery-totaldocumentcount}", "20"),
    ("{documentdb-formattablehybridsearchquery-totalwordcount-0}", "30"),
    ("{documentdb-formattablehybridsearchquery-hitcountsarray-0}", "[1]"),
];

/// Parses the body of a query and computes everything that a request could ask for. The queries that clients are to
/// send instead must be valid too.
pub fn query_body(body: &[u8]) {
    let Ok(text) = QueryText::read(&RequestHeaders::default(), body) else { return };
    let Ok((tree, query)) = text.tree_and_query(&TextCache::new()) else { return };
    if let Ok(definition) = PartitionKeyDefinition::new(PartitionKeyKind::MultiHash, ["/a", "/b/c"]) {
        let keys = pinned_keys(&query, &definition).unwrap_or_default();
        assert!(keys.iter().all(|key| (1..=2).contains(&key.components.len())));
    }
    assert!(advice(&query).is_none_or(|advice| HeaderValue::try_from(advice).is_ok()));
    for extent in [Extent::OneKey, Extent::Ranges] {
        let Ok(plan) = client_plan(&tree, &query, extent, &|_| true) else { continue };
        check_rewritten(plan.rewritten.as_ref());
    }
    if let Some(plan) = hybrid_plan(&tree, &query) {
        check_rewritten(plan.statistics.as_ref());
    }
}

/// Parses definitions of containers and small resources: an accepted one is returned unchanged and can be sent again.
pub fn definition(text: &[u8]) {
    let Ok(body) = serde_json::from_slice::<Json>(text) else { return };
    if let Ok(definition) = container::read(&body) {
        let written = container::write(&definition).into();
        let again = container::read(&written);
        assert_eq!(again.as_ref(), Ok(&definition), "a definition comes back from its wire form");
        let replaced =
            container::read_change(&definition, &written).and_then(|change| Ok(change.applied(&definition)?));
        assert_eq!(replaced.as_ref(), Ok(&definition), "a container replaces itself");
    }
    if let Ok(definition) = permission::read(&body) {
        if let Ok(segments) = permission_link::segments(&definition) {
            permission_link::wanted(&definition, &segments).ok();
        }
        let again = permission::read(&permission::write(&definition).into());
        assert_eq!(again, Ok(definition), "a permission comes back from its wire form");
    }
    for kind in ScriptKind::ALL {
        if let Ok(definition) = script::read(kind, &body) {
            let again = script::read(kind, &script::write(&definition).into());
            assert_eq!(again, Ok(definition), "a script comes back from its wire form");
        }
    }
    if let Ok(definition) = encryption_key::read(&body) {
        let again = encryption_key::read(&encryption_key::write(&definition).into());
        assert_eq!(again, Ok(definition), "a key comes back from its wire form");
    }
    throughput::read(&body).ok();
}

fn check_rewritten(rewritten: Option<&sql::ast::Query>) {
    let Some(rewritten) = rewritten else { return };
    let text = FILLED.iter().fold(sql::print(rewritten), |text, (place, filled)| text.replace(place, filled));
    // The additions may push a query beyond its limits.
    if let Err(faults) = sql::parse(&text) {
        let is_bound = |fault: &sql::SqlFault| {
            matches!(fault.kind, sql::FaultKind::Limit { .. } | sql::FaultKind::TextTooLong { .. })
        };
        assert!(faults.0.iter().all(is_bound), "{text}: {faults}");
    }
}
