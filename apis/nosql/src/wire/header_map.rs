//! The header map of an answer.
//!
//! Inserting a header into a map hashes its name, and nearly all answers have the same names: answers with one item,
//! and pages of a query over one or several partitions. Their maps are built once and cloned, and only the values are
//! filled in.

use super::names;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::sync::LazyLock;

/// The names of such answers, in the order in which they are added.
static USUAL: [&[&HeaderName]; 4] = [&READ_ITEM, &ITEM, &PAGE, &PAGE_OF_SEVERAL];

/// Only a read names the location of its item.
static READ_ITEM: [&HeaderName; 13] = [
    &names::REQUEST_CHARGE,
    &names::CONTENT_TYPE,
    &names::ETAG,
    &names::ITEM_LSN,
    &names::SESSION_TOKEN,
    &names::LSN,
    &names::PARTITION_KEY_RANGE_ID,
    &names::ALT_CONTENT_PATH,
    &names::CONTENT_PATH,
    &names::CONTENT_LOCATION,
    &names::ACTIVITY_ID,
    &names::REQUEST_DURATION_MS,
    &names::CONTENT_LENGTH,
];

static ITEM: [&HeaderName; 12] = [
    &names::REQUEST_CHARGE,
    &names::CONTENT_TYPE,
    &names::ETAG,
    &names::ITEM_LSN,
    &names::SESSION_TOKEN,
    &names::LSN,
    &names::PARTITION_KEY_RANGE_ID,
    &names::ALT_CONTENT_PATH,
    &names::CONTENT_PATH,
    &names::ACTIVITY_ID,
    &names::REQUEST_DURATION_MS,
    &names::CONTENT_LENGTH,
];

static PAGE: [&HeaderName; 12] = [
    &names::REQUEST_CHARGE,
    &names::CONTENT_TYPE,
    &names::ITEM_COUNT,
    &names::QUERY_EXECUTION_INFO,
    &names::SESSION_TOKEN,
    &names::LSN,
    &names::PARTITION_KEY_RANGE_ID,
    &names::ALT_CONTENT_PATH,
    &names::CONTENT_PATH,
    &names::ACTIVITY_ID,
    &names::REQUEST_DURATION_MS,
    &names::CONTENT_LENGTH,
];

static PAGE_OF_SEVERAL: [&HeaderName; 10] = [
    &names::REQUEST_CHARGE,
    &names::CONTENT_TYPE,
    &names::ITEM_COUNT,
    &names::QUERY_EXECUTION_INFO,
    &names::SESSION_TOKEN,
    &names::ALT_CONTENT_PATH,
    &names::CONTENT_PATH,
    &names::ACTIVITY_ID,
    &names::REQUEST_DURATION_MS,
    &names::CONTENT_LENGTH,
];

/// Sent with every answer: it contains data and depends on a credential, so no intermediary may cache it.
const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("no-store");

/// The maps of such answers, with empty values.
static MAPS: LazyLock<[HeaderMap; 4]> = LazyLock::new(|| {
    USUAL.map(|names| {
        let mut map = HeaderMap::with_capacity(names.len() + 1);
        for name in names {
            map.insert(*name, HeaderValue::from_static(""));
        }
        map.insert(&names::CACHE_CONTROL, CACHE_CONTROL);
        map
    })
});

/// The map of `headers`, each with the value from `value`, plus the headers of every answer; the last of a name wins.
pub(crate) fn of<T>(headers: Vec<(&'static HeaderName, T)>, value: impl Fn(T) -> HeaderValue) -> HeaderMap {
    if let Some(map) = usual(&headers) {
        let mut map = map.clone();
        // A map without repeated names iterates in insertion order.
        for (place, (_, text)) in map.values_mut().zip(headers) {
            *place = value(text);
        }
        return map;
    }
    let mut map = HeaderMap::with_capacity(headers.len() + 1);
    for (name, text) in headers {
        map.insert(name, value(text));
    }
    map.insert(&names::CACHE_CONTROL, CACHE_CONTROL);
    map
}

/// The prepared map for these headers, if there is one. Names are statics, so comparing addresses is sufficient.
fn usual<T>(headers: &[(&'static HeaderName, T)]) -> Option<&'static HeaderMap> {
    let is_meant = |names: &&[&HeaderName]| {
        let mut pairs = headers.iter().zip(*names);
        headers.len() == names.len() && pairs.all(|((name, _), wanted)| std::ptr::eq(*name, *wanted))
    };
    let place = USUAL.iter().position(is_meant)?;
    MAPS.get(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copied_map_is_like_one_made_anew() {
        for names in USUAL {
            let headers: Vec<_> = names.iter().copied().zip(0_u64..).collect();
            assert!(usual(&headers).is_some());
            let mut other = headers.clone();
            other.rotate_left(1);
            assert!(usual(&other).is_none() && usual(&headers[1..]).is_none());
            let copied = of(headers.clone(), HeaderValue::from);
            assert_eq!(copied, of(other, HeaderValue::from));
            for (name, number) in headers {
                assert_eq!(copied[name], HeaderValue::from(number));
            }
        }
    }

    #[test]
    fn the_last_of_a_name_counts() {
        let headers = vec![(&names::LSN, 1_u64), (&names::ETAG, 2), (&names::LSN, 3)];
        let map = of(headers, HeaderValue::from);
        assert_eq!((map.len(), &map[&names::LSN]), (3, &HeaderValue::from(3_u64)));
    }
}
