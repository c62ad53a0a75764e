//! Request headers, parsed to typed values.
//!
//! An absent or empty header has no meaning; an invalid header refuses the request.

use super::request_headers::RequestHeaders;
use super::{date, definition, names, session};
use crate::consistency::ConsistencyLevel;
use crate::faults::{NosqlFault, WireFault};
use engine::ChangeMode;
use http::HeaderName;
use model::limits::{
    AUTOSCALE_MIN, PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX, THROUGHPUT_MIN, TOKEN_SECONDS_MAX, TOKEN_SECONDS_MIN,
};
use model::{Priority, SessionToken, Throughput, TokenLife};
use plan::Condition;
use std::fmt::Display;

/// The form of rows with metadata.
const CHANGE_FEED_FORMAT: &str = "2021-09-15";

/// The text of a header; `None` if it is absent or empty.
pub(crate) fn text<'a>(
    headers: &'a RequestHeaders,
    name: &'static HeaderName,
) -> Result<Option<&'a str>, WireFault> {
    let Some(value) = headers.get(name).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    match str::from_utf8(value.as_bytes()) {
        Ok(text) => Ok(Some(text)),
        Err(_) => Err(bad(name, &String::from_utf8_lossy(value.as_bytes()), "it is not UTF-8")),
    }
}

/// Headers that affect access. If sent twice, they could mean one thing to a proxy that checks requests and another
/// here.
static ONCE: [&HeaderName; 14] = [
    &names::HOST,
    &names::AUTHORIZATION,
    &names::DATE,
    &names::X_MS_DATE,
    &names::PARTITION_KEY,
    &names::PARTITION_KEY_RANGE_ID,
    &names::IS_QUERY,
    &names::IS_UPSERT,
    &names::IS_BATCH,
    &names::BATCH_ATOMIC,
    &names::IF_MATCH,
    &names::IF_NONE_MATCH,
    &names::A_IM,
    &names::IF_MODIFIED_SINCE,
];

/// Refuses a request that repeats a header that affects access.
pub(crate) fn check_repeated(headers: &RequestHeaders) -> Result<(), WireFault> {
    let headers = headers.map();
    if headers.len() == headers.keys_len() {
        return Ok(());
    }
    match ONCE.into_iter().find(|name| headers.get_all(*name).iter().nth(1).is_some()) {
        Some(name) => Err(bad(name, "", "it is sent more than once")),
        None => Ok(()),
    }
}

/// The fault of an invalid header.
pub(crate) fn bad(name: &'static HeaderName, value: &str, reason: &str) -> WireFault {
    WireFault::Header { name: name.as_str(), value: value.to_owned(), reason: reason.to_owned() }
}

/// A boolean, case-insensitive; absent means false.
pub(crate) fn flag(headers: &RequestHeaders, name: &'static HeaderName) -> Result<bool, WireFault> {
    match text(headers, name)? {
        None => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
        Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
        Some(text) => Err(bad(name, text, "it must be true or false")),
    }
}

/// The condition of a write on the stored version. `If-Match` takes precedence over `If-None-Match`.
pub(crate) fn write_condition(headers: &RequestHeaders) -> Result<Condition, WireFault> {
    if let Some(etag) = text(headers, &names::IF_MATCH)? {
        return Ok(if_match(etag));
    }
    read_condition(headers)
}

/// The condition of a read on the stored version: only `If-None-Match` applies.
pub(crate) fn read_condition(headers: &RequestHeaders) -> Result<Condition, WireFault> {
    Ok(text(headers, &names::IF_NONE_MATCH)?.map_or(Condition::None, if_none_match))
}

/// The condition of an `If-Match`.
pub(crate) fn if_match(etag: &str) -> Condition {
    if etag == "*" { Condition::IfExists } else { Condition::IfMatch(etag.to_owned()) }
}

/// The condition of an `If-None-Match`.
pub(crate) fn if_none_match(etag: &str) -> Condition {
    if etag == "*" { Condition::IfAbsent } else { Condition::IfNoneMatch(etag.to_owned()) }
}

/// Maximum items of a page: `-1` means the default, and a value above our limit is reduced silently. `0` also means the
/// default: a client sends it for `TOP 0`.
pub(crate) fn page_items(headers: &RequestHeaders) -> Result<usize, WireFault> {
    let Some(text) = text(headers, &names::MAX_ITEM_COUNT)? else {
        return Ok(PAGE_ITEMS_DEFAULT);
    };
    match text.parse::<i32>() {
        Ok(-1 | 0) => Ok(PAGE_ITEMS_DEFAULT),
        Ok(count @ 1..) => Ok(usize::try_from(count).unwrap_or(PAGE_ITEMS_MAX).min(PAGE_ITEMS_MAX)),
        Ok(_) | Err(_) => {
            Err(bad(&names::MAX_ITEM_COUNT, text, "it must be -1 or a whole number from 0 to 2147483647"))
        }
    }
}

/// The level of a request: the account's, `offered`, or a weaker one. A stronger one is refused.
pub(crate) fn consistency(
    headers: &RequestHeaders,
    offered: ConsistencyLevel,
) -> Result<ConsistencyLevel, WireFault> {
    let Some(text) = text(headers, &names::CONSISTENCY_LEVEL)? else {
        return Ok(offered);
    };
    match text.parse::<ConsistencyLevel>() {
        Ok(asked) if asked <= offered => Ok(asked),
        Ok(_) => Err(WireFault::ConsistencyTooStrong { asked: text.to_owned(), offered: offered.name() }),
        Err(_) => Err(bad(&names::CONSISTENCY_LEVEL, text, "it is no consistency level")),
    }
}

/// The priority of the request when throughput is scarce.
pub(crate) fn priority(headers: &RequestHeaders) -> Result<Priority, WireFault> {
    match text(headers, &names::PRIORITY_LEVEL)? {
        None => Ok(Priority::High),
        Some(text) if text.eq_ignore_ascii_case("high") => Ok(Priority::High),
        Some(text) if text.eq_ignore_ascii_case("low") => Ok(Priority::Low),
        Some(text) => Err(bad(&names::PRIORITY_LEVEL, text, "it must be High or Low")),
    }
}

/// The requested lifetime of the token in the answer.
pub(crate) fn token_life(headers: &RequestHeaders) -> Result<TokenLife, WireFault> {
    let Some(text) = text(headers, &names::EXPIRY_SECONDS)? else {
        return Ok(TokenLife::DEFAULT);
    };
    let life = text.parse().ok().and_then(TokenLife::new);
    life.ok_or_else(|| {
        let reason = format!("it must be a whole number from {TOKEN_SECONDS_MIN} to {TOKEN_SECONDS_MAX}");
        bad(&names::EXPIRY_SECONDS, text, &reason)
    })
}

/// The session tokens of the client.
pub(crate) fn session(headers: &RequestHeaders) -> Result<Vec<SessionToken>, WireFault> {
    text(headers, &names::SESSION_TOKEN)?.map_or(Ok(Vec::new()), session::parse_list)
}

/// Whether the answer to a write may omit the body.
pub(crate) fn prefers_minimal(headers: &RequestHeaders) -> Result<bool, WireFault> {
    Ok(text(headers, &names::PREFER)?.is_some_and(|text| text.eq_ignore_ascii_case("return=minimal")))
}

/// Whether the body is a query, by header or by content type.
pub(crate) fn is_query(headers: &RequestHeaders) -> Result<bool, WireFault> {
    let by_kind = has_type(headers, "application/query+json")? || is_bare_sql(headers)?;
    Ok(by_kind || flag(headers, &names::IS_QUERY)?)
}

/// Whether the body is the bare text of a query.
pub(crate) fn is_bare_sql(headers: &RequestHeaders) -> Result<bool, WireFault> {
    has_type(headers, "application/sql")
}

/// Whether the body has a content type, ignoring its parameters.
fn has_type(headers: &RequestHeaders, wanted: &str) -> Result<bool, WireFault> {
    let kind = text(headers, &names::CONTENT_TYPE)?.unwrap_or_default();
    Ok(kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(wanted))
}

/// The change feed that is requested instead of a plain feed; clients differ in letter case.
pub(crate) fn change_feed(headers: &RequestHeaders) -> Result<Option<ChangeMode>, WireFault> {
    match text(headers, &names::A_IM)? {
        None => Ok(None),
        Some(text) if text.eq_ignore_ascii_case("incremental feed") => Ok(Some(ChangeMode::LatestVersion)),
        Some(text) if text.eq_ignore_ascii_case("full-fidelity feed") => Ok(Some(ChangeMode::AllVersions)),
        Some(text) => Err(bad(&names::A_IM, text, "it is no kind of change feed")),
    }
}

/// Whether rows with metadata are requested: a version with only one value.
pub(crate) fn wants_metadata(headers: &RequestHeaders) -> Result<bool, WireFault> {
    match text(headers, &names::CHANGE_FEED_FORMAT)? {
        None => Ok(false),
        Some(CHANGE_FEED_FORMAT) => Ok(true),
        Some(text) => {
            let reason = format!("the only format is {CHANGE_FEED_FORMAT}");
            Err(bad(&names::CHANGE_FEED_FORMAT, text, &reason))
        }
    }
}

/// The second since which changes are requested.
pub(crate) fn modified_since(headers: &RequestHeaders) -> Result<Option<u64>, WireFault> {
    let Some(text) = text(headers, &names::IF_MODIFIED_SINCE)? else {
        return Ok(None);
    };
    // The Go SDK writes the name of the time zone in this way.
    let seconds = match text.strip_suffix(" UTC") {
        Some(date) => date::parse(&format!("{date} GMT")),
        None => date::parse(text),
    };
    seconds.map(Some).ok_or_else(|| bad(&names::IF_MODIFIED_SINCE, text, "it is not an HTTP date"))
}

/// The service's sentence about a throughput below the minimum.
pub(crate) fn too_low(rate: impl Display, min: u64) -> String {
    format!("Requested throughput {rate} is less than required minimum throughput {min}")
}

/// The throughput of a new database or container.
pub(crate) fn throughput(headers: &RequestHeaders) -> Result<Option<Throughput>, NosqlFault> {
    let manual = text(headers, &names::OFFER_THROUGHPUT)?;
    let autoscale = text(headers, &names::AUTOPILOT_SETTINGS)?;
    match (manual, autoscale) {
        (None, None) => Ok(None),
        (Some(text), None) => match text.parse() {
            Ok(rate) => Ok(Some(Throughput::manual(rate)?)),
            Err(_) if text.parse::<i64>().is_ok() => {
                Err(bad(&names::OFFER_THROUGHPUT, text, &too_low(text, THROUGHPUT_MIN)).into())
            }
            Err(_) => Err(bad(&names::OFFER_THROUGHPUT, text, "it must be a whole number").into()),
        },
        (None, Some(text)) => autoscale_settings(text).map(Some),
        (Some(text), Some(_)) => {
            Err(bad(&names::OFFER_THROUGHPUT, text, "throughput is either manual or autoscale").into())
        }
    }
}

/// The settings of autoscale in a header.
fn autoscale_settings(text: &str) -> Result<Throughput, NosqlFault> {
    let bad = |reason: &str| bad(&names::AUTOPILOT_SETTINGS, text, reason);
    let settings: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let increment_percent = definition::throughput::increment(&settings).map_err(bad)?;
    match settings.get("maxThroughput").and_then(serde_json::Value::as_i64) {
        Some(max @ 0..) => {
            let max = Throughput::autoscale(max.unsigned_abs())?.max();
            Ok(Throughput::Autoscale { max, increment_percent })
        }
        Some(max) => Err(bad(&too_low(max, AUTOSCALE_MIN)).into()),
        None => Err(bad("it must be JSON with a number \"maxThroughput\"").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn with(name: &'static HeaderName, value: &[u8]) -> RequestHeaders {
        and(RequestHeaders::default(), name, value)
    }

    fn and(headers: RequestHeaders, name: &'static HeaderName, value: &[u8]) -> RequestHeaders {
        let mut map = headers.map().clone();
        map.insert(name, HeaderValue::from_bytes(value).unwrap());
        map.into()
    }

    #[test]
    fn page_sizes_are_bounded() {
        let items = |text: &str| page_items(&with(&names::MAX_ITEM_COUNT, text.as_bytes()));
        assert_eq!(items("-1"), Ok(PAGE_ITEMS_DEFAULT));
        assert_eq!(items("0"), Ok(PAGE_ITEMS_DEFAULT));
        assert_eq!(items("1"), Ok(1));
        assert_eq!(items("1000"), Ok(PAGE_ITEMS_MAX));
        assert_eq!(items("2147483647"), Ok(PAGE_ITEMS_MAX));
        for text in ["-2", "x", "1.5", "2147483648", "99999999999"] {
            assert!(items(text).is_err(), "{text}");
        }
    }

    #[test]
    fn levels_up_to_the_account_s_are_accepted() {
        let at =
            |text: &str, offered| consistency(&with(&names::CONSISTENCY_LEVEL, text.as_bytes()), offered);
        let level = |text: &str| at(text, ConsistencyLevel::Session);
        assert!(
            at("Strong", ConsistencyLevel::Strong).is_ok()
                && at("session", ConsistencyLevel::Eventual).is_err()
        );
        assert!(level("Session").is_ok() && level("eventual").is_ok() && level("ConsistentPrefix").is_ok());
        assert!(matches!(level("Strong"), Err(WireFault::ConsistencyTooStrong { .. })));
        assert!(matches!(level("boundedstaleness"), Err(WireFault::ConsistencyTooStrong { .. })));
        assert!(matches!(level("Perfect"), Err(WireFault::Header { .. })));
    }

    #[test]
    fn a_request_has_high_priority_unless_it_says_low() {
        let level = |text: &str| priority(&with(&names::PRIORITY_LEVEL, text.as_bytes()));
        assert_eq!(priority(&RequestHeaders::default()), Ok(Priority::High));
        assert_eq!((level("High"), level("low")), (Ok(Priority::High), Ok(Priority::Low)));
        assert!(level("1").is_err() && level("lowest").is_err());
    }

    #[test]
    fn conditions_know_the_star_and_their_order() {
        let headers = with(&names::IF_NONE_MATCH, b"*");
        assert_eq!(read_condition(&headers), Ok(Condition::IfAbsent));
        assert_eq!(write_condition(&headers), Ok(Condition::IfAbsent));
        let headers = and(headers, &names::IF_MATCH, b"\"e\"");
        assert_eq!(read_condition(&headers), Ok(Condition::IfAbsent));
        assert_eq!(write_condition(&headers), Ok(Condition::IfMatch("\"e\"".to_owned())));
    }

    #[test]
    fn a_value_that_is_no_text_names_its_header() {
        let fault = flag(&with(&names::IS_UPSERT, b"\xFF"), &names::IS_UPSERT).unwrap_err();
        assert!(fault.to_string().contains("x-ms-documentdb-is-upsert"));
        assert!(flag(&with(&names::IS_UPSERT, b"yes"), &names::IS_UPSERT).is_err());
        assert_eq!(flag(&with(&names::IS_UPSERT, b"True"), &names::IS_UPSERT), Ok(true));
        assert_eq!(flag(&with(&names::IS_UPSERT, b""), &names::IS_UPSERT), Ok(false));
    }

    #[test]
    fn throughput_is_manual_or_autoscale() {
        assert_eq!(throughput(&RequestHeaders::default()), Ok(None));
        let manual = with(&names::OFFER_THROUGHPUT, b"500");
        assert_eq!(throughput(&manual), Ok(Some(Throughput::Manual(500))));
        let settings = b"{\"maxThroughput\":4000}";
        assert!(throughput(&and(manual, &names::AUTOPILOT_SETTINGS, settings)).is_err());
        let autoscale = with(&names::AUTOPILOT_SETTINGS, settings);
        assert_eq!(
            throughput(&autoscale),
            Ok(Some(Throughput::Autoscale { max: 4000, increment_percent: 0 }))
        );
        for text in ["{}", "4000", "{\"maxThroughput\":\"4000\"}", "{"] {
            assert!(throughput(&with(&names::AUTOPILOT_SETTINGS, text.as_bytes())).is_err(), "{text}");
        }
    }

    #[test]
    fn queries_are_told_by_header_or_type() {
        assert_eq!(is_query(&with(&names::CONTENT_TYPE, b"application/query+json; charset=utf-8")), Ok(true));
        assert_eq!(is_query(&with(&names::IS_QUERY, b"True")), Ok(true));
        assert_eq!(is_query(&with(&names::CONTENT_TYPE, b"application/json")), Ok(false));
    }
}
