//! Percent-encoding of names in paths, links and headers.

use std::borrow::Cow;

/// Decodes percent-encoding; `None` for an invalid escape or bytes that are not UTF-8.
pub fn decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.as_bytes().contains(&b'%') {
        return Some(Cow::Borrowed(text));
    }
    let mut pieces = text.as_bytes().split(|byte| *byte == b'%');
    let mut bytes = Vec::with_capacity(text.len());
    bytes.extend_from_slice(pieces.next().unwrap_or_default());
    for piece in pieces {
        let [high, low, plain @ ..] = piece else {
            return None;
        };
        bytes.push(hex_value(*high)? << 4 | hex_value(*low)?);
        bytes.extend_from_slice(plain);
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// Percent-encodes everything that is not printable ASCII, and nothing else.
pub fn encoded(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    let mut encoded = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    Cow::Owned(encoded)
}

/// Encodes everything but letters, digits and a few signs as `%XX`, which all clients decode in the same way.
pub fn strictly_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// The value of a hex digit of either case.
pub fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_ascii_is_escaped() {
        assert_eq!(encoded("dbs/a b%20~"), "dbs/a b%20~");
        assert_eq!(encoded("é\n\u{7F}"), "%C3%A9%0A%7F");
    }

    #[test]
    fn escapes_are_undone_or_refused() {
        assert_eq!(decoded("plain").unwrap(), "plain");
        assert_eq!(decoded("a%20b%2F%C3%a9+").unwrap(), "a b/é+");
        assert_eq!(decoded("%41%42c%43").unwrap(), "ABcC");
        for broken in ["%", "%4", "a%", "%%41", "%4%41", "%zz", "%+1", "%ff", "%c3%28"] {
            assert_eq!(decoded(broken), None, "{broken}");
        }
    }
}
