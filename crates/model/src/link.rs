//! Percent-encoding, in which names stand in paths and links.

use std::borrow::Cow;

/// Undoes percent-encoding; `None` for a broken escape or bytes that are no UTF-8.
pub fn percent_decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.as_bytes().contains(&b'%') {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, others @ ..] = rest {
        rest = others;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let [high, low, others @ ..] = rest else {
            return None;
        };
        bytes.push(hex_value(*high)? << 4 | hex_value(*low)?);
        rest = others;
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

fn hex_value(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_or_refused() {
        assert_eq!(percent_decoded("plain").unwrap(), "plain");
        assert_eq!(percent_decoded("a%20b%2F%C3%a9+").unwrap(), "a b/é+");
        for broken in ["%", "%4", "%zz", "%ff", "%c3%28"] {
            assert_eq!(percent_decoded(broken), None, "{broken}");
        }
    }
}
