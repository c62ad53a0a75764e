//! Rules of PartitionKey and RowKey, in bodies and in addresses.

use super::EntityFault;
use crate::edm::{PARTITION_KEY, document::utf16_len};

/// Longest key in UTF-16 units.
pub const KEY_UNITS_MAX: usize = 1024;
/// Longest PartitionKey in bytes of UTF-8: the longest partition key of a container.
pub const PARTITION_KEY_BYTES_MAX: usize = 2048;

/// Checks the value of the key named `key`.
pub fn check_key(key: &'static str, text: &str) -> Result<(), EntityFault> {
    if utf16_len(text) > KEY_UNITS_MAX || (key == PARTITION_KEY && text.len() > PARTITION_KEY_BYTES_MAX) {
        return Err(EntityFault::KeyTooLong { key });
    }
    let is_forbidden =
        |character: &char| matches!(character, '/' | '\\' | '#' | '?') || character.is_control();
    match text.chars().find(is_forbidden) {
        Some(character) => Err(EntityFault::KeyCharacter { key, character }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edm::ROW_KEY;

    #[test]
    fn lengths_end_on_both_sides() {
        for key in [PARTITION_KEY, ROW_KEY] {
            assert_eq!(check_key(key, ""), Ok(()));
            assert_eq!(check_key(key, &"k".repeat(KEY_UNITS_MAX)), Ok(()));
            assert_eq!(check_key(key, &"k".repeat(KEY_UNITS_MAX + 1)), Err(EntityFault::KeyTooLong { key }));
            assert_eq!(check_key(key, &"😀".repeat(KEY_UNITS_MAX / 2)), Ok(()));
        }
        // A euro sign takes one unit of UTF-16 and three bytes of UTF-8.
        assert_eq!(check_key(PARTITION_KEY, &"€".repeat(682)), Ok(()));
        let fault = EntityFault::KeyTooLong { key: PARTITION_KEY };
        assert_eq!(check_key(PARTITION_KEY, &"€".repeat(683)), Err(fault));
        assert_eq!(check_key(ROW_KEY, &"€".repeat(KEY_UNITS_MAX)), Ok(()));
    }

    #[test]
    fn some_characters_are_forbidden() {
        for character in ['/', '\\', '#', '?', '\0', '\n', '\u{1f}', '\u{7f}', '\u{9f}'] {
            let fault = EntityFault::KeyCharacter { key: ROW_KEY, character };
            assert_eq!(check_key(ROW_KEY, &format!("a{character}b")), Err(fault));
        }
        for text in [" ", "'", "%", "a b", "é", "\u{a0}", "~", "\"", "+&="] {
            assert_eq!(check_key(ROW_KEY, text), Ok(()));
        }
    }
}
