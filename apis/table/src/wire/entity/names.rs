//! Rules of property names: identifiers as in C#.

use super::EntityFault;
use crate::edm::document::utf16_len;

/// Longest name in UTF-16 units.
pub const NAME_UNITS_MAX: usize = 255;

/// Checks the name of a property.
pub(super) fn check_name(name: &str) -> Result<(), EntityFault> {
    let units = utf16_len(name);
    if units > NAME_UNITS_MAX {
        return Err(EntityFault::NameTooLong { units });
    }
    let is_first = |character: char| character.is_alphabetic() || character == '_';
    // Marks and joiners of scripts other than Latin are neither letters nor digits.
    let is_next = |character: char| {
        character.is_alphanumeric()
            || character == '_'
            || !(character.is_ascii() || character.is_whitespace() || character.is_control())
    };
    let mut characters = name.chars();
    if characters.next().is_some_and(is_first) && characters.all(is_next) {
        return Ok(());
    }
    Err(EntityFault::NameInvalid { name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers() {
        for name in ["a", "_", "_a1", "Größe", "名前", "x_y", "नमस्ते", "id"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in ["", "1a", "a-b", "a b", "a.b", "$a", "a$", "a@b", "a/b", "a\u{a0}b", "\u{301}a", "a\0"] {
            assert_eq!(check_name(name), Err(EntityFault::NameInvalid { name: name.to_owned() }));
        }
    }

    #[test]
    fn lengths_end_on_both_sides() {
        assert_eq!(check_name(&"n".repeat(NAME_UNITS_MAX)), Ok(()));
        let fault = EntityFault::NameTooLong { units: NAME_UNITS_MAX + 1 };
        assert_eq!(check_name(&"n".repeat(NAME_UNITS_MAX + 1)), Err(fault));
    }
}
