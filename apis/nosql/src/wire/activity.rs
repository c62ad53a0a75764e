//! Activity ids: the GUID that connects a request of a client with log lines.
//!
//! A client's id is echoed only if it is a GUID, so no other client text gets into a header.

use super::names;
use super::request_headers::RequestHeaders;
use api_http::Guid;
use model::Ambient;

/// The id of one request.
pub(crate) type ActivityId = Guid;

/// The client's id, or a new one if it sent none or an invalid one.
pub(crate) fn of(headers: &RequestHeaders, ambient: &dyn Ambient) -> ActivityId {
    let sent = headers.get(&names::ACTIVITY_ID).and_then(|value| Guid::parse(value.as_bytes()));
    sent.unwrap_or_else(|| Guid::random(ambient))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue};

    #[derive(Debug)]
    struct Fixed;

    impl Ambient for Fixed {
        fn now_ms(&self) -> u64 {
            0
        }

        fn fill_random(&self, bytes: &mut [u8]) {
            bytes.fill(0xAB);
        }
    }

    fn id_for(sent: &[u8]) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(&names::ACTIVITY_ID, HeaderValue::from_bytes(sent).unwrap());
        of(&headers.into(), &Fixed).as_str().to_owned()
    }

    #[test]
    fn a_guid_is_echoed_and_nothing_else() {
        assert_eq!(id_for(b"6D3F0000-aaaa-bbbb-cccc-0123456789ab"), "6D3F0000-aaaa-bbbb-cccc-0123456789ab");
        let made = "abababab-abab-4bab-abab-abababababab";
        assert_eq!(id_for(b""), made);
        assert_eq!(id_for(b"6D3F0000-aaaa-bbbb-cccc-0123456789a"), made);
        assert_eq!(id_for(b"6D3F0000-aaaa-bbbb-cccc-0123456789a\xFF"), made);
        assert_eq!(id_for(b"6D3F0000aaaaa-bbbb-cccc-0123456789ab"), made);
        assert_eq!(of(&RequestHeaders::default(), &Fixed).as_str(), made);
    }
}
