//! The version of the protocol that a client speaks. It decides the form of some answers.

use super::names;
use super::request_headers::RequestHeaders;

/// From this version on session tokens have the vector form.
pub(crate) const VECTOR_SESSIONS: &str = "2018-06-18";
/// From this version on clients know containers whose partition key is a system key.
pub(crate) const SYSTEM_KEYS: &str = "2018-12-31";

/// Whether the client is older than `version`. A client that says nothing is not. Versions are dates, so their texts
/// have their order.
pub(crate) fn is_before(headers: &RequestHeaders, version: &str) -> bool {
    let given = headers.get(&names::VERSION).map_or(&[][..], |text| text.as_bytes());
    let is_date =
        given.len() == version.len() && given.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-');
    is_date && given < version.as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue};

    #[test]
    fn versions_are_compared_as_dates() {
        let is_before = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(&names::VERSION, HeaderValue::from_static(text));
            is_before(&headers.into(), VECTOR_SESSIONS)
        };
        assert!(is_before("2017-11-15") && is_before("2018-06-17"));
        assert!(!is_before("2018-06-18") && !is_before("2020-07-15"));
        assert!(!is_before("") && !is_before("1") && !is_before("abcd-ef-gh"));
        assert!(!super::is_before(&RequestHeaders::default(), VECTOR_SESSIONS));
    }
}
