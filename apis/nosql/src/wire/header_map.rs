//! The map of an answer's headers.
//!
//! To put a header into a map means to hash its name, and nearly all answers have the same names: those about one
//! item and those about a page of a query over one or several partitions. Their maps are made once and copied, and only
//! the values are put in their places.

use super::names;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::sync::LazyLock;

/// The names of such answers, in the order in which they are added.
static USUAL: [&[&HeaderName]; 3] = [&ITEM, &PAGE, &PAGE_OF_SEVERAL];

static ITEM: [&HeaderName; 11] = [
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
    &names::CONTENT_LENGTH,
];

static PAGE: [&HeaderName; 11] = [
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
    &names::CONTENT_LENGTH,
];

static PAGE_OF_SEVERAL: [&HeaderName; 9] = [
    &names::REQUEST_CHARGE,
    &names::CONTENT_TYPE,
    &names::ITEM_COUNT,
    &names::QUERY_EXECUTION_INFO,
    &names::SESSION_TOKEN,
    &names::ALT_CONTENT_PATH,
    &names::CONTENT_PATH,
    &names::ACTIVITY_ID,
    &names::CONTENT_LENGTH,
];

/// What every answer says: it holds data and is bound to a credential, so nobody between server and client may keep it.
const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("no-store");

/// The maps of such answers, without their values.
static MAPS: LazyLock<[HeaderMap; 3]> = LazyLock::new(|| {
    USUAL.map(|names| {
        let mut map = HeaderMap::with_capacity(names.len() + 1);
        for name in names {
            map.insert(*name, HeaderValue::from_static(""));
        }
        map.insert(&names::CACHE_CONTROL, CACHE_CONTROL);
        map
    })
});

/// The map of `headers` with the value that `value` makes of each, and what every answer says; the last of a name
/// counts.
pub(crate) fn of<T>(headers: Vec<(&'static HeaderName, T)>, value: impl Fn(T) -> HeaderValue) -> HeaderMap {
    if let Some(map) = usual(&headers) {
        let mut map = map.clone();
        // A map without repeated names goes through its headers in the order in which they were put in.
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

/// The map for these headers, if there is one. Names are statics, so it is enough to see where they are.
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
