//! The map of an answer's headers.
//!
//! To put a header into a map means to hash its name, and nearly all answers have the same names: those about one
//! item. Their map is made once and copied, and only the values are put in their places.

use super::names;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::sync::LazyLock;

/// The names of an answer with one item, in the order in which they are added.
static ITEM_NAMES: [&HeaderName; 11] = [
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

/// The map of such an answer, without its values.
static ITEM_MAP: LazyLock<HeaderMap> = LazyLock::new(|| {
    let mut map = HeaderMap::with_capacity(ITEM_NAMES.len());
    for name in ITEM_NAMES {
        map.insert(name, HeaderValue::from_static(""));
    }
    map
});

/// The map of `headers` with the value that `value` makes of each; the last of a name counts.
pub(crate) fn of<T>(headers: Vec<(&'static HeaderName, T)>, value: impl Fn(T) -> HeaderValue) -> HeaderMap {
    if is_item(&headers) {
        let mut map = ITEM_MAP.clone();
        // A map without repeated names goes through its headers in the order in which they were put in.
        for (place, (_, text)) in map.values_mut().zip(headers) {
            *place = value(text);
        }
        return map;
    }
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, text) in headers {
        map.insert(name, value(text));
    }
    map
}

/// Whether these are the headers of an answer with one item. Names are statics, so it is enough to see where they are.
fn is_item<T>(headers: &[(&'static HeaderName, T)]) -> bool {
    let mut names = headers.iter().map(|(name, _)| *name).zip(ITEM_NAMES);
    headers.len() == ITEM_NAMES.len() && names.all(|(name, wanted)| std::ptr::eq(name, wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copied_map_is_like_one_made_anew() {
        let item: Vec<_> = ITEM_NAMES.into_iter().zip(0_u64..).collect();
        assert!(is_item(&item));
        let mut other = item.clone();
        other.rotate_left(1);
        assert!(!is_item(&other) && !is_item(&item[1..]));
        let copied = of(item.clone(), HeaderValue::from);
        assert_eq!(copied, of(other, HeaderValue::from));
        for (name, number) in item {
            assert_eq!(copied[name], HeaderValue::from(number));
        }
    }

    #[test]
    fn the_last_of_a_name_counts() {
        let headers = vec![(&names::LSN, 1_u64), (&names::ETAG, 2), (&names::LSN, 3)];
        let map = of(headers, HeaderValue::from);
        assert_eq!((map.len(), &map[&names::LSN]), (2, &HeaderValue::from(3_u64)));
    }
}
