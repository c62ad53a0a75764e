//! The code of a document id at the end of its record key: a byte for the kind of value, then the value.
//!
//! ```text
//! string      28  UTF-8
//! ```
//!
//! Other APIs have ids of other kinds. Each kind gets the byte with which values of this kind begin in the key code
//! (`value`), so that ids of all kinds sort like such values. Until then a key with another byte is damaged. Nothing
//! follows an id in a key, so it needs no terminator. Two different ids never have the same code, and a code is never
//! truncated.

/// The id of a document, as it is encoded at the end of a record key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdCode<'a> {
    /// The id of an item of the NoSQL API.
    String(&'a str),
}

/// The byte with which strings begin in the key code.
const STRING: u8 = 0x28;

impl<'a> IdCode<'a> {
    /// Length of the code in bytes.
    pub fn encoded_len(self) -> usize {
        match self {
            IdCode::String(text) => 1 + text.len(),
        }
    }

    /// Appends the code.
    pub fn encode(self, out: &mut Vec<u8>) {
        match self {
            IdCode::String(text) => {
                out.push(STRING);
                out.extend_from_slice(text.as_bytes());
            }
        }
    }

    /// Decodes an id; `None` if the kind is unknown or the bytes are no value of the kind.
    pub fn decode(code: &'a [u8]) -> Option<IdCode<'a>> {
        match code.split_first()? {
            (&STRING, text) => str::from_utf8(text).ok().map(IdCode::String),
            (_, _) => None,
        }
    }

    /// The part of `key` before this id, if `key` ends with it.
    pub fn strip_from(self, key: &[u8]) -> Option<&[u8]> {
        match self {
            IdCode::String(text) => match key.strip_suffix(text.as_bytes())?.split_last()? {
                (&STRING, before) => Some(before),
                (_, _) => None,
            },
        }
    }
}

impl<'a> From<&'a str> for IdCode<'a> {
    fn from(text: &'a str) -> IdCode<'a> {
        IdCode::String(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(id: &str) -> Vec<u8> {
        let mut code = Vec::new();
        IdCode::from(id).encode(&mut code);
        assert_eq!(code.len(), IdCode::from(id).encoded_len());
        code
    }

    #[test]
    fn codes_are_read_back_and_sort_as_the_ids() {
        let ids = ["", "\0", "\0\0", "(", "A", "AA", "a", "a\0", "é", "\u{10FFFF}"];
        for id in ids {
            assert_eq!(IdCode::decode(&code(id)), Some(IdCode::String(id)));
            assert_eq!(IdCode::from(id).strip_from(&[b"key", &code(id)[..]].concat()), Some(&b"key"[..]));
        }
        assert!(ids.windows(2).all(|pair| code(pair[0]) < code(pair[1])));
        assert_eq!(IdCode::from("a").strip_from(b"a"), None);
        assert_eq!(IdCode::from("a").strip_from(b"key\x10a"), None);
    }

    #[test]
    fn a_code_begins_like_the_key_code_of_its_value() {
        let mut key = Vec::new();
        value::encode_key_str("a", &mut key);
        assert_eq!(code("a"), key[..2]);
    }

    #[test]
    fn unknown_kinds_are_no_ids() {
        for first in (0..=u8::MAX).filter(|first| *first != STRING) {
            assert_eq!(IdCode::decode(&[first, b'a']), None);
        }
        assert_eq!(IdCode::decode(&[]), None);
        assert_eq!(IdCode::decode(&[STRING, 0xFF]), None);
    }
}
