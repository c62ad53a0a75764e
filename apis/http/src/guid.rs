//! GUIDs: ids of requests.

use model::Ambient;

/// Characters of a GUID.
const LENGTH: usize = 36;
/// Where its dashes are.
const DASHES: [usize; 4] = [8, 13, 18, 23];
/// Offsets of the two digits of each byte, between the dashes.
const PLACES: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// A GUID as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guid([u8; LENGTH]);

impl Guid {
    /// The GUID in these bytes, if they are one.
    pub fn parse(bytes: &[u8]) -> Option<Guid> {
        let text: [u8; LENGTH] = bytes.try_into().ok()?;
        let dashes = DASHES.iter().all(|index| text[*index] == b'-');
        let digits = text.iter().filter(|byte| byte.is_ascii_hexdigit()).count();
        (dashes && digits == LENGTH - DASHES.len()).then_some(Guid(text))
    }

    /// A new one.
    pub fn random(ambient: &dyn Ambient) -> Guid {
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
        Guid(text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        // Hex digits and dashes are ASCII.
        str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The text as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guid_has_digits_and_dashes_in_their_places() {
        let parsed = |text: &[u8]| Guid::parse(text).map(|guid| guid.as_str().to_owned());
        let text = "6D3F0000-aaaa-bbbb-cccc-0123456789ab";
        assert_eq!(parsed(text.as_bytes()).as_deref(), Some(text));
        for wrong in [
            &b""[..],
            b"6D3F0000-aaaa-bbbb-cccc-0123456789a",
            b"6D3F0000-aaaa-bbbb-cccc-0123456789a\xFF",
            b"6D3F0000aaaaa-bbbb-cccc-0123456789ab",
        ] {
            assert_eq!(parsed(wrong), None);
        }
    }
}
