//! Activity ids: the GUID that connects a request of a client with log lines.
//!
//! A client's id is echoed only if it is a GUID, so no other client text gets into a header.

use super::names;
use super::request_headers::RequestHeaders;
use model::Ambient;

/// Characters of a GUID.
const LENGTH: usize = 36;
/// Where its dashes are.
const DASHES: [usize; 4] = [8, 13, 18, 23];
/// Offsets of the two digits of each byte, between the dashes.
const PLACES: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The id of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ActivityId([u8; LENGTH]);

impl ActivityId {
    /// The client's id, or a new one if it sent none or an invalid one.
    pub(crate) fn of(headers: &RequestHeaders, ambient: &dyn Ambient) -> ActivityId {
        let sent = headers.get(&names::ACTIVITY_ID).and_then(|value| ActivityId::parse(value.as_bytes()));
        sent.unwrap_or_else(|| ActivityId::random(ambient))
    }

    fn parse(bytes: &[u8]) -> Option<ActivityId> {
        let text: [u8; LENGTH] = bytes.try_into().ok()?;
        let dashes = DASHES.iter().all(|index| text[*index] == b'-');
        let digits = text.iter().filter(|byte| byte.is_ascii_hexdigit()).count();
        (dashes && digits == LENGTH - DASHES.len()).then_some(ActivityId(text))
    }

    fn random(ambient: &dyn Ambient) -> ActivityId {
        let mut random = [0; 16];
        ambient.fill_random(&mut random);
        // Version 4, variant 1: a random GUID.
        random[6] = random[6] & 0x0F | 0x40;
        random[8] = random[8] & 0x3F | 0x80;
        let mut text = [b'-'; LENGTH];
        for (byte, place) in random.into_iter().zip(PLACES) {
            text[place] = DIGITS[usize::from(byte >> 4)];
            text[place + 1] = DIGITS[usize::from(byte & 15)];
        }
        ActivityId(text)
    }

    pub(crate) fn as_str(&self) -> &str {
        // Hex digits and dashes are ASCII.
        str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The text as bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
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
        ActivityId::of(&headers.into(), &Fixed).as_str().to_owned()
    }

    #[test]
    fn a_guid_is_echoed_and_nothing_else() {
        assert_eq!(id_for(b"6D3F0000-aaaa-bbbb-cccc-0123456789ab"), "6D3F0000-aaaa-bbbb-cccc-0123456789ab");
        let made = "abababab-abab-4bab-abab-abababababab";
        assert_eq!(id_for(b""), made);
        assert_eq!(id_for(b"6D3F0000-aaaa-bbbb-cccc-0123456789a"), made);
        assert_eq!(id_for(b"6D3F0000-aaaa-bbbb-cccc-0123456789a\xFF"), made);
        assert_eq!(id_for(b"6D3F0000aaaaa-bbbb-cccc-0123456789ab"), made);
        assert_eq!(ActivityId::of(&RequestHeaders::default(), &Fixed).as_str(), made);
    }
}
