//! Rules of PartitionKey and RowKey, in bodies and in addresses.

use super::EntityFault;
use crate::edm::{PARTITION_KEY, document::utf16_len};

/// Longest key in an account of Storage in UTF-16 units: 1 KiB.
pub const KEY_UNITS_MAX: usize = 512;
/// Longest key in an account of Cosmos DB in UTF-16 units.
pub const KEY_UNITS_MAX_COSMOS: usize = 1024;
/// Longest PartitionKey in bytes of UTF-8: the longest partition key of a container.
pub const PARTITION_KEY_BYTES_MAX: usize = 2048;

/// Checks the value of the key named `key`, which may have `units_max` UTF-16 units.
pub fn check_key(key: &'static str, text: &str, units_max: usize) -> Result<(), EntityFault> {
    if utf16_len(text) > units_max || (key == PARTITION_KEY && text.len() > PARTITION_KEY_BYTES_MAX) {
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
        for (key, max) in [PARTITION_KEY, ROW_KEY]
            .into_iter()
            .flat_map(|key| [(key, KEY_UNITS_MAX), (key, KEY_UNITS_MAX_COSMOS)])
        {
            assert_eq!(check_key(key, "", max), Ok(()));
            assert_eq!(check_key(key, &"k".repeat(max), max), Ok(()));
            assert_eq!(check_key(key, &"k".repeat(max + 1), max), Err(EntityFault::KeyTooLong { key }));
            assert_eq!(check_key(key, &"😀".repeat(max / 2), max), Ok(()));
            let fault = EntityFault::KeyTooLong { key };
            assert_eq!(check_key(key, &"😀".repeat(max / 2 + 1), max), Err(fault));
        }
        let check_key = |key, text: &str| check_key(key, text, KEY_UNITS_MAX_COSMOS);
        // A euro sign takes one unit of UTF-16 and three bytes of UTF-8.
        assert_eq!(check_key(PARTITION_KEY, &"€".repeat(682)), Ok(()));
        let fault = EntityFault::KeyTooLong { key: PARTITION_KEY };
        assert_eq!(check_key(PARTITION_KEY, &"€".repeat(683)), Err(fault));
        assert_eq!(check_key(ROW_KEY, &"€".repeat(KEY_UNITS_MAX_COSMOS)), Ok(()));
    }

    #[test]
    fn some_characters_are_forbidden() {
        for character in ['/', '\\', '#', '?', '\0', '\n', '\u{1f}', '\u{7f}', '\u{9f}'] {
            let fault = EntityFault::KeyCharacter { key: ROW_KEY, character };
            assert_eq!(check_key(ROW_KEY, &format!("a{character}b"), KEY_UNITS_MAX), Err(fault));
        }
        for text in [" ", "'", "%", "a b", "é", "\u{a0}", "~", "\"", "+&="] {
            assert_eq!(check_key(ROW_KEY, text, KEY_UNITS_MAX), Ok(()));
        }
    }
}
