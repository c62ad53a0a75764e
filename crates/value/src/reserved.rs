//! Kinds of values of other APIs that no document can hold yet: their bytes are reserved.
//!
//! | kind | tag in a document | byte in the key code | API |
//! |---|---|---|---|
//! | regular expression | 30 | 60 | BSON |
//! | pointer to a document | 31 | 62 | BSON |
//! | JavaScript | 32 | 64 | BSON |
//! | JavaScript with scope | 33 | 66 | BSON |
//! | symbol | 34 | 2c, after strings | BSON |
//! | timestamp of replication | 35 | 34, after dates | BSON |
//! | least key | 36 | 04, before all values | BSON |
//! | greatest key | 37 | 7c, after all values | BSON |
//! | undefined as a value | 38 | 0c, before null | BSON |
//!
//! The other kinds of BSON and Edm are those of `format`: null, Booleans, 32- and 64-bit integers, doubles, decimals,
//! dates in milliseconds or in ticks of 100 ns, GUIDs, object ids, strings, binary, arrays and objects. A byte of no kind is damage.

use crate::format::Tag;

/// The tag and the byte in the key code of each kind.
pub(crate) const RESERVED: [(u8, u8); 9] = [
    (0x30, 0x60),
    (0x31, 0x62),
    (0x32, 0x64),
    (0x33, 0x66),
    (0x34, 0x2c),
    (0x35, 0x34),
    (0x36, 0x04),
    (0x37, 0x7c),
    (0x38, 0x0c),
];

const _: () = {
    let mut index = 0;
    while index < RESERVED.len() {
        assert!(Tag::from_byte(RESERVED[index].0).is_none(), "a tag that is kept free is in use");
        index += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Document, decode_key};

    #[test]
    fn reserved_and_unknown_kinds_are_damage() {
        for (tag, code) in RESERVED {
            let bytes = [&[tag][..], &[1; 16]].concat();
            let read = Document::from_stored(bytes.into());
            assert!(!read.is_ok_and(|document| document.validate().is_ok()), "tag {tag:#x}");
            assert!(decode_key(&[&[code][..], &[1; 16]].concat()).is_err(), "key code {code:#x}");
        }
        let known = |byte: u8| Tag::from_byte(byte).is_some();
        assert_eq!((0..=u8::MAX).filter(|byte| known(*byte)).count(), 19);
        assert!(!known(0));
    }

    #[test]
    fn no_byte_is_kept_for_two_kinds() {
        for (index, (tag, code)) in RESERVED.iter().enumerate() {
            assert!(RESERVED[index + 1..].iter().all(|other| other.0 != *tag && other.1 != *code));
        }
    }
}
