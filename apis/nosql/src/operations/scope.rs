//! The scope of a feed or a query, from its headers.

use super::Call;
use super::document::header_key;
use crate::faults::{NosqlFault, WireFault};
use crate::wire::links::ContainerLinks;
use crate::wire::request_headers::RequestHeaders;
use crate::wire::{headers, names};
use engine::{Container, Scope};
use model::{EffectiveKey, EffectiveRange, PartitionOrdinal};

/// The items of the key, otherwise of the range or a part of it; `None` if the headers specify none.
pub(super) fn of_headers(call: &Call<'_>, container: &Container) -> Result<Option<Scope>, NosqlFault> {
    if let Some(key) = header_key(call, container)? {
        return Ok(Some(Scope::Key(key)));
    }
    let hashes = hashes(call.headers())?;
    match (range_id(call.headers(), container)?, hashes) {
        (Some(ordinal), part) => Ok(Some(Scope::Range(ordinal, part))),
        (None, None) => Ok(None),
        (None, Some(hashes)) => Ok(Some(Scope::Hashes(hashes))),
    }
}

/// The range that the request addresses: its id, or the RID of the container and its id, `AQAAAIAAAAE=,0`.
pub(super) fn range_id(
    headers: &RequestHeaders,
    container: &Container,
) -> Result<Option<PartitionOrdinal>, WireFault> {
    let Some(text) = headers::text(headers, &names::PARTITION_KEY_RANGE_ID)? else {
        return Ok(None);
    };
    let bad = |reason| headers::bad(&names::PARTITION_KEY_RANGE_ID, text, reason);
    let (rid, id) = match text.split_once(',') {
        Some((_, rest)) if rest.contains(',') => return Err(bad("it has more than one comma")),
        Some((rid, id)) => (Some(rid), id),
        None => (None, text),
    };
    // The parser of the language accepts a sign too.
    let ordinal = id.parse().ok().filter(|_| id.bytes().all(|byte| byte.is_ascii_digit()));
    let ordinal = ordinal.ok_or_else(|| bad("the id must be a whole number"))?;
    match rid {
        Some(rid) if *rid.as_bytes() != ContainerLinks::of(container).rid => {
            let (intended, actual) = (rid.to_owned(), container.rid().to_string());
            Err(WireFault::RangeOfOtherContainer { intended, actual })
        }
        Some(_) | None => Ok(Some(PartitionOrdinal(ordinal))),
    }
}

/// The interval of effective keys that the request addresses.
fn hashes(headers: &RequestHeaders) -> Result<Option<EffectiveRange>, WireFault> {
    let [start, end] = [&names::START_EPK, &names::END_EPK];
    let bound = |name| {
        let Some(text) = headers::text(headers, name)? else {
            return Ok(None);
        };
        EffectiveKey::from_hex(text).map(Some).ok_or_else(|| headers::bad(name, text, "it is not hex"))
    };
    let (min, max) = match (bound(start)?, bound(end)?) {
        (None, None) => return Ok(None),
        (min, max) => (min.unwrap_or(EffectiveKey::MIN), max.unwrap_or_else(EffectiveKey::max)),
    };
    if min > max {
        return Err(headers::bad(end, &max.to_string(), "it is below the start of the interval"));
    }
    Ok(Some(EffectiveRange { min, max }))
}
